# SPDX-License-Identifier: Apache-2.0
"""What wrap writes where, what it leaves alone, and what it refuses to touch."""

from __future__ import annotations

import re
import tomllib

import pytest
from google.protobuf import text_format
from priority_router.config import load_policy
from priority_router.errors import PriorityRouterError
from priority_router.ops.wrap import options, plan
from support import onnx_models
from support.bare_models import IDENTITY, model, snapshot, with_data
from tritonclient.grpc.model_config_pb2 import ModelConfig


def make(source, repository, *words):
    return plan.make(options.parse([str(source), "--into", str(repository), *words]))


def wrap(source, repository, *words):
    made = make(source, repository, *words)
    made.carry_out()
    return made


def states(made):
    return made.executor.state.value, made.router.state.value


def refusal(source, repository, *words):
    before = snapshot(repository.parent)
    with pytest.raises(PriorityRouterError) as refused:
        wrap(source, repository, *words)
    assert snapshot(repository.parent) == before
    return str(refused.value)


def config(path):
    return text_format.Parse((path / "config.pbtxt").read_text(), ModelConfig())


@pytest.fixture
def repository(tmp_path):
    return tmp_path / "repository"


@pytest.fixture
def outside(tmp_path):
    return model(tmp_path / "somewhere" / "model", files={"1/weights": "w" * 1000})


def test_a_model_from_elsewhere_is_copied_under_its_own_name(outside, repository):
    before = snapshot(outside)
    made = wrap(outside, repository)
    assert states(made) == ("new", "new")
    assert snapshot(outside) == before
    assert sorted(snapshot(repository)) == [
        *("model", "model/1", "model/1/model.py", "model/1/weights", "model/config.pbtxt"),
        *("model_router", "model_router/1", "model_router/1/policy.toml", "model_router/config.pbtxt"),
    ]
    assert load_policy(repository / "model_router" / "1" / "policy.toml").executor == "model"


def test_its_own_name_is_that_of_its_configuration(tmp_path, repository):
    wrap(model(tmp_path / "a-checkout"), repository)
    assert sorted(path.name for path in repository.iterdir()) == ["model", "model_router"]


def test_a_model_that_lies_in_the_repository_is_edited_in_its_place(repository):
    folder = model(repository / "model")
    inode = (folder / "1" / "model.py").stat().st_ino
    made = wrap(folder, repository, "--router-name", "front")
    assert states(made) == ("edited", "new")
    assert (folder / "1" / "model.py").stat().st_ino == inode
    assert config(folder).dynamic_batching.priority_levels == 2
    assert (repository / "front" / "1" / "policy.toml").exists()


def test_a_link_in_the_repository_counts_as_lying_there(outside, repository):
    repository.mkdir()
    (repository / "model").symlink_to(outside)
    assert states(wrap(repository / "model", repository)) == ("edited", "new")
    assert states(wrap(outside, repository)) == ("unchanged", "unchanged")
    assert states(wrap(outside, repository, "--class", "a:1", "--class", "b:3")) == ("edited", "edited")
    assert (repository / "model").is_symlink()
    assert config(outside).dynamic_batching.priority_levels == 3


def test_everything_of_the_owners_stays(outside, repository):
    wrap(outside, repository)
    text = (repository / "model" / "config.pbtxt").read_text()
    assert text.startswith(IDENTITY)
    merged, original = text_format.Parse(text, ModelConfig()), text_format.Parse(IDENTITY, ModelConfig())
    original.dynamic_batching.priority_levels = original.dynamic_batching.default_priority_level = 2
    for level in (1, 2):
        original.dynamic_batching.priority_queue_policy[level].SetInParent()
    assert merged == original


def test_wrapping_again_changes_nothing(outside, repository):
    wrap(outside, repository)
    before = snapshot(repository)
    for source in (outside, repository / "model"):
        made = wrap(source, repository)
        assert states(made) == ("unchanged", "unchanged")
        assert made.diff() == ""
        assert snapshot(repository) == before


def test_another_model_of_that_name_is_not_overwritten(outside, repository):
    wrap(outside, repository)
    (repository / "model" / "more").write_text("its own file, which is nobody's fault")
    (outside / "1" / "weights").write_text("newer")
    (outside / "2").mkdir()
    text = refusal(outside, repository)
    assert "1/weights, 2 differ or are missing" in text
    assert f"priority-router wrap {repository}/model --into {repository}" in text
    assert "1/weights" in refusal(outside, repository, "--force")


