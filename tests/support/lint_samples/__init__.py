# SPDX-License-Identifier: Apache-2.0
"""The samples of all lint rules: each breaks one, and only that one."""

from __future__ import annotations

from typing import Final

from support.lint_samples import executor, files, promises, router, together
from support.lint_samples.files import FOUND_BY_READING
from support.lint_samples.sample import CLEAN, WITH_ENSEMBLE, Failure, Refusal, Sample

__all__ = ["CLEAN", "FOUND_BY_READING", "SAMPLES", "WITH_ENSEMBLE", "Failure", "Refusal", "Sample"]

SAMPLES: Final = (*files.SAMPLES, *executor.SAMPLES, *router.SAMPLES, *together.SAMPLES, *promises.SAMPLES)
"""Of rules about what configurations and policies mean."""
