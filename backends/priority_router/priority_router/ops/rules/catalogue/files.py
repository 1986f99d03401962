# SPDX-License-Identifier: Apache-2.0
"""Rules about the files of a model: PR0xx."""

from __future__ import annotations

from typing import Final

from priority_router.ops.rules.finding import Rule, Severity

UNPARSABLE: Final = Rule(
    "PR001",
    Severity.ERROR,
    "config.pbtxt cannot be read",
    "Triton does not load the model.",
    "Correct the place that the finding names.",
)
UNKNOWN_FIELD: Final = Rule(
    "PR002",
    Severity.ERROR,
    "Unknown field in config.pbtxt",
    "Triton's configuration has no such field, and it does not load the model.",
    "Write the real field, which the finding names where there is one like it, or remove the line.",
)
PLACEHOLDER: Final = Rule(
    "PR003",
    Severity.ERROR,
    "Placeholder left in config.pbtxt",
    "A template was not filled in. Triton refuses a placeholder where a number stands, and takes it literally for a "
    "name or a file.",
    "Write the value that is meant.",
)
POLICY_MISSING: Final = Rule(
    "PR004",
    Severity.ERROR,
    "Router without policy.toml",
    "The router does not load: its version folder must hold its policy.",
    "Put policy.toml into the version folder, beside nothing else.",
)
POLICY_UNUSABLE: Final = Rule(
    "PR005",
    Severity.ERROR,
    "policy.toml cannot be used",
    "The router does not load.",
    "Write what the finding says; docs/policy.md has every key.",
)
REPEATED_KEY: Final = Rule(
    "PR006",
    Severity.WARNING,
    "Key of a map written twice in config.pbtxt",
    "The last one wins and the others are dropped without a word.",
    "Keep one entry for each key.",
)
OCTAL: Final = Rule(
    "PR007",
    Severity.WARNING,
    "Octal number in config.pbtxt",
    "A number that begins with 0 is octal: 010 means 8.",
    "Write the number without the leading zero.",
)
NAME_DIFFERS: Final = Rule(
    "PR008",
    Severity.ERROR,
    "Name differs from the folder",
    "Triton refuses a model whose name is not that of its folder.",
    "Write the folder's name as name, or leave name out.",
)
NO_VERSION: Final = Rule(
    "PR009",
    Severity.ERROR,
    "No version to serve, or no model file in it",
    "Triton finds nothing to load. In 24.10 a Python model without model.py keeps the server loading for ever.",
    "Put the model's file into a folder named by its version, such as 1, that version_policy lets serve.",
)
MILLISECONDS: Final = Rule(
    "PR010",
    Severity.WARNING,
    "Timeout under a millisecond",
    "The field counts microseconds, and what was meant are most likely milliseconds: nearly every request would "
    "expire.",
    "Write the time in microseconds.",
)
LARGER_IS_HIGHER: Final = Rule(
    "PR011",
    Severity.WARNING,
    "Levels the wrong way round",
    "1 is the most urgent level. The other way round, background work is served before the work that people wait for.",
    "Give the most urgent class level 1, and let default_priority_level be the largest number.",
)
DUPLICATE: Final = Rule(
    "PR012",
    Severity.ERROR,
    "Model in more than one place",
    "Triton serves no model whose name several repositories have.",
    "Rename or remove all but one; the name of a model is that of its folder.",
)
DEAD_LINK: Final = Rule(
    "PR013",
    Severity.ERROR,
    "Link that leads nowhere",
    "Triton gives up the whole folder that such a link is in: the model, or every model of the repository. In a "
    "version folder it stands for a file without which the model does not load.",
    "Remove the link, or correct it.",
)
UNKNOWN_PLATFORM: Final = Rule(
    "PR014",
    Severity.ERROR,
    "Unknown platform",
    'Triton finds no backend by it and does not load the model ("unexpected platform type").',
    "Write the platform's real name, or the backend's as backend.",
)
POLICY_WITHOUT_ROUTER: Final = Rule(
    "PR015",
    Severity.ERROR,
    "policy.toml in a model that is no router",
    "Only the backend priority_router reads a policy.toml. Triton does not load the model, or runs it without any "
    "classes.",
    'Write backend: "priority_router", or remove policy.toml.',
)
LIKE_A_BACKEND: Final = Rule(
    "PR016",
    Severity.WARNING,
    "Unknown backend whose name is close to a known one",
    "Where the server has no backend of that name, it does not load the model.",
    "Write the name of the known backend, unless the server has one of that name.",
)
NO_BACKEND: Final = Rule(
    "PR017",
    Severity.ERROR,
    "Backend that Triton cannot tell",
    "With neither backend nor platform Triton goes by the model's file, whose name it must know; it does not load the "
    "model.",
    "Write backend, or give the file the name that its backend looks for.",
)
PARAMETER_PLACEHOLDER: Final = Rule(
    "PR018",
    Severity.WARNING,
    "Placeholder in a parameter of config.pbtxt",
    "Triton hands the text of a parameter on as it is. Unless the model fills it in by itself, a template was not.",
    "Write the value that is meant.",
)
REFUSED_VALUE: Final = Rule(
    "PR019",
    Severity.ERROR,
    "Value that Triton refuses",
    "Triton does not load a model with a negative max_batch_size, a length below 1 that is not -1, a tensor without a "
    "data type, or GPUs for instances on the CPU.",
    "Write a value that is allowed.",
)
