# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a file, where, and what is said about it."""

import pytest
from priority_router.ops.pbtxt import spelling
from priority_router.ops.pbtxt.document import Document, encode, faults, read_text
from priority_router.ops.pbtxt.error import PbtxtError


def told(text):
    """Kind, place and words of all faults."""
    return [(fault.kind, f"{fault.line}:{fault.column}", f"{fault.what}; {fault.fix}") for fault in faults(text, "f")]


def test_a_file_without_faults_has_none():
    assert faults('name: "x"\n', "f") == []


def test_an_error_says_file_line_column_fault_and_remedy_in_one_line():
    with pytest.raises(PbtxtError) as caught:
        Document.parse('name: "x"\n  max_batch_size: ${size}\n', "m/config.pbtxt")
    assert str(caught.value) == (
        "m/config.pbtxt:2:19: the placeholder ${size} in max_batch_size; "
        "fill in the template, or write what it stands for"
    )
    assert (caught.value.file, caught.value.line, caught.value.column) == ("m/config.pbtxt", 2, 19)


@pytest.mark.parametrize(
    ("text", "place", "placeholder", "where"),
    [
        ("max_batch_size: ${size}", "1:17", "${size}", "in max_batch_size"),
        ("max_batch_size: 1${size}", "1:18", "${size}", "in max_batch_size"),
        ("max_batch_size: {{ size }}", "1:17", "{{ size }}", "in max_batch_size"),
        ("max_batch_size: $SIZE\n", "1:17", "$SIZE", "in max_batch_size"),
        ("max_batch_size: $(SIZE)\n", "1:17", "$(SIZE)", "in max_batch_size"),
        ("max_batch_size: @SIZE@\n", "1:17", "@SIZE@", "in max_batch_size"),
        ('name: "a ${b} c"', "1:10", "${b}", "in name"),
        ("name: 'a' '${b}'", "1:12", "${b}", "in name"),
        ("${all}\n", "1:1", "${all}", "at the top of the file"),
        ("${name}: 1\n", "1:1", "${name}", "at the top of the file"),
        ("dynamic_batching { ${block}, preserve_ordering: true }", "1:20", "${block}", "in dynamic_batching"),
        ("input [ { dims: [ 1, ${n} ] } ]", "1:22", "${n}", "in input[0].dims"),
        ("input [ { optional: true }, { dims: ${n} } ]", "1:37", "${n}", "in input[1].dims"),
        ("input [ { optional: true }, ${more} ]", "1:29", "${more}", "in input"),
        ("input { optional: true } input { data_type: ${t} }", "1:45", "${t}", "in input[1].data_type"),
        ("input { reshape { shape: 1 } data_type: ${t} }", "1:41", "${t}", "in input.data_type"),
        ("input [ { reshape { shape: [ 1, ${n} ] } } ]", "1:33", "${n}", "in input[0].reshape.shape"),
        ("input [ ${inputs} ]", "1:9", "${inputs}", "in input"),
        (
            'parameters { key: "mode" value { string_value: "${decoupled_mode}" } }',
            "1:49",
            "${decoupled_mode}",
            "in parameters.value.string_value",
        ),
    ],
)
def test_a_placeholder_is_named_with_its_field(text, place, placeholder, where):
    words = f"the placeholder {placeholder} {where}; fill in the template, or write what it stands for"
    assert told(text) == [("placeholder", place, words)]


@pytest.mark.parametrize(
    "text",
    ["# ${size}\n", 'name: "$$TRITON_MODEL_DIRECTORY/x"', 'name: "{{ jinja }} ${1} $ {} a@b@c %d"', "# {{ x }} @y@ \n"],
)
def test_what_is_no_placeholder(text):
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("input { data_type: TYPE_#FP32\n }", True),
        ("max_batch_size: 4x# eight\n", True),
        ("nam#e: 1\n: 'x'", True),
        ("input { dims: [ #N# ]\n }", True),
        ("max_batch_size: #SIZE#\n", True),
        ("input {\n  #FP32\n  } }", False),
        ("input { dims: [ # lengths\n }", False),
        ("input { data_type: TYPE_F # 32\n }", False),
        ('input { data_type: "TYPE_#" }', False),
    ],
)
def test_where_a_comment_begins_within_a_word_that_is_said(text, hidden):
    (_, _, words), *_ = told(text)
    assert words.endswith("; what follows # is a comment") == hidden


