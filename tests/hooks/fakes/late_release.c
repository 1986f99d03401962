// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into a real server: makes sure of what otherwise takes a busy machine and chance. The end of a batch wakes
 * the batcher, and an instant later the instance counts as free; here that instant lasts some tens of milliseconds, since
 * a thread that has run a batch is held after each of its wake-ups.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

enum { HOLD_MICROSECONDS = 10000 };

typedef void *release_fn(void *request, uint32_t flags);
typedef void notify_fn(void *condition);

release_fn TRITONBACKEND_RequestRelease;
notify_fn notify_one __asm__("_ZNSt18condition_variable10notify_oneEv");

static _Thread_local bool runs_batches;

void *TRITONBACKEND_RequestRelease(void *request, uint32_t flags)
{
    release_fn *release = dlsym(RTLD_NEXT, "TRITONBACKEND_RequestRelease");

    runs_batches = true;
    return release(request, flags);
}

void notify_one(void *condition)
{
    notify_fn *notify = dlsym(RTLD_NEXT, "_ZNSt18condition_variable10notify_oneEv");

    notify(condition);
    if (runs_batches)
        usleep(HOLD_MICROSECONDS);
}