def test_other_levels_are_given_in_the_models_place(outside, repository):
    wrap(outside, repository)
    three = ("--class", "a:1", "--class", "b:3")
    assert "config.pbtxt differ" in refusal(outside, repository, *three)
    # The block itself is edited by ops/pbtxt; the router follows.
    wrap(repository / "model", repository, *three)
    policy = load_policy(repository / "model_router" / "1" / "policy.toml")
    assert [(one.name, one.level) for one in policy.scheduling.classes] == [("a", 1), ("b", 3)]


@pytest.mark.parametrize("name", ["config.pbtxt", "1/policy.toml"])
def test_an_edited_router_is_overwritten_only_by_force(outside, repository, name):
    wrap(outside, repository)
    original = snapshot(repository)
    path = repository / "model_router" / name
    path.write_text(path.read_text() + "# mine\n")
    text = refusal(outside, repository)
    assert f"{repository}/model_router: {name} was edited, or not written by this command; --force overwrites" in text
    assert states(wrap(outside, repository, "--force")) == ("unchanged", "edited")
    assert snapshot(repository) == original


def test_a_router_that_somebody_wrote_is_overwritten_only_by_force(outside, repository):
    model(repository / "model_router", 'backend: "priority_router"\n', {"1/policy.toml": "mine", "README": "keep"})
    assert "config.pbtxt, 1/policy.toml was edited, or not written" in refusal(outside, repository)
    wrap(outside, repository, "--force")
    assert (repository / "model_router" / "README").read_text() == "keep"
    assert load_policy(repository / "model_router" / "1" / "policy.toml").executor == "model"


def test_an_unedited_router_follows_its_model(repository):
    folder = model(repository / "model")
    wrap(folder, repository)
    text = (folder / "config.pbtxt").read_text().replace("max_batch_size: 4", "max_batch_size: 8")
    (folder / "config.pbtxt").write_text(text)
    assert states(wrap(folder, repository)) == ("unchanged", "edited")
    assert config(repository / "model_router").max_batch_size == 128


def test_a_missing_file_of_a_router_is_written_again(outside, repository):
    wrap(outside, repository)
    before = snapshot(repository)
    (repository / "model_router" / "1" / "policy.toml").unlink()
    (repository / "model_router" / "1").rmdir()
    wrap(outside, repository)
    assert snapshot(repository) == before


def test_the_classes_of_an_earlier_run_are_not_lost_for_the_teaching_ones(outside, repository):
    wrap(outside, repository, "--class", "a:1", "--class", "b:2")
    text = refusal(outside, repository)
    assert "has classes of its own" in text
    assert "repeat the options that they were written with, or add --force" in text
    wrap(outside, repository, "--class", "a:1", "--class", "c:2")
    wrap(outside, repository, "--force")


def test_the_router_of_another_model_is_not_taken_away(tmp_path, repository):
    wrap(model(tmp_path / "a", IDENTITY.replace('"model"', '"a"')), repository, "--router-name", "front")
    other = model(tmp_path / "b", IDENTITY.replace('"model"', '"b"'))
    text = refusal(other, repository, "--router-name", "front")
    assert "front: is the router of 'a'" in text
    wrap(other, repository, "--router-name", "front", "--force")
    assert load_policy(repository / "front" / "1" / "policy.toml").executor == "b"


def test_what_is_no_router_is_never_overwritten(outside, repository):
    model(repository / "model_router", IDENTITY)
    for words in ((), ("--force",)):
        assert "model_router: exists and is no router; take another --router-name" in refusal(
            outside, repository, *words
        )
    (repository / "file").write_text("")
    assert "is no router" in refusal(outside, repository, "--router-name", "file")


def test_a_broken_router_of_ours_is_still_a_router(outside, repository):
    wrap(outside, repository)
    (repository / "model_router" / "1" / "policy.toml").unlink()
    path = repository / "model_router" / "config.pbtxt"
    path.write_text(path.read_text() + "oops {")
    assert "is no router" in refusal(outside, repository, "--force")
    path.write_text('backend: "priority_router"\n')
    wrap(outside, repository, "--force")


