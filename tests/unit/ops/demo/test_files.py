# SPDX-License-Identifier: Apache-2.0
"""Which files the demonstration takes."""

from __future__ import annotations

from collections import Counter

from priority_router.ops.demo import files, filetype

TEXT = b"some text that is long enough\n"


def write(folder, *names, content=TEXT):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def names(samples):
    return sorted(sample.path.name for sample in samples)


def test_every_kind_has_about_the_same_share(tmp_path):
    write(tmp_path, *(f"{n}.py" for n in range(50)), *(f"{n}.md" for n in range(50)), "one.c")
    taken = Counter(sample.kind for sample in files.collect([tmp_path], 21, seed=1))
    assert taken == {".c": 1, ".md": 10, ".py": 10}


def test_the_same_seed_gives_the_same_files_and_another_one_others(tmp_path):
    write(tmp_path, *(f"{n}.py" for n in range(50)))
    first, again, other = (names(files.collect([tmp_path], 10, seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_files_that_say_nothing_to_the_model_and_foreign_folders_are_left_out(tmp_path):
    write(tmp_path, "short.py", content=b"x = 1")
    write(tmp_path, "good.py", ".git/config.py", ".venv/lib/x.py", "lib/site-packages/y.py", "nosuffix")
    assert names(files.collect([tmp_path], 10, seed=1)) == ["good.py"]


def test_files_that_cannot_be_read_are_left_out(tmp_path, monkeypatch):
    write(tmp_path, "a.py", "b.py")
    original = filetype.features_of_file

    def refuse(path):
        if path.name == "a.py":
            raise PermissionError(path)
        return original(path)

    monkeypatch.setattr(filetype, "features_of_file", refuse)
    assert names(files.collect([tmp_path], 10, seed=1)) == ["b.py"]


def test_samples_carry_one_row(tmp_path):
    write(tmp_path, "a.py")
    (sample,) = files.collect([tmp_path], 1, seed=1)
    assert sample.features.shape == (1, 2048)
    assert bytes(sample.features[0, : len(TEXT) - 1].tolist()) == TEXT.strip()


def test_kinds_are_counted_and_the_many_cut_short(tmp_path):
    write(tmp_path, "a.py", "b.py", "c.md", "d.c")
    samples = files.collect([tmp_path], 10, seed=1)
    assert files.kinds(samples) == "2 .py, 1 .c, 1 .md"
    assert files.kinds(samples, most=2) == "2 .py, 1 .c and 1 more kinds"