def test_all_placeholders_and_unknown_fields_are_told_also_behind_other_faults():
    text = (
        "priority: 1\n"
        "max_batch_size: ${size}\n"
        "input { name: 7 shape: [ 1 ] }\n"
        'parameters { key: "a" value: "${mode}" }\n'
        "dynamic_batching { ${more} timeout_ms: 50 priority_queue_policy { key: 1 value { timeout: 5 } } }\n"
        "instances: 2\n"
        "}\n"
    )
    assert [(kind, place) for kind, place, _ in told(text)] == [
        ("unknown_field", "1:1"),
        ("placeholder", "2:17"),
        ("syntax", "3:15"),
        ("unknown_field", "3:17"),
        ("syntax", "4:30"),
        ("placeholder", "4:31"),
        ("placeholder", "5:20"),
        ("unknown_field", "5:28"),
        ("unknown_field", "5:82"),
        ("unknown_field", "6:1"),
        ("syntax", "7:1"),
    ]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('name = "x"', "1:6", "':' is missing behind name; write name: VALUE"),
        ('"name": "x"', "1:1", 'the name of a field is expected, not "name"; write names without quotes'),
        ("// text", "1:1", "'/' begins no comment; write # in front of a comment"),
        ('name: "x\n', "1:7", 'a string has no closing quote; write " at its end, on the same line'),
        ("name: ", "1:7", "the value of name is missing; write it"),
        ("name: ; platform: 'x'", "1:7", "the value of name is missing, not ;; write it"),
        ("input {\n  name: 'x'\n", "1:7", "the '{' is never closed; write its '}'"),
        ("input [\n  {\n  }\n", "1:7", "the '[' is never closed; write its ']'"),
        ("input < name: 'x' }", "1:19", "'}' closes nothing; write '>' or remove it"),
        ("input { } }", "1:11", "'}' closes nothing; remove it"),
        (
            "version_policy { specific { versions: [ 1, ] } }",
            "1:44",
            "a list ends with ','; remove the ',' in front of the ']'",
        ),
        ("input [ { }\n { } ]", "2:2", "',' or ']' is missing in a list, not {; write ',' between its values"),
        ("name: 'x',;", "1:11", "a separator without a field in front of it; remove it"),
        ("[a.b/c] { }", "1:1", "a '[' without a field; write the field's name in front of it"),
        ("name: \u201cx\u201d", "1:7", "the value of name is missing, not U+201C; write it"),
        (
            "name: 'x'\n\u00a0platform: 'y'",
            "2:1",
            "the character U+00A0; remove it: servers take only ASCII outside of strings",
        ),
        ("name: 'x'\x1c", "1:10", "the character U+001C; remove it: servers take only ASCII outside of strings"),
        ("name: 'x' # \0", "1:13", "a NUL character, which ends the text for servers; remove it"),
        (
            "dynamic_batching [ { } ]",
            "1:18",
            "dynamic_batching takes one value, not a list; write the value without '[' and ']'",
        ),
        (
            "dynamic_batching { }\ndynamic_batching { }",
            "2:1",
            "dynamic_batching is written twice in the same message; remove one of them",
        ),
        (
            "max_batch_size: 0 max_batch_size: 4",
            "1:19",
            "max_batch_size is written twice in the same message; remove one of them",
        ),
        ("max_batch_size { }", "1:16", "max_batch_size is one value, not a message; write max_batch_size: VALUE"),
        ("dynamic_batching: true", "1:19", "dynamic_batching is a message, not true; write dynamic_batching { … }"),
        (
            'parameters { key: "a" value: "b" }',
            "1:30",
            'value is a message, not "b"; write value { string_value: "b" }',
        ),
        ("instance_group { kind: KIND_CUDA }", "1:24", "kind has no value KIND_CUDA; write KIND_GPU"),
        ("input { data_type: FLOAT32 }", "1:20", "data_type has no value FLOAT32; write TYPE_FP32"),
        ("input { data_type: 'TYPE_FP32' }", "1:20", "data_type is a name, not a text; write TYPE_FP32 without quotes"),
        (
            "input { format: row }",
            "1:17",
            "format has no value row; write one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW",
        ),
        ('max_batch_size: "8"', "1:17", 'protobuf: Couldn\'t parse integer: "8"; write a whole number, without quotes'),
        ("name: x", "1:7", "protobuf: Expected string but found: 'x'; write a text in quotes"),
        ("max_batch_size: 2147483648", "1:17", "protobuf: Value out of range: 2147483648; write a number that fits"),
        (
            "input { optional: yes }",
            "1:19",
            'protobuf: Expected "true" or "false"; write true or false, without quotes',
        ),
    ],
)
def test_each_fault_is_told_where_it_is_with_a_remedy(text, place, words):
    assert told(text) == [("syntax", place, words)]