def test_a_higher_version_would_be_served_instead(outside, repository):
    wrap(outside, repository)
    (repository / "model_router" / "2").mkdir()
    (repository / "model_router" / "2" / "policy.toml").write_text("")
    text = refusal(outside, repository, "--force")
    assert "2/policy.toml: Triton serves the highest version" in text
    assert "remove the folder 2" in text


@pytest.mark.parametrize("name", ["a b", "a/b", "..", "käse"])
def test_a_routers_name_must_be_one_that_triton_can_start(outside, repository, name):
    repository.mkdir()
    assert f"--router-name: {name!r} has letters" in refusal(outside, repository, "--router-name", name)


def test_a_name_too_long_for_a_file_system_is_refused(outside, repository):
    said = refusal(outside, repository, "--router-name", "r" * 300)
    assert (
        said
        == "--router-name: 'rrrrrrrrrrrrrrrrrrrr'... has 300 letters, and a file system takes 255; take a shorter one"
    )
    assert "has 256 letters" in refusal(
        model(repository.parent / "long", IDENTITY.replace('"model"', f'"{"m" * 249}"')), repository
    )
    assert wrap(outside, repository, "--router-name", "r" * 255).router.place.is_dir()


KINDS = (("--plain",), (), ("--executor-policies",))


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_the_comment_above_the_block_is_true_of_what_was_asked_for_last(outside, repository, first, second):
    wrap(outside, repository, *first)
    wrap(repository / "model", repository, *second)
    again = (repository / "model" / "config.pbtxt").read_text()
    comment = again[: again.index("dynamic_batching")]
    assert ("no levels" in comment, "are empty" in comment, "are for those who" in comment) == tuple(
        kind == second for kind in KINDS
    )
    assert comment.startswith(IDENTITY)
    fresh = make(outside, repository.parent / "fresh", *second).merge.text
    assert comment == fresh[: fresh.index("dynamic_batching")]


def test_a_router_has_a_name_of_its_own(outside, repository):
    repository.mkdir()
    assert "is the model's own name" in refusal(outside, repository, "--router-name", "model")


