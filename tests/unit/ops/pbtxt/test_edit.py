# SPDX-License-Identifier: Apache-2.0
"""Levels merged into files of many layouts; what any merge must keep is in test_laws."""

from textwrap import dedent

import pytest
from priority_router.ops.pbtxt.document import Document
from priority_router.ops.pbtxt.edit import MOST_LEVELS, Batching, QueuePolicy, merge_batching
from priority_router.ops.pbtxt.error import PbtxtError

_LEVELS = Batching(2)
_LIMITED = Batching(2, {1: QueuePolicy(32, 5_000, True), 2: QueuePolicy(128, delay=True)})
_PLAIN = Batching(None)
_BLOCK = "dynamic_batching"
_ALL = "priority_queue_policy [ { key: 1 value { } }, { key: 2 value { } } ]"


def merged(text, wanted=_LEVELS):
    return merge_batching(Document.parse(text, "m/config.pbtxt"), wanted)


def of_lines(text):
    return dedent(text).lstrip("\n")


def test_a_new_block_comes_behind_the_rest_as_the_rest_is_written():
    text = of_lines(
        """
        name: "m"

        # Inputs.
        input [
          {
            name: "x"
          }
        ]
        """
    )
    block = of_lines(
        """
        # The router's levels.
        #
        # Two.
        dynamic_batching {
          priority_levels: 2
          default_priority_level: 2
          priority_queue_policy [
            { key: 1 value { } },
            { key: 2 value { } }
          ]
        }
        """
    )
    assert merged(text, Batching(2, comments=("The router's levels.", "", "Two."))).text == f"{text}\n{block}"


def test_a_new_block_follows_line_ends_indentation_brackets_and_repeated_fields():
    text = 'name: "m"\r\ninput <\r\n\tname: "x"\r\n>\r\n'
    assert merged(text).text == text + (
        "\r\ndynamic_batching <\r\n"
        "\tpriority_levels: 2\r\n"
        "\tdefault_priority_level: 2\r\n"
        "\tpriority_queue_policy < key: 1 value < > >\r\n"
        "\tpriority_queue_policy < key: 2 value < > >\r\n"
        ">\r\n"
    )


def test_a_file_without_a_last_line_end_gets_one_only_in_front_of_the_block():
    assert merged('name: "m" # no end', _PLAIN).text == 'name: "m" # no end\n\ndynamic_batching { }'


@pytest.mark.parametrize(
    ("text", "between"),
    [
        ('name: "m"\n# below\n', "\n"),
        ('name: "m"\n\n# below\n', "\n"),
        ('name: "m"\r\n# below\r\n', "\r\n"),
        ('name: "m"\n# below', "\n\n"),
        ('name: "m"\n# below\n\n', ""),
        ('name: "m"\n# below\n \t\n', ""),
        ('name: "m"\r\n# below\r\n\r\n', ""),
    ],
)
def test_a_blank_line_is_between_a_new_block_and_what_is_above_it(text, between):
    assert merged(text, _PLAIN).text.partition("dynamic_batching")[0] == text + between


def test_a_file_of_one_line_gets_a_block_of_one_line():
    text = 'name: "m" input [ { name: "x" } ]\n'
    block = f"dynamic_batching {{ priority_levels: 2 default_priority_level: 2 {_ALL} }}\n"
    assert merged(text).text == text + block


def test_an_empty_file():
    assert merged("", _PLAIN).text == "dynamic_batching { }"


@pytest.mark.parametrize("block", ["dynamic_batching { }", "dynamic_batching{}", "dynamic_batching: {\t}"])
def test_an_empty_block_becomes_lines(block):
    head = block[: block.index("{") + 1]
    assert merged(f"  {block} # why\n").text == (
        f"  {head}\n"
        "    priority_levels: 2\n"
        "    default_priority_level: 2\n"
        "    priority_queue_policy [\n"
        "      { key: 1 value { } },\n"
        "      { key: 2 value { } }\n"
        "    ]\n"
        "  } # why\n"
    )


