// SPDX-License-Identifier: Apache-2.0
/* What the fakes share. */
#pragma once
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

struct fake_error {
    int code;
    char text[2048];
};

struct fake_request {
    char model[512], key[64];
    int64_t version, value;
    uint64_t priority;
};

struct fake_wait {
    long wakeups;
    int result;
};

enum { MOST_WAITS = 64 };

struct fake_idle {
    int waits;
    double milliseconds[MOST_WAITS];
    int results[MOST_WAITS];
};

struct fake_error *TRITONSERVER_InferenceRequestNew(struct fake_request **, void *, const char *, int64_t);
struct fake_error *TRITONSERVER_InferenceRequestSetIntParameter(struct fake_request *, const char *, int64_t);
/* Whose mutex: a member's, one of the waiting frame, or that with a condition of its own, which nobody else waits for. */
enum { MEMBER, LOCAL, ALONE };
struct fake_wait fake_core_wait(int mutex, long microseconds, atomic_int *done);
int fake_core_wait_until(struct timespec deadline);
struct fake_idle fake_core_idle(long microseconds, long milliseconds, atomic_int *done);
void fake_core_signal(void);

static inline struct timespec fake_deadline(long microseconds)
{
    struct timespec deadline;

    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += microseconds / 1000000;
    deadline.tv_nsec += microseconds % 1000000 * 1000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec += 1;
        deadline.tv_nsec -= 1000000000;
    }
    return deadline;
}

/* Waits as std::condition_variable::wait_for with a predicate does, inlined into whichever object uses it. */
static inline __attribute__((always_inline)) struct fake_wait fake_wait(pthread_mutex_t *mutex, pthread_cond_t *condition,
                                                                        long microseconds, atomic_int *done)
{
    struct fake_wait wait = {0, 0};
    struct timespec deadline = fake_deadline(microseconds);

    pthread_mutex_lock(mutex);
    while (!atomic_load(done) && wait.result == 0) {
        wait.result = pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &deadline);
        wait.wakeups++;
    }
    pthread_mutex_unlock(mutex);
    return wait;
}
