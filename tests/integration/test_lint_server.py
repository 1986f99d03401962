# SPDX-License-Identifier: Apache-2.0
"""What the server makes of the samples of lint: it refuses what rules say that it refuses, and serves the others."""

import contextlib
import itertools
import json
import re
import shutil
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
import tritonclient.grpc
from priority_router.ops.lint.check import check
from priority_router.ops.server import Server
from priority_router.ops.server.readiness import is_live
from support import lint_samples, models, onnx_models
from support.lint_samples import CLEAN, FOUND_BY_READING, SAMPLES, Failure, Refusal, Sample
from support.server import running
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

MODEL = Path(lint_samples.__file__).parents[1] / "any_model.py"
EVERY = (Sample("", "clean", CLEAN, ()), *SAMPLES, *FOUND_BY_READING)
ONLY_LOADED = [sample for sample in EVERY[1:] if sample.shows is None]
"""Nothing is wrong with them as far as the server knows: they only take long."""


class LiveServer:
    """A server that loads models on demand, and another one where it has crashed.

    24.10 can crash while models come and go, on a busy machine once in some thousand loads, whatever is loaded; that
    says nothing about a sample.
    """

    def __init__(self, folder):
        self._folder = folder
        self._running = contextlib.ExitStack()
        self._starts = itertools.count()
        self.start()

    def start(self):
        self.close()
        self.repository = self._folder / f"models{next(self._starts)}"
        self.repository.mkdir()
        self.server = self._running.enter_context(
            running(self.repository, extra_args=["--model-control-mode=explicit"])
        )

    def close(self):
        self._running.close()

    @property
    def crashed(self):
        host, _, port = self.server.http.rpartition(":")
        return not is_live(host, int(port), timeout=30)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    with contextlib.closing(LiveServer(tmp_path_factory.mktemp("lint"))) as made:
        yield made


class Trial:
    """A sample in the server's repository, its models under names that no other sample has."""

    def __init__(self, live, sample):
        self.server, self.folder = live.server, live.repository
        self.sample = sample
        self.suffix = f"_{EVERY.index(sample)}"
        self.log_start = len(self.server.log_text())
        for path, text in sample.files.items():
            file = self.folder / self.named(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.name == "model.onnx" and sample.onnx:
                self.write_onnx(file)
            elif file.suffix == ".py":
                shutil.copy(MODEL, file)
            else:
                file.write_text(self.named(text))

    def named(self, text):
        return re.sub(r"\b(scorer|lane|second|whole)\b", rf"\1{self.suffix}", text)

    def write_onnx(self, file):
        node = onnx.helper.make_node("Identity", ["X"], ["Y"])
        shapes = [onnx_models.value(name, shape) for name, shape in self.sample.onnx.items()]
        onnx_models.write(file, [node], shapes[:1], shapes[1:])

    def refused(self, models):
        """Loads some models at once; what the server says of those that it refuses, by name."""
        with ThreadPoolExecutor(len(models)) as pool:
            errors = dict(zip(models, pool.map(lambda model: self.call(model, "load"), models), strict=True))
        return {model: error for model, error in errors.items() if error}

    def call(self, model, order):
        """Loads or unloads a model; what the server says against it."""
        url = f"http://{self.server.http}/v2/repository/models/{model}{self.suffix}/{order}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, b"{}", method="POST"), timeout=60):
                return None
        except urllib.error.HTTPError as error:
            # It keeps the reason to the log where a configuration cannot be used at all.
            return (json.loads(error.read())["error"] + self.server.log_text()[self.log_start :]).replace(
                self.suffix, ""
            )

    def ask(self, rows=1, extra=()):
        """One request through the router, with all inputs that it must have and some that it may."""
        name = f"lane{self.suffix}"
        with tritonclient.grpc.InferenceServerClient(self.server.grpc) as client:
            config = client.get_model_config(name, as_json=True)["config"]
            batch = [rows] if config.get("max_batch_size") else []
            inputs = []
            for tensor in config["input"]:
                if not tensor.get("optional") or tensor["name"] in extra:
                    data_type = tensor["data_type"].removeprefix("TYPE_").replace("STRING", "BYTES")
                    shape = batch + [3 if length == "-1" else int(length) for length in tensor["dims"]]
                    values = np.full(shape, b"online", object) if data_type == "BYTES" else np.zeros(shape)
                    entry = tritonclient.grpc.InferInput(tensor["name"], shape, data_type)
                    inputs.append(entry.set_data_from_numpy(values.astype(triton_to_np_dtype(data_type))))
            return client.infer(name, inputs, client_timeout=30)


@pytest.mark.parametrize(
    "sample",
    [pytest.param(sample, id=str(sample), marks=[pytest.mark.slow] * (sample in ONLY_LOADED)) for sample in EVERY],
)
def test_the_server_agrees(live, sample):
    try:
        agree(Trial(live, sample), sample)
    except OSError:
        if not live.crashed:
            raise
        live.start()
        agree(Trial(live, sample), sample)


def agree(trial, sample):
    if isinstance(sample.shows, Refusal):
        refused = trial.refused([sample.shows.model])
        assert re.search(sample.shows.text, refused[sample.shows.model])
        return
    # Ensembles load the models that they call.
    models = {path.partition("/")[0] for path in sample.files}
    try:
        assert trial.refused(sorted(models - {"whole"})) == {}
        assert "whole" not in models or trial.call("whole", "load") is None
        if isinstance(sample.shows, Failure):
            with pytest.raises(InferenceServerException) as failure:
                trial.ask(sample.shows.rows, sample.shows.tensors)
            assert re.search(sample.shows.text, failure.value.message())
        elif sample.asked:
            trial.ask()
    finally:
        for model in models:
            trial.call(model, "unload")


def test_the_server_refuses_a_model_with_a_dead_link_and_one_in_two_places(tmp_path):
    """PR013 and PR012, whose samples are no text; without the link, and the second place, it loads them."""
    one, two = tmp_path / "one", tmp_path / "two"
    places = {"linked": [one], "twice": [one, two]}
    for name, repositories in places.items():
        for repository in repositories:
            models.write_executor(repository, models.Executor(name))
    link = one / "linked" / "gone"
    link.symlink_to("/nowhere/at/all")

    def found():
        return [located.finding.rule.code for located in check([one, two]).found]

    assert found() == ["PR013", "PR012"]
    explicit = ["--model-control-mode=explicit"]
    with (
        Server([one, two], log=tmp_path / "log", extra_args=explicit) as server,
        tritonclient.grpc.InferenceServerClient(server.grpc) as client,
    ):
        for name in places:
            with pytest.raises(InferenceServerException, match="failed to poll"):
                client.load_model(name)
        link.unlink()
        shutil.rmtree(two / "twice")
        assert found() == []
        for name in places:
            client.load_model(name)
            assert client.is_model_ready(name)