def test_settings_and_comments_of_a_block_stay_and_are_told():
    text = of_lines(
        """
        dynamic_batching {
            # Sizes that run well.
            preferred_batch_size: [ 4, 8 ]  # measured
            max_queue_delay_microseconds: 100
            # The end.
        }
        """
    )
    merge = merged(text)
    assert merge.text == text.replace(
        "}\n",
        "    priority_levels: 2\n"
        "    default_priority_level: 2\n"
        "    priority_queue_policy [\n"
        "        { key: 1 value { } },\n"
        "        { key: 2 value { } }\n"
        "    ]\n"
        "}\n",
    )
    assert merge.changes == ()
    assert merge.kept == ("preferred_batch_size: [4, 8]", "max_queue_delay_microseconds: 100")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{ preserve_ordering: true }", f"{{ preserve_ordering: true L: 2 D: 2 {_ALL} }}"),
        ("{preserve_ordering:true}", f"{{preserve_ordering:true L: 2 D: 2 {_ALL}}}"),
        ("{ preserve_ordering: true, }", f"{{ preserve_ordering: true, L: 2, D: 2, {_ALL}, }}"),
        ("{ L: 2; preserve_ordering: true }", f"{{ L: 2; preserve_ordering: true; D: 2; {_ALL} }}"),
        ("{ L: 0x2 priority_queue_policy [ ] }", f"{{ L: 0x2 {_ALL} D: 2 }}"),
        (
            "{ L: 2 D: 2 priority_queue_policy [ { key: 2 } ] }",
            "{ L: 2 D: 2 priority_queue_policy [ { key: 2 }, { key: 1 value { } } ] }",
        ),
        (
            "{ L: 2 D: 2 priority_queue_policy { key: 2 } }",
            "{ L: 2 D: 2 priority_queue_policy { key: 2 } priority_queue_policy { key: 1 value { } } }",
        ),
        ("< L: 2 D: 2 >", "< L: 2 D: 2 priority_queue_policy [ < key: 1 value < > >, < key: 2 value < > > ] >"),
    ],
)
def test_what_is_missing_is_written_as_the_block_is(text, result):
    def spelled(short):
        return "dynamic_batching " + short.replace("L:", "priority_levels:").replace("D:", "default_priority_level:")

    assert merged(spelled(text)).text == spelled(result)


@pytest.mark.parametrize("closing", ["\n}", " }"])
def test_a_block_of_lines_gets_lines_also_where_its_end_is_on_the_last(closing):
    assert merged(
        f"dynamic_batching {{ # text\n priority_levels: 1 # one\n default_priority_level: 1{closing}"
    ).text == (
        "dynamic_batching { # text\n"
        " priority_levels: 2 # one\n"
        " default_priority_level: 2\n"
        " priority_queue_policy [\n"
        "  { key: 1 value { } },\n"
        "  { key: 2 value { } }\n"
        f" ]{closing}"
    )


def test_a_block_with_nothing_but_a_comment():
    text = "dynamic_batching { # none yet\n}\n"
    assert merged(text, _PLAIN).text == text
    assert merged(text).text.startswith("dynamic_batching { # none yet\n  priority_levels: 2\n")


def test_a_list_of_policies_grows_as_it_is_written():
    text = of_lines(
        """
        dynamic_batching {
          priority_levels: 2
          default_priority_level: 2
          priority_queue_policy [
            { key: 2 value { } } # the last
          ]
        }
        """
    )
    assert merged(text).text == text.replace("} } # the last\n", "} }, # the last\n    { key: 1 value { } }\n")


@pytest.mark.parametrize(
    "text",
    [
        f"dynamic_batching {{ priority_levels: 2 default_priority_level: 2 {_ALL} }}",
        "dynamic_batching < default_priority_level: 02; priority_levels: 0x2, priority_queue_policy: [ < key: 0x1 > ]"
        " priority_queue_policy { value { timeout_action: 0 max_queue_size: 0 } # comment\n key: 2 } >",
        "dynamic_batching { priority_levels: 3 default_priority_level: 3 priority_queue_policy { key: 1 } "
        "priority_queue_policy { key: 3 value { max_queue_size: 7 } } priority_queue_policy { key: 2 } }",
    ],
)
def test_what_says_it_already_stays_byte_for_byte(text):
    merge = merged(text)
    assert merge.text == text
    assert merge.changes == ()


@pytest.mark.parametrize(
    "text", ["dynamic_batching{}", "dynamic_batching { priority_levels: 0 default_queue_policy { } }"]
)
def test_plain_and_already_so(text):
    assert merged(text, _PLAIN).text == text


def test_other_values_take_the_place_of_the_old_ones_and_are_told():
    merge = merged(
        of_lines(
            """
            dynamic_batching {
              priority_levels: 1  # old
              default_priority_level: 1
              priority_queue_policy [
                { key: 1 value { max_queue_size: 0x10 default_timeout_microseconds: 50 } }, # 1
                { key: 2 value: { max_queue_size: 7 } }, # two
                { key: 5 value { } } # five
              ]
            }
            """
        ),
        _LIMITED,
    )
    assert merge.text == of_lines(
        """
        dynamic_batching {
          priority_levels: 2  # old
          default_priority_level: 2
          priority_queue_policy [
            { key: 1 value { max_queue_size: 32 default_timeout_microseconds: 5000 allow_timeout_override: true } }, # 1
            { key: 2 value: { max_queue_size: 128 timeout_action: DELAY } } # two
            # five
          ]
        }
        """
    )
    assert merge.changes == (
        "priority_levels: 1 -> 2",
        "default_priority_level: 1 -> 2",
        "priority_queue_policy 1: default_timeout_microseconds: 50 max_queue_size: 16 -> "
        "default_timeout_microseconds: 5000 allow_timeout_override: true max_queue_size: 32",
        "priority_queue_policy 2: max_queue_size: 7 -> timeout_action: DELAY max_queue_size: 128",
        "priority_queue_policy 5: empty -> removed",
    )


