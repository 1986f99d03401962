# SPDX-License-Identifier: Apache-2.0
"""`probe` asks as a class where no tensor may name one."""

import pytest
from priority_router.ops import cli
from support.clients import metrics
from support.fleet import eventually
from support.models import INTERACTIVE, Executor, Router, write_pair, write_router

ANSWERED = f'priority_router_requests_total{{class="{INTERACTIVE}",model="router",outcome="success"}}'


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("probe_header") / "repository"
    repository.mkdir()
    write_pair(repository, Router(policy={"class_sources": ["header:X-Class"]}))
    write_router(repository, Router("by_parameter", policy={"class_sources": ["parameter"]}), Executor())
    forward = [f"--{wire}-header-forward-pattern=(?i)^x-class$" for wire in ("http", "grpc")]
    return start_server(repository, extra_args=forward)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_header_names_the_class(server, capsys, protocol):
    words = ["probe", "--url", f"{protocol}://{getattr(server, protocol)}"]
    before = metrics(server.metrics)[ANSWERED]
    assert cli.main([*words, "--header", f"X-Class: {INTERACTIVE}"]) == 0
    assert cli.main([*words, "--header", "X-Class: gold"]) == 1
    assert "class 'gold' is unknown" in capsys.readouterr().err
    assert cli.main([*words, "--class", INTERACTIVE]) == 0, "the tensor does not count here"
    eventually(lambda: metrics(server.metrics)[ANSWERED] == before + 1)


@pytest.mark.parametrize("word", ["X-Class", ": online", "X Class: online", "X-Class: on\nline"])
def test_what_is_no_header(capsys, word):
    with pytest.raises(SystemExit) as ended:
        cli.main(["probe", "--header", word])
    assert ended.value.code == 2
    assert "write 'NAME: VALUE'" in capsys.readouterr().err


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_where_a_parameter_alone_names_the_class_it_does(server, capsys, protocol):
    words = ["probe", "--url", f"{protocol}://{getattr(server, protocol)}", "--model", "by_parameter"]
    assert cli.main([*words, "--class", INTERACTIVE]) == 0
    assert cli.main([*words, "--class", "gold"]) == 1
    assert "class 'gold' is unknown" in capsys.readouterr().err
