# SPDX-License-Identifier: Apache-2.0
"""Copies the file-type model of the installed magika package into model_repository, with labels, rules and a notice.

Run by scripts/setup with the environment's own Python. The files are not part of this repository.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import onnxruntime
from priority_router.errors import SetupError
from priority_router.ops import command_line

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = ROOT / "model_repository"
MODEL = "magika/models/standard_v3_3"
KINDS = "magika/config/content_types_kb.min.json"
WANTED = {"bytes": ("tensor(int32)", 2048), "target_label": ("tensor(float)", 214)}

NOTICE = """\
executor/1/model.onnx, labels.txt and file_type_label/1/rules.json come from the Python package magika, unchanged except
for the form of labels and rules.

package:  magika {version} ({home})
model:    {model}
sha256:   {digest}
licence:  {licence}, text in executor/1/LICENSE
"""


def rules(config: dict[str, Any], kinds: dict[str, Any]) -> dict[str, object]:
    """What file_type_label needs of the package: ``config`` is the model's, ``kinds`` describes every label."""
    overwrite = config["overwrite_map"]
    answers = {overwrite.get(label, label) for label in config["target_labels_space"]}
    return {
        "labels": config["target_labels_space"],
        "text_labels": sorted(label for label in answers if kinds[label]["is_text"]),
        "overwrite": overwrite,
        "thresholds": config["thresholds"],
        "medium_threshold": config["medium_confidence_threshold"],
    }


def copy() -> int:
    """Copies.

    Raises:
        SetupError: the installed package has another model.
    """
    package = importlib.metadata.distribution("magika")
    folder = Path(str(package.locate_file(MODEL)))
    source = folder / "model.onnx"
    if not source.is_file():
        raise SetupError(f"magika {package.version} has no {MODEL}/model.onnx; install magika 1.0")
    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    found = {port.name: (port.type, port.shape[-1]) for port in (*session.get_inputs(), *session.get_outputs())}
    config = json.loads((folder / "config.min.json").read_text())
    labels = config["target_labels_space"]
    if found != WANTED or len(labels) != WANTED["target_label"][1]:
        raise SetupError(
            f"{source} has {found} and {len(labels)} labels, the executor's config.pbtxt expects {WANTED}; "
            "install magika 1.0"
        )
    version_folder = REPOSITORY / "executor" / "1"
    version_folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, version_folder / "model.onnx")
    shutil.copyfile(ROOT / "LICENSE", version_folder / "LICENSE")
    for model in ("executor", "router"):
        (REPOSITORY / model / "labels.txt").write_text("\n".join(labels) + "\n")
    kinds = json.loads(Path(str(package.locate_file(KINDS))).read_text())
    (REPOSITORY / "file_type_label" / "1" / "rules.json").write_text(json.dumps(rules(config, kinds)) + "\n")
    notice = NOTICE.format(
        version=package.version,
        home=package.metadata["Home-Page"],
        model=MODEL,
        digest=hashlib.sha256(source.read_bytes()).hexdigest(),
        licence=package.metadata["License"],
    )
    (REPOSITORY / "executor" / "NOTICE.txt").write_text(notice)
    return 0


if __name__ == "__main__":
    sys.exit(command_line.exit_status("copy_model", copy))