def test_a_policy_is_emptied_without_its_comments():
    merge = merged(
        of_lines(
            """
            dynamic_batching {
              priority_levels: 2
              default_priority_level: 2
              priority_queue_policy {
                key: 1
                value {
                  # Small.
                  max_queue_size: 16
                  timeout_action: DELAY # late
                }
              }
              priority_queue_policy { key: 2 value { max_queue_size: 16 } }
            }
            """
        )
    )
    assert merge.text == of_lines(
        """
        dynamic_batching {
          priority_levels: 2
          default_priority_level: 2
          priority_queue_policy {
            key: 1
            value {
              # Small.
              # late
            }
          }
          priority_queue_policy { key: 2 value { } }
        }
        """
    )
    assert merge.changes == (
        "priority_queue_policy 1: timeout_action: DELAY max_queue_size: 16 -> empty",
        "priority_queue_policy 2: max_queue_size: 16 -> empty",
    )


def test_a_key_that_is_written_again_is_left_once():
    policies = "{ key: 1 value { max_queue_size: 9 } }, { key: 2 }, { key: 1 }"
    merge = merged(
        f"dynamic_batching {{ priority_levels: 2 default_priority_level: 2 priority_queue_policy [ {policies} ] }}"
    )
    assert merge.text.endswith("priority_queue_policy [ { key: 2 }, { key: 1 } ] }")
    assert merge.changes == ("priority_queue_policy 1: written 2 times -> once",)


def test_more_levels_than_wanted_stay_with_their_policies():
    merge = merged(
        "dynamic_batching { priority_levels: 4 default_priority_level: 1 "
        "priority_queue_policy { key: 1 value { max_queue_size: 5 } } "
        "priority_queue_policy { key: 4 value { max_queue_size: 6 } } }"
    )
    block = Document.parse(merge.text, "f").as_json()["dynamic_batching"]
    assert block == {
        "priority_levels": "4",
        "default_priority_level": "4",
        "priority_queue_policy": {"1": {}, "2": {}, "3": {}, "4": {"max_queue_size": 6}},
    }
    assert merge.changes == ("default_priority_level: 1 -> 4", "priority_queue_policy 1: max_queue_size: 5 -> empty")
    assert merge.kept == ("priority_levels: 4", "priority_queue_policy 4: max_queue_size: 6")


def test_plain_takes_the_levels_out_and_tells():
    merge = merged(
        of_lines(
            """
            dynamic_batching {
              priority_levels: 2
              max_queue_delay_microseconds: 100 # short
              default_priority_level: 2 # the last
              priority_queue_policy [
                # one
                { key: 1 value { max_queue_size: 16 } }
              ]
            }
            """
        ),
        _PLAIN,
    )
    assert merge.text == of_lines(
        """
        dynamic_batching {
          max_queue_delay_microseconds: 100 # short
          # the last
        }
        """
    )
    assert merge.changes == (
        "priority_levels: 2 -> removed",
        "default_priority_level: 2 -> removed",
        "priority_queue_policy 1: max_queue_size: 16 -> removed",
    )
    assert merge.kept == ("max_queue_delay_microseconds: 100",)


@pytest.mark.parametrize("scheduler", ["sequence_batching", "ensemble_scheduling"])
def test_another_scheduler_is_refused_where_it_stands(scheduler):
    with pytest.raises(PbtxtError) as caught:
        merged(f'name: "m"\n{scheduler} {{ }}')
    assert (caught.value.kind, caught.value.line) == ("unsupported", 2)
    assert caught.value.what == f"{scheduler} excludes dynamic_batching"


def test_more_levels_than_anybody_can_read_are_refused():
    assert merged(f"dynamic_batching {{ priority_levels: {MOST_LEVELS} }}").text.count("key:") == MOST_LEVELS
    with pytest.raises(PbtxtError, match=r"^m/config\.pbtxt:1:20: priority_levels is over"):
        merged(f"dynamic_batching {{ priority_levels: {MOST_LEVELS + 1} }}")
    with pytest.raises(PbtxtError, match="levels are asked for"):
        merged("", Batching(MOST_LEVELS + 1))
    assert merged("dynamic_batching { priority_levels: 99999 }", _PLAIN).text == "dynamic_batching { }"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_comment_written_earlier_is_replaced_and_no_other(end):
    first = Batching(None, comments=("No levels.", "", "None."))
    second = Batching(2, comments=("Two levels.",), former=(("Unknown.",), first.comments))
    text = f'name: "m"{end}# Mine.{end}'
    before = merged(text, first).text
    ours = f"# No levels.{end}#{end}# None.{end}"
    assert f"{ours}{_BLOCK} " in before
    after = merged(before, second).text
    assert after.startswith(f"{text}{end}# Two levels.{end}{_BLOCK} ")
    assert "No levels" not in after
    assert merged(after, second).text == after
    for edited in (
        before.replace(ours, f"{ours}# My own.{end}"),
        before.replace("# No levels.", "#  # No levels."),
        before.replace("# No levels.", "version_policy { } # No levels."),
    ):
        start = edited.index(_BLOCK)
        assert merged(edited, second).text[:start] == edited[:start]