def test_what_is_no_repository_is_refused(outside, repository, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is no folder" in refusal(outside, tmp_path / "file")
    with pytest.raises(PriorityRouterError, match="only folders of this machine"):
        make(outside, "gs://bucket/models")
    other = model(tmp_path / "other")
    assert "is the folder of one model" in refusal(outside, other)
    assert "lies inside the model's own folder" in refusal(outside, outside / "repository")
    folder = model(repository / "another-name")
    assert "name is 'model' in a folder 'another-name', which Triton refuses" in refusal(folder, repository)
    (repository / "model").write_text("")
    assert "is in the way of the model and is no folder" in refusal(outside, repository)


def test_preserve_ordering_does_not_go_with_levels(outside, repository):
    repository.mkdir()
    ordered = "dynamic_batching {\n  preserve_ordering: true\n}\n"
    (outside / "config.pbtxt").write_text(IDENTITY + ordered)
    text = refusal(outside, repository)
    assert text.startswith(f"{outside}/config.pbtxt:9:3: ")
    assert "preserve_ordering and priority_levels: 2; remove it" in text
    assert "--plain" in text
    make(outside, repository, "--plain")
    make(outside, repository, "--class", "a:1")
    (outside / "config.pbtxt").write_text(IDENTITY + ordered.replace("true", "true priority_levels: 4"))
    assert "and priority_levels: 4" in refusal(outside, repository, "--class", "a:1")
    delaying = "true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5000 }"
    (outside / "config.pbtxt").write_text(IDENTITY + ordered.replace("true", delaying))
    assert "and timeout_action: DELAY in default_queue_policy" in refusal(outside, repository, "--class", "a:1")


def labelled(folder, **files):
    text = IDENTITY.replace("dims: [ 4 ] } ]\ninst", 'dims: [ 4 ] label_filename: "data/labels.txt" } ]\ninst')
    return model(folder, text, files)


def test_labels_are_copied_beside_the_routers_configuration(tmp_path, repository):
    wrap(labelled(tmp_path / "m", **{"data/labels.txt": "a\nb\n"}), repository)
    assert (repository / "model_router" / "data" / "labels.txt").read_text() == "a\nb\n"
    assert config(repository / "model_router").output[0].label_filename == "data/labels.txt"


def test_labels_that_lie_in_the_repository_already_are_found(tmp_path, repository):
    source = labelled(tmp_path / "m")
    made = wrap(source, repository)
    assert made.missing_labels == ("data/labels.txt",)
    (repository / "model" / "data").mkdir()
    (repository / "model" / "data" / "labels.txt").write_text("late")
    assert wrap(source, repository).missing_labels == ()
    assert (repository / "model_router" / "data" / "labels.txt").read_text() == "late"


def test_labels_that_were_edited_are_overwritten_only_by_force(tmp_path, repository):
    source = labelled(tmp_path / "m", **{"data/labels.txt": "a\n"})
    wrap(source, repository)
    path = repository / "model_router" / "data" / "labels.txt"
    path.write_text("mine")
    assert "data/labels.txt was edited" in refusal(source, repository)
    wrap(source, repository, "--force")
    assert path.read_text() == "a\n"


def test_a_bare_file_becomes_a_model(tmp_path, repository):
    file = onnx_models.doubling(tmp_path / "files" / "double.onnx")
    wrap(file, repository)
    assert sorted(name for name in snapshot(repository) if "router" not in name) == [
        *("double", "double/1", "double/1/model.onnx", "double/config.pbtxt")
    ]
    assert (repository / "double" / "1" / "model.onnx").read_bytes() == file.read_bytes()
    found = config(repository / "double")
    assert (found.max_batch_size, found.dynamic_batching.priority_levels) == (8, 2)
    assert config(repository / "double_router").max_batch_size == 128
    before = snapshot(repository)
    assert states(wrap(file, repository)) == ("unchanged", "unchanged")
    assert states(wrap(repository / "double", repository)) == ("unchanged", "unchanged")
    onnx_models.doubling(file, ("n", 5))
    assert "1/model.onnx, config.pbtxt differ" in refusal(file, repository)
    assert snapshot(repository) == before


def test_weights_of_a_bare_file_go_along(tmp_path, repository):
    wrap(with_data(tmp_path / "files"), repository)
    weights = (tmp_path / "files" / "weights.bin").read_bytes()
    assert (repository / "m" / "1" / "weights.bin").read_bytes() == weights


def test_a_diff_has_all_text_files_and_nothing_is_written(outside, repository):
    repository.mkdir()
    before = snapshot(repository.parent)
    diff = make(outside, repository).diff()
    assert snapshot(repository.parent) == before
    heads = re.findall(r"^(?:---|\+\+\+) (\S+)$", diff, re.MULTILINE)
    assert heads == [
        *(f"{outside}/config.pbtxt", f"{repository}/model/config.pbtxt"),
        *("/dev/null", f"{repository}/model_router/config.pbtxt"),
        *("/dev/null", f"{repository}/model_router/1/policy.toml"),
    ]
    assert "+  priority_levels: 2\n" in diff
    assert not re.search(r"^-(?!--)", diff, re.MULTILINE)


def test_a_diff_leaves_odd_line_ends_in_their_lines(outside, repository):
    text = IDENTITY.replace("\n", "\r\n") + "# a\x0cb\u2028c \udcff"
    (outside / "config.pbtxt").write_bytes(text.encode("utf-8", "surrogateescape"))
    diff = make(outside, repository).diff()
    assert " # The owner's own words.\r\n" not in diff  # not near the change
    assert "\\ No newline at end of file\n" in diff
    assert "# a\x0cb\u2028c \udcff\n" in diff


def test_the_policy_says_what_was_asked_for(outside, repository):
    words = ("--class", "a:1,max_queue=3,timeout=1s,override", "--class", "b:5", "--default-class", "a", "--plain")
    wrap(outside, repository, *words)
    policy = tomllib.loads((repository / "model_router" / "1" / "policy.toml").read_text())
    assert policy == {
        "policy_version": 1,
        "mode": "plain",
        "executor": "model",
        "default_class": "a",
        "unknown_class": "reject",
        "executor_shape": {"instances": 1, "max_batch_size": 4},
        "class": [
            {
                "name": "a",
                "level": 1,
                "max_queue_size": 3,
                "default_timeout_microseconds": 1_000_000,
                "allow_timeout_override": True,
            },
            {"name": "b", "level": 5, "allow_timeout_override": False},
        ],
    }
