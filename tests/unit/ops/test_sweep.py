# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.errors import SetupError
from priority_router.ops import cli, sweep


@pytest.mark.parametrize(
    ("largest", "expected"), [(0, [1]), (1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (16, [1, 2, 4, 8, 16])]
)
def test_row_counts_up_to_the_models_own_limit(largest, expected):
    assert sweep.powers_of_two(largest) == expected


@pytest.mark.parametrize(("share", "expected"), [(0.5, 1), (0.95, 4), (1.0, 8)])
def test_the_smallest_that_is_good_enough(share, expected):
    assert sweep.smallest_efficient({1: 60.0, 2: 90.0, 4: 96.0, 8: 100.0, 16: 99.0}, share) == expected


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "grpc://127.0.0.1:8001", "http://"])
def test_what_is_no_http_address_is_refused(url, capsys):
    assert cli.main(["sweep", "--url", url]) == 1
    assert "write http://HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--rows", "1,x"], ["--rows", "0"], ["--instances", "0"], ["--seconds", "nan"]])
def test_wrong_use_is_status_2(words):
    with pytest.raises(SystemExit) as caught:
        cli.main(["sweep", *words])
    assert caught.value.code == 2


def test_more_rows_than_the_model_takes_are_refused_with_the_remedy():
    config = {"name": "m", "max_batch_size": 4, "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [2]}]}
    with pytest.raises(SetupError, match="m takes 4 rows at most, not 8; raise its max_batch_size"):
        sweep._question(config, 8)
