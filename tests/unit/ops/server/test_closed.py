# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.errors import SetupError
from priority_router.ops.server import arguments, closed
from priority_router.ops.server.closed import CLOSED


def given(*words):
    return arguments.read(words, None).restrictions


def test_everything_is_closed_in_both_protocols():
    key = "model-repository,shared-memory,trace,logging:priority-router-admin=secret"
    assert closed.words(CLOSED, "secret", ()) == [f"--http-restricted-api={key}", f"--grpc-restricted-protocol={key}"]
    assert closed.headers("secret", ()) == {"priority-router-admin": "secret"}


def test_what_is_opened_is_left_out_and_nothing_at_all_is_no_argument():
    assert closed.words(["trace"], "s", ())[0] == "--http-restricted-api=trace:priority-router-admin=s"
    assert closed.words([], "s", ()) == []


@pytest.mark.parametrize(
    "words", [["--http-restricted-api=trace, logging:admin=x=y"], ["--http-r", "trace, logging:admin=x=y"]]
)
def test_what_the_user_closes_is_the_users(words):
    restrictions = given(*words)
    http, grpc = closed.words(CLOSED, "s", restrictions)
    assert http == "--http-restricted-api=model-repository,shared-memory:priority-router-admin=s"
    assert grpc == "--grpc-restricted-protocol=model-repository,shared-memory,trace,logging:priority-router-admin=s"
    assert closed.headers("s", restrictions) == {"priority-router-admin": "s", "admin": "x=y"}


def test_a_key_of_grpc_opens_nothing_over_http():
    restrictions = given("--grpc-restricted-protocol=health:admin=x")
    assert closed.headers("s", restrictions) == {"priority-router-admin": "s"}


@pytest.mark.parametrize(
    "words", [["--http-restricted-api=trace"], ["--http-restricted-api=trace:x"], ["--http-thread-count=8"], []]
)
def test_what_is_no_restriction(words):
    assert given(*words) == ()


@pytest.mark.parametrize(
    ("words", "environ", "opened"),
    [
        (["--allow-vertex-ai=true"], {}, CLOSED),
        ([], {"AIP_MODE": "PREDICTION"}, CLOSED),
        (["--allow-sagemaker", "1"], {}, ["model-repository"]),
    ],
)
def test_front_ends_that_take_no_key_are_refused_until_the_same_is_open_for_all(words, environ, opened):
    passed = arguments.read(words, None)
    with pytest.raises(SetupError, match="takes no key") as refused:
        closed.check_front_ends(CLOSED, passed.sagemaker, passed.vertex_ai, environ)
    assert str(refused.value).endswith(" ".join(f"--open-api {api}" for api in opened))
    closed.check_front_ends(set(CLOSED) - set(opened), passed.sagemaker, passed.vertex_ai, environ)


@pytest.mark.parametrize(
    ("words", "environ"), [([], {}), (["--allow-vertex-ai=false"], {"AIP_MODE": "PREDICTION"}), ([], {"AIP_MODE": "x"})]
)
def test_front_ends_that_are_off_are_no_reason(words, environ):
    passed = arguments.read(words, None)
    closed.check_front_ends(CLOSED, passed.sagemaker, passed.vertex_ai, environ)
