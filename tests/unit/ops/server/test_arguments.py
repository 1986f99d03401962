# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.errors import SetupError
from priority_router.ops.server import arguments


def read(*words, least_pool=32):
    return arguments.read(words, least_pool)


def test_unknown_options_pass_untouched():
    words = (
        "--log-verbose=1",
        "--model-control-mode",
        "explicit",
        "--load-model=a b",
        "--disable-auto-complete-config",
    )
    passed = read(*words)
    assert passed.words == words
    assert (passed.grpc, passed.metrics, passed.exit_on_error) == (True, True, True)


@pytest.mark.parametrize(
    "words",
    [
        ["--model-repository=/x"],
        ["--model-store", "/x"],
        ["--backend-directory=/x"],
        ["--http-port=1"],
        ["--log-verbose", "1", "--grpc-port", "1"],
        ["--metrics-port=1"],
        ["--http-address=0.0.0.0"],
        ["--grpc-address=0.0.0.0"],
        ["--metrics-address=0.0.0.0"],
        ["--http-po=1"],
    ],
)
def test_what_serve_sets_itself_is_refused_with_the_way_to_say_it(words):
    with pytest.raises(SetupError, match=r"cannot be passed on to tritonserver: (name it before|serve makes)"):
        read(*words)


def test_a_value_that_looks_like_an_option_of_ours_is_a_value():
    assert read("--id", "--http-port=1").words == ("--id", "--http-port=1")


def test_services_can_be_switched_off_except_http():
    passed = read("--allow-grpc=false", "--allow-metrics", "0", "--exit-on-error=false")
    assert (passed.grpc, passed.metrics, passed.exit_on_error) == (False, False, False)
    with pytest.raises(SetupError, match="over HTTP"):
        read("--allow-http=false")
    with pytest.raises(SetupError, match="write true or false"):
        read("--allow-grpc=maybe")


def test_backend_settings_of_the_user_are_known():
    passed = read("--backend-config=python,thread-pool-size=64", "--backend-config", "python,shm-default-byte-size=1")
    assert passed.backend_settings == {"thread-pool-size": "64", "shm-default-byte-size": "1"}
    assert read("--backend-config=onnxruntime,thread-pool-size=1").backend_settings == {}


@pytest.mark.parametrize("value", ["31", "0", "-1", "many", ""])
def test_a_pool_too_small_for_the_routers_is_refused_with_the_number(value):
    with pytest.raises(SetupError, match="at least 32"):
        read(f"--backend-config=python,thread-pool-size={value}")


def test_words_that_are_no_options_are_refused():
    with pytest.raises(SetupError, match="'stray' cannot be passed on"):
        read("--log-verbose=1", "stray")