def test_two_schedulers():
    (fault,) = faults("dynamic_batching { }\nsequence_batching { }", "f")
    assert (fault.line, fault.fix) == (2, "keep one of the two")
    assert fault.what.startswith('protobuf: Field "sequence_batching" is specified along with field "dynamic_batching"')


@pytest.mark.parametrize(
    "value",
    [
        "+4",
        "1_0",
        "0b11",
        "0o10",
        "0O7",
        "08",
        "4.0",
        "1e3",
        "4name",
        "4x",
        "-",
        "0x",
        "99999999999999999999999999999a",
    ],
)
def test_numbers_that_the_two_parsers_do_not_both_take_are_refused(value):
    (fault,) = faults(f"max_batch_size: {value} ", "f")
    assert (fault.column, fault.what) == (17, f"{value} is not a number of the usual form")


@pytest.mark.parametrize("value", ["0", "16", "-1", "0x10", "0X1f", "-0x1", "010", "00", "2147483647"])
def test_numbers_that_both_take(value):
    assert faults(f"max_batch_size: {value}", "f") == []


@pytest.mark.parametrize(
    "value", ["1", "1.", ".5", "0.5f", "1F", "-1e-3", "1.5E+3f", "inf", "-Infinity", "NaN", "-nan"]
)
def test_floats_that_both_take(value):
    assert faults(f"sequence_batching {{ direct {{ minimum_slot_utilization: {value} }} }}", "f") == []


@pytest.mark.parametrize("value", ["+1", "010", "1_0.5", "0x1", "00.5", "1e", "+inf"])
def test_floats_that_the_two_parsers_do_not_both_take_are_refused(value):
    (fault,) = faults(f"sequence_batching {{ direct {{ minimum_slot_utilization: {value} }} }}", "f")
    assert fault.what == f"{value} is not a number of the usual form"


def test_a_minus_at_a_field_without_a_sign():
    (fault,) = faults("dynamic_batching { priority_levels: -0 }", "f")
    assert (fault.column, fault.what, fault.fix) == (37, "priority_levels is negative", "write a number of at least 0")


@pytest.mark.parametrize("value", ["013", "99999999999"])
def test_numbers_of_enums_that_the_two_parsers_do_not_both_take(value):
    assert [(fault.kind, fault.column) for fault in faults(f"input {{ data_type: {value} }}", "f")] == [("syntax", 20)]


@pytest.mark.parametrize(
    "escape",
    [
        r"\q",
        r"\?",
        r"\400",
        r"\777",
        r"\x",
        r"\xg",
        r"\X41",
        r"\u12",
        r"\ud83d\ude00",
        r"\u005c",
        r"\U0000005C",
        r"\U00110000",
        r"\N{DASH}",
        r"\8",
        "\\\u00e9",
    ],
)
def test_escapes_that_mean_something_else_to_each_parser_are_refused(escape):
    (fault,) = faults(f'name: "a{escape}z"', "f")
    assert fault.column == 9
    assert fault.what.startswith("parsers do not agree on what \\")


