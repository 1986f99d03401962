// SPDX-License-Identifier: Apache-2.0
/* A stand-in for libtriton_python.so, and under another name for any other library that calls Triton's C API. */
#define _GNU_SOURCE
#include "core.h"

struct fake_error *call_set_int(struct fake_request *request, const char *key, int64_t value)
{
    struct fake_error *error = TRITONSERVER_InferenceRequestSetIntParameter(request, key, value);
    __asm__ volatile("" : "+r"(error)); /* No tail call: the return address must lie in this library. */
    return error;
}

struct fake_error *call_new(struct fake_request **request, const char *model, int64_t version)
{
    struct fake_error *error = TRITONSERVER_InferenceRequestNew(request, 0, model, version);
    __asm__ volatile("" : "+r"(error));
    return error;
}
