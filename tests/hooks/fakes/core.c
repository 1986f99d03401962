// SPDX-License-Identifier: Apache-2.0
/*
 * A stand-in for libtritonserver: remembers what it was asked, and waits the way Triton's batcher does. Built with -DOLD
 * it lacks what the hooks need beyond the functions they wrap, with -DBARE those functions themselves.
 */
#define _GNU_SOURCE
#include "core.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef BARE
struct fake_error *TRITONSERVER_InferenceRequestNew(struct fake_request **request, void *server, const char *model,
                                                    int64_t version)
{
    (void)server;
    *request = calloc(1, sizeof **request);
    strncpy((*request)->model, model, sizeof (*request)->model - 1);
    (*request)->version = version;
    return NULL;
}

struct fake_error *TRITONSERVER_InferenceRequestSetIntParameter(struct fake_request *request, const char *key,
                                                                int64_t value)
{
    strncpy(request->key, key, sizeof request->key - 1);
    request->value = value;
    return NULL;
}
#endif

#ifndef OLD
struct fake_error *TRITONSERVER_InferenceRequestSetPriorityUInt64(struct fake_request *request, uint64_t priority)
{
    if (priority == 666) { /* The one level that this core refuses. */
        struct fake_error *error = calloc(1, sizeof *error);
        error->code = 1;
        return error;
    }
    request->priority = priority;
    return NULL;
}

struct fake_error *TRITONSERVER_ErrorNew(int code, const char *text)
{
    struct fake_error *error = calloc(1, sizeof *error);
    error->code = code;
    strncpy(error->text, text, sizeof error->text - 1);
    return error;
}
#endif

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t member = PTHREAD_MUTEX_INITIALIZER;

struct fake_wait fake_core_wait(int mutex, long microseconds, atomic_int *done)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t alone = PTHREAD_COND_INITIALIZER;
    return fake_wait(mutex == MEMBER ? &member : &own, mutex == ALONE ? &alone : &condition, microseconds, done);
}

/* One wait with a mutex of its own and any deadline at all. */
int fake_core_wait_until(struct timespec deadline)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    int result;

    pthread_mutex_lock(&own);
    result = pthread_cond_clockwait(&condition, &own, CLOCK_MONOTONIC, &deadline);
    pthread_mutex_unlock(&own);
    return result;
}

static double milliseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Waits as the batcher does with nothing queued: whatever ended a wait, the next one has the whole time before it. */
struct fake_idle fake_core_idle(long microseconds, long milliseconds, atomic_int *done)
{
    struct fake_idle idle = {.waits = 0};
    double end = milliseconds_now() + (double)milliseconds;

    pthread_mutex_lock(&member);
    while (!atomic_load(done) && idle.waits < MOST_WAITS && milliseconds_now() < end) {
        double start = milliseconds_now();
        struct timespec deadline = fake_deadline(microseconds);
        idle.results[idle.waits] = pthread_cond_clockwait(&condition, &member, CLOCK_MONOTONIC, &deadline);
        idle.milliseconds[idle.waits++] = milliseconds_now() - start;
    }
    pthread_mutex_unlock(&member);
    return idle;
}

void fake_core_signal(void)
{
    pthread_cond_broadcast(&condition);
}
