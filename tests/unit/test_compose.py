# SPDX-License-Identifier: Apache-2.0
"""compose.yaml against what `serve` does and what the shipped policy says."""

import re
from pathlib import Path

import pytest
from priority_router.config import load_policy
from priority_router.ops.server.process import STOP_SECONDS
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PROFILES = {"gpu": "Dockerfile", "cpu": "deploy/cpu/Dockerfile"}
SERVICES = YAML(typ="safe").load(ROOT / "compose.yaml")["services"]


def test_each_service_starts_by_its_profile_alone():
    assert {name: service["profiles"] for name, service in SERVICES.items()} == {name: [name] for name in PROFILES}


@pytest.mark.parametrize("name", PROFILES)
def test_services_are_for_this_machine_alone_and_have_the_time_to_stop(name):
    service = SERVICES[name]
    assert service["ports"] == [f"127.0.0.1:{port}:{port}" for port in (8000, 8001, 8002)]
    assert float(service["stop_grace_period"].removesuffix("s")) > STOP_SECONDS
    assert all(volume.endswith(":/models:ro") for volume in service["volumes"])
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert (ROOT / service["build"].get("dockerfile", "Dockerfile")) == ROOT / PROFILES[name]


@pytest.mark.parametrize("name", PROFILES)
def test_health_is_asked_as_the_most_urgent_class_of_the_shipped_policy(name):
    check = SERVICES[name]["healthcheck"]
    words = check["test"]
    policy = load_policy(ROOT / "model_repository/router/1/policy.toml")
    levels = {one.name: one.level for one in policy.scheduling.classes}
    assert levels[words[words.index("--class") + 1]] == min(levels.values())
    assert float(words[words.index("--timeout") + 1]) < float(check["timeout"].removesuffix("s"))


def test_containers_open_no_administrative_api_and_are_reached_from_this_machine_alone():
    for name, file in PROFILES.items():
        started = (ROOT / file).read_text().partition("\nENTRYPOINT ")[2]
        assert "--host=0.0.0.0" in started
        assert "--open-api" not in started + str(SERVICES[name].get("command", ""))
        assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


@pytest.mark.parametrize("name", PROFILES)
def test_an_image_is_not_root_and_asks_the_router_for_its_health_by_itself(name):
    last = (ROOT / PROFILES[name]).read_text().rpartition("\nFROM ")[2].replace("\\\n", " ")
    settings = dict(re.findall(r"^([A-Z]+) +(.*)$", last, re.MULTILINE))
    assert settings["USER"] == "1000:1000"
    assert re.search(r' CMD +\["priority-router", "probe"', settings["HEALTHCHECK"])
    assert '"priority-router", "serve"' in re.sub(r" +", " ", settings["ENTRYPOINT"])


def test_only_the_gpu_service_reserves_devices_and_takes_nvidias_base():
    assert SERVICES["gpu"]["build"]["args"] == ["TRITON_IMAGE"]
    file = (ROOT / "Dockerfile").read_text()
    base = re.search(r"^ARG TRITON_IMAGE=\S+:(\d\d)\.(\d\d)-py3$", file, re.MULTILINE)
    assert base
    assert (int(base[1]), int(base[2])) >= (24, 11), "its Python is too old"
    assert "embedded" not in file.partition("\nFROM ")[2], "NVIDIA's server is there"
    (device,) = SERVICES["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
    assert "deploy" not in SERVICES["cpu"]
