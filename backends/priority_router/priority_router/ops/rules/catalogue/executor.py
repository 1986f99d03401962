# SPDX-License-Identifier: Apache-2.0
"""Rules about an executor, some of which hold for any model: PR1xx."""

from __future__ import annotations

from typing import Final

from priority_router.ops.rules.finding import Rule, Severity

NO_LEVELS: Final = Rule(
    "PR101",
    Severity.ERROR,
    "Executor without priority_levels",
    'With mode = "levels" the router calls at the level of a class. Without priority_levels Triton ignores it: calls '
    "are served in the order of arrival.",
    'Write the block of levels, or mode = "plain" into policy.toml.',
)
TOO_FEW_LEVELS: Final = Rule(
    "PR102",
    Severity.ERROR,
    "The policy uses levels that the executor does not have",
    "Triton turns a level above priority_levels into the default level without a word: order is lost.",
    "Raise priority_levels, and default_priority_level with it, to the largest level of the policy.",
)
DEFAULT_LEVEL: Final = Rule(
    "PR103",
    Severity.ERROR,
    "default_priority_level outside the levels",
    "With priority_levels it must be one of 1 to priority_levels; Triton does not load the model.",
    "Write the largest level, so that callers who name none do not become urgent.",
)
POLICY_KEY: Final = Rule(
    "PR104",
    Severity.ERROR,
    "priority_queue_policy for a level that does not exist",
    "Keys go from 1 to priority_levels; with any other Triton does not load the model.",
    "Remove the entry.",
)
NO_QUEUE_POLICY: Final = Rule(
    "PR105",
    Severity.WARNING,
    "Level without a queue policy of its own",
    "Triton removes the queue of such a level when it is empty, and a look for expired requests at that moment may "
    "read what is no longer there.",
    "Write an empty policy for every level.",
)
ORDER_CONFLICT: Final = Rule(
    "PR106",
    Severity.ERROR,
    "preserve_ordering against levels or DELAY",
    "It cannot be combined with several levels, nor with a timeout whose action is DELAY; Triton does not load the "
    "model.",
    "Remove preserve_ordering.",
)
KEPT_ORDER: Final = Rule(
    "PR107",
    Severity.WARNING,
    "preserve_ordering on the executor",
    "An answer waits for all that were asked for before it, also on other instances, and so does the router's next "
    "call.",
    "Remove preserve_ordering.",
)
QUEUE_DELAY: Final = Rule(
    "PR108",
    Severity.WARNING,
    "Queue delay",
    "On an executor it only adds to every wait: the router fills batches without. Together with levels or a queue "
    "policy and several instances throughput decays until the model is loaded anew (a fault of Triton, mended in "
    "2026).",
    "Remove max_queue_delay_microseconds.",
)
EXECUTOR_LIMITS: Final = Rule(
    "PR109",
    Severity.WARNING,
    "Queue limit or timeout on the executor",
    "It turns the router's calls away, each with all the requests that were joined in it. Without the dispatch hook "
    "it also makes Triton wait up to 500 ms between batches.",
    "Leave the queue policies empty and put limits and timeouts into [[class]] of policy.toml; where others call the "
    "executor as well, shared_executor = true says that the limits are meant for them.",
)
OVERRIDE_WITHOUT_TIMEOUT: Final = Rule(
    "PR110",
    Severity.ERROR,
    "allow_timeout_override without a default timeout, on an executor",
    "A request's own timeout can only shorten a default timeout that is not 0: without one it is ignored without a "
    "word.",
    "Write a default_timeout_microseconds, or remove allow_timeout_override.",
)
DELAY: Final = Rule(
    "PR111",
    Severity.NOTE,
    "DELAY starves under steady load",
    "What is past its timeout is served after all that is not, which under steady load is never; its caller waits on.",
    "Write REJECT, unless callers rather wait for ever than hear that it is too late.",
)
SMALL_QUEUE: Final = Rule(
    "PR112",
    Severity.WARNING,
    "max_queue_size below max_batch_size",
    "It counts waiting requests of each level, not rows, and not those that run: requests of one row can never fill a"
    " batch.",
    "Write at least max_batch_size.",
)
VARIABLE_DIMS: Final = Rule(
    "PR113",
    Severity.NOTE,
    "Variable dims: only equal shapes share a batch",
    "Requests of different lengths are never joined, so that batches stay small where each comes in a length of its "
    "own.",
    "Let clients pad to one length, or a few, and write the length where it is one.",
)
PREFERRED_SIZE: Final = Rule(
    "PR114",
    Severity.ERROR,
    "preferred_batch_size above max_batch_size, or without it",
    "Triton does not load the model; where max_batch_size is left for it to find, it says so in puzzling words.",
    "Remove preferred_batch_size, or write max_batch_size.",
)
UNUSABLE_EXECUTOR: Final = Rule(
    "PR115",
    Severity.ERROR,
    "Executor that a router cannot call",
    "Sequence batching needs requests of one caller in a row and decoupled models answer any number of times; a "
    "router joins requests of many callers and needs one answer for each call.",
    "Call a model with dynamic_batching and one answer for each request.",
)
RESPONSE_CACHE: Final = Rule(
    "PR116",
    Severity.WARNING,
    "Response cache on a router or its executor",
    "On the router answers pass its queue, limits and metrics by. On the executor they come in no time, and the "
    "router learns wrong times from them.",
    "Remove response_cache.",
)
FIXED_BATCH_AXIS: Final = Rule(
    "PR117",
    Severity.ERROR,
    "ONNX model with a fixed batch axis",
    "With max_batch_size above 0 the first dimension of every input and output must be free; Triton does not load the"
    " model otherwise.",
    "Export it with a free first dimension, or write max_batch_size: 0 everywhere and dims with that dimension.",
)
COUNT_MISSING: Final = Rule(
    "PR118",
    Severity.WARNING,
    "Number of the executor's instances left open",
    "Triton picks it, or the backend does: one on a CPU, two with onnxruntime or TensorFlow, and one for each GPU "
    "where there are any. The policy's executor_shape fits one of them at best.",
    "Write the count.",
)
ENSEMBLE_EXECUTOR: Final = Rule(
    "PR119",
    Severity.WARNING,
    "Ensemble as executor",
    "An ensemble has no queue, no levels and no instances of its own: executor_shape can fit one of its steps only, "
    "and calls that wait inside pass one another only at steps with levels.",
    "Name the step that does the work as executor, and call the router in its place in the ensemble.",
)
ONNX_DIFFERS: Final = Rule(
    "PR120",
    Severity.ERROR,
    "config.pbtxt and model.onnx differ",
    "onnxruntime refuses an input or output that its model does not have, or has with another type.",
    "Write the names and types of the ONNX model.",
)
OVERRIDE_ELSEWHERE: Final = Rule(
    "PR121",
    Severity.WARNING,
    "allow_timeout_override without a default timeout, on a model that no router calls",
    OVERRIDE_WITHOUT_TIMEOUT.why,
    OVERRIDE_WITHOUT_TIMEOUT.remedy,
)
STEP_MISSING: Final = Rule(
    "PR122",
    Severity.ERROR,
    "Ensemble step whose model is missing",
    "Triton does not load the ensemble.",
    "Correct model_name, or add the model.",
)
STEP_TENSOR: Final = Rule(
    "PR123",
    Severity.ERROR,
    "Ensemble step that maps a tensor its model does not have",
    "Triton does not load the ensemble.",
    "Write a name that the model has as the key of input_map or output_map.",
)
EVERY_GPU: Final = Rule(
    "PR124",
    Severity.NOTE,
    "Instance group of KIND_GPU without gpus",
    "Triton starts its count on each GPU of the machine, and executor_shape fits one number of GPUs alone.",
    "Write the GPUs that are meant, such as gpus: [ 0 ].",
)