@pytest.mark.parametrize("escape", [r"\u00e9", r"\U0001F600", r"\u0080"])
def test_with_a_protobuf_that_misreads_characters_only_ascii_is_taken(escape, monkeypatch):
    monkeypatch.setattr(spelling, "_CHARACTERS_END", 0x80)
    assert faults(rf"name: '\u007f{escape}'", "f")[0].column == 14


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'"\a\b\f\n\r\t\v\\\'\""', "\a\b\f\n\r\t\v\\'\""),
        (r'"\101\0612\7"', "A12\a"),
        (r'"\x41\x4g\\x41"', "A\x04g\\x41"),
        (r'"\u0041\u00e9\ud55c\U0001F600\\u0041"', "A\u00e9\ud55c\U0001f600\\u0041"),
        (r'"\303\251"', "\u00e9"),
        ("'\"' \"'\"  # between\n 'c'", "\"'c"),
    ],
)
def test_escapes_that_both_take(literal, value):
    assert Document.parse(f"name: {literal}", "f").config.name == value


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"\xef\xbb\xbfname: 'x'", (1, 1), "a byte order mark, which servers refuse"),
        ("name: 'x'".encode("utf-16"), (1, 1), "the file is UTF-16"),
        (b"name: '\xe9'", (1, 8), "the byte 0xE9, which is not UTF-8"),
        (b"name: 'x'\n\xff", (2, 1), "the byte 0xFF, which is not UTF-8"),
        (b"name: 'x'\n\xff${x}\n}", (2, 1), "the byte 0xFF, which is not UTF-8"),
    ],
)
def test_bytes_that_are_no_text(data, place, words, tmp_path):
    file = tmp_path / "config.pbtxt"
    file.write_bytes(data)
    first = faults(read_text(file), "f")[0]
    assert (first.kind, (first.line, first.column), first.what) == ("encoding", place, words)


def test_bytes_in_comments_do_no_harm_and_come_back(tmp_path):
    file = tmp_path / "config.pbtxt"
    file.write_bytes(b"# \xff\xe9\x80 \x01\r\nname: 'x'")
    document = Document.read(file)
    assert document.encode() == encode(document.text) == file.read_bytes()


@pytest.mark.parametrize(
    "text", ["${\udcff}", "input { data_type: '\udcff' }", "parameters { key: '\udcff' }", "zzz { yyy: '\udcff' }"]
)
def test_bytes_that_are_no_text_in_other_faults(text):
    """Protobuf cannot even look such a name up."""
    assert "encoding" in [fault.kind for fault in faults(text, "f")]


def test_half_a_pair_that_no_file_can_have():
    (fault,) = faults("# \ud83d", "f")
    assert (fault.kind, fault.column) == ("encoding", 3)


@pytest.mark.parametrize("name", ["missing", "folder", "nul\0"])
def test_a_file_that_cannot_be_opened(name, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(PbtxtError) as caught:
        Document.read(tmp_path / name)
    assert caught.value.kind == "file"
    assert (caught.value.line, caught.value.column) == (0, 0)
    assert str(caught.value).startswith(f"{tmp_path / name}: cannot be read (")


def test_what_protobuf_says_is_told_without_the_line_also_beside_other_faults():
    found = told("zzz: 1 max_batch_size: 'x' name: '${a}' }")
    assert found[1] == ("syntax", "1:24", "protobuf: Couldn't parse integer: 'x'; write a whole number, without quotes")


def test_words_stay_on_one_line_and_short():
    text = "name: 'x'\n" + "max_batch_size: '" + "\t" * 5000 + "'"
    (fault,) = faults(text, "f")
    assert len(str(fault)) < 400
    assert str(fault).isprintable()
