// SPDX-License-Identifier: Apache-2.0
/*
 * Reads commands, one a line, and answers each with one line of JSON. Linked with the fake core it stands for
 * tritonserver; built with -DLATE it opens the core by itself, as an in-process Python server does.
 *
 *   set CALLER KEY VALUE        CALLER: main, or the path of a library built from python_backend.c
 *   new CALLER VERSION MODEL
 *   wait WHERE MICROSECONDS DONE_AFTER SIGNAL   WHERE: local, member, outside; times in us; DONE_AFTER -1 = never
 *   idle MICROSECONDS MILLISECONDS DONE_AFTER SIGNAL   waits of so many us, one after the other, for so many ms
 *   until SECONDS NANOSECONDS   one wait in the core with that deadline
 *   env NAME
 *   shell COMMAND               runs it as a child process; answers with its first line of output
 *   race CALLER THREADS         every thread makes its first call of each hook at the same moment
 *   reopen FIRST SECOND TIMES   two threads, each opens its library, sets a level from it, and closes it, so many times
 *   ticks MICROSECONDS          from now on a signal comes that often; answers how many came until now
 *   fork COMMAND                the command in a child that goes on as the program it was
 */
#define _GNU_SOURCE
#include "core.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct fake_error *set_fn(struct fake_request *, const char *, int64_t);
typedef struct fake_error *new_fn(struct fake_request **, const char *, int64_t);
typedef struct fake_wait wait_fn(int, long, atomic_int *);

static void *library_symbol(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, name) : NULL;
    if (symbol == NULL) {
        fprintf(stderr, "driver: %s\n", dlerror());
        exit(2);
    }
    return symbol;
}

#ifdef LATE
/* Nothing of Triton is linked here: only calls that go through a library are possible. */
static set_fn *main_set;
static new_fn *main_new;
static struct fake_wait core_wait(int mutex, long microseconds, atomic_int *done)
{
    return ((wait_fn *)library_symbol(getenv("FAKE_CORE"), "fake_core_wait"))(mutex, microseconds, done);
}
static struct fake_idle core_idle(long microseconds, long milliseconds, atomic_int *done)
{
    typedef struct fake_idle idle_fn(long, long, atomic_int *);
    return ((idle_fn *)library_symbol(getenv("FAKE_CORE"), "fake_core_idle"))(microseconds, milliseconds, done);
}
static void core_signal(void)
{
}
static int core_wait_until(struct timespec deadline)
{
    (void)deadline;
    return -1;
}
#else
static struct fake_error *main_set(struct fake_request *request, const char *key, int64_t value)
{
    return TRITONSERVER_InferenceRequestSetIntParameter(request, key, value);
}
static struct fake_error *main_new(struct fake_request **request, const char *model, int64_t version)
{
    return TRITONSERVER_InferenceRequestNew(request, NULL, model, version);
}
#define core_wait fake_core_wait
#define core_idle fake_core_idle
#define core_signal fake_core_signal
#define core_wait_until fake_core_wait_until
#endif

static set_fn *set_from(const char *caller)
{
    return strcmp(caller, "main") == 0 ? main_set : (set_fn *)library_symbol(caller, "call_set_int");
}

static new_fn *new_from(const char *caller)
{
    return strcmp(caller, "main") == 0 ? main_new : (new_fn *)library_symbol(caller, "call_new");
}

static struct fake_wait outside_wait(long microseconds, atomic_int *done)
{
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    return fake_wait(&own, &condition, microseconds, done);
}

struct change {
    long delay;
    int signal;
    atomic_int done;
};

static void *finish(void *data)
{
    struct change *change = data;
    usleep((useconds_t)change->delay);
    atomic_store(&change->done, 1);
    if (change->signal)
        core_signal();
    return NULL;
}

static void run_wait(const char *where, long microseconds, long done_after, int signal)
{
    struct change change = {done_after, signal, 0};
    struct timespec start, end;
    struct fake_wait wait;
    pthread_t thread;

    clock_gettime(CLOCK_MONOTONIC, &start);
    if (done_after >= 0)
        pthread_create(&thread, NULL, finish, &change);
    if (strcmp(where, "outside") == 0)
        wait = outside_wait(microseconds, &change.done);
    else
        wait = core_wait(strcmp(where, "local") == 0 ? LOCAL : MEMBER, microseconds, &change.done);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (done_after >= 0)
        pthread_join(thread, NULL);
    printf("{\"ms\": %.3f, \"wakeups\": %ld, \"timed_out\": %s}\n",
           (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) / 1e6, wait.wakeups,
           wait.result == ETIMEDOUT ? "true" : "false");
}

/* A change with a signal leaves the waiter waiting: it is a wake-up with nothing to do. */
static void run_idle(long microseconds, long milliseconds, long done_after, int signal)
{
    struct change change = {done_after, signal, 0};
    atomic_int never = 0;
    struct fake_idle idle;
    pthread_t thread;

    if (done_after >= 0)
        pthread_create(&thread, NULL, finish, &change);
    idle = core_idle(microseconds, milliseconds, signal ? &never : &change.done);
    if (done_after >= 0)
        pthread_join(thread, NULL);
    printf("{\"waits\": [");
    for (int i = 0; i < idle.waits; i++)
        printf("%s[%.3f, %s]", i > 0 ? ", " : "", idle.milliseconds[i], idle.results[i] == ETIMEDOUT ? "true" : "false");
    puts("]}");
}

struct racer {
    pthread_barrier_t *barrier;
    set_fn *set;
    new_fn *new, *new_of_main;
    bool right;
};

/* Whether a client's request is refused, which one in a program that opens the core by itself cannot even try. */
static bool is_refused(new_fn *new)
{
    struct fake_request *request = NULL;
    struct fake_error *error = new != NULL ? new(&request, "executor", 1) : NULL;
    bool refused = new == NULL || (error != NULL && request == NULL);

    free(error);
    free(request);
    return refused;
}

static void *race(void *data)
{
    struct racer *racer = data;
    struct fake_request *request = NULL;
    atomic_int done = 0;

    pthread_barrier_wait(racer->barrier);
    if (outside_wait(2000, &done).result == ETIMEDOUT && racer->new(&request, "free", 1) == NULL && request != NULL)
        racer->right = racer->set(request, "priority_router_level", 2) == NULL &&
                       (request->priority == 2 || request->value == 2) && is_refused(racer->new_of_main);
    free(request);
    racer->right = core_wait(ALONE, 2000, &done).result == ETIMEDOUT && racer->right;
    return NULL;
}

static void run_race(const char *caller, int count)
{
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    struct racer *racers = calloc((size_t)count, sizeof *racers);
    pthread_barrier_t barrier;
    int right = 0;

    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        racers[i] = (struct racer){&barrier, set_from(caller), new_from(caller), new_from("main"), false};
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        right += racers[i].right;
    }
    printf("{\"right\": %d}\n", right);
    free(threads);
    free(racers);
}

struct reopener {
    const char *path;
    int times, levels;
};

static void *reopen(void *data)
{
    struct reopener *reopener = data;

    for (int i = 0; i < reopener->times; i++) {
        struct fake_request request = {0};
        void *library = dlopen(reopener->path, RTLD_NOW | RTLD_LOCAL);
        set_fn *set = library != NULL ? (set_fn *)dlsym(library, "call_set_int") : NULL;
        if (set != NULL && set(&request, "priority_router_level", 2) == NULL)
            reopener->levels += request.priority == 2;
        if (library != NULL)
            dlclose(library);
    }
    return NULL;
}

static void run_reopen(const char *first, const char *second, int times)
{
    struct reopener reopeners[] = {{first, times, 0}, {second, times, 0}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, reopen, &reopeners[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("{\"levels\": [%d, %d]}\n", reopeners[0].levels, reopeners[1].levels);
}

static atomic_int ticks;

static void tick(int number)
{
    (void)number;
    atomic_fetch_add(&ticks, 1);
}

static void run_ticks(long microseconds)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, microseconds}, {0, microseconds}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    printf("{\"ticks\": %d}\n", atomic_load(&ticks));
}

static void run_shell(const char *command)
{
    char answer[2048] = "";
    FILE *child = popen(command, "r");
    if (fgets(answer, sizeof answer, child) != NULL)
        answer[strcspn(answer, "\n")] = '\0';
    printf("{\"output\": \"%s\", \"status\": %d}\n", answer, WEXITSTATUS(pclose(child)));
}

static void print_error(struct fake_error *error)
{
    if (error == NULL)
        printf("\"error\": null");
    else
        printf("\"error\": {\"code\": %d, \"text\": \"%s\"}", error->code, error->text);
    free(error);
}

int main(void)
{
    char buffer[4096], caller[2048], text[2048] = "";
    long long number;
    long microseconds, done_after;
    int signal, status;

    setlinebuf(stdout);
    while (fgets(buffer, sizeof buffer, stdin) != NULL) {
        struct fake_request blank = {0}, *request = NULL;
        const char *line = buffer;
        pid_t child = -1;
        buffer[strcspn(buffer, "\n")] = '\0';
        if (strncmp(line, "fork ", 5) == 0) {
            line += 5;
            child = fork();
            if (child > 0) {
                if (waitpid(child, &status, 0) != child || status != 0)
                    printf("{\"died\": %d}\n", status);
                continue;
            }
        }
        text[0] = '\0';
        if (sscanf(line, "set %2047s %2047s %lld", caller, text, &number) == 3) {
            struct fake_error *error = set_from(caller)(&blank, text, number);
            printf("{\"key\": \"%s\", \"value\": %lld, \"priority\": %llu, ", blank.key, (long long)blank.value,
                   (unsigned long long)blank.priority);
            print_error(error);
            puts("}");
        } else if (sscanf(line, "new %2047s %lld %2047[^\n]", caller, &number, text) >= 2) {
            struct fake_error *error = new_from(caller)(&request, text, number);
            printf("{\"model\": \"%s\", \"version\": %lld, ", request ? request->model : "",
                   request ? (long long)request->version : 0);
            print_error(error);
            puts("}");
            free(request);
        } else if (sscanf(line, "wait %2047s %ld %ld %d", caller, &microseconds, &done_after, &signal) == 4) {
            run_wait(caller, microseconds, done_after, signal);
        } else if (sscanf(line, "idle %ld %lld %ld %d", &microseconds, &number, &done_after, &signal) == 4) {
            run_idle(microseconds, (long)number, done_after, signal);
        } else if (sscanf(line, "until %ld %ld", &microseconds, &done_after) == 2) {
            struct timespec deadline = {.tv_sec = microseconds, .tv_nsec = done_after};
            printf("{\"result\": %d}\n", core_wait_until(deadline));
        } else if (sscanf(line, "ticks %ld", &microseconds) == 1) {
            run_ticks(microseconds);
        } else if (sscanf(line, "reopen %2047s %2047s %lld", caller, text, &number) == 3) {
            run_reopen(caller, text, (int)number);
        } else if (sscanf(line, "race %2047s %lld", caller, &number) == 2) {
            run_race(caller, (int)number);
        } else if (sscanf(line, "env %2047s", text) == 1) {
            const char *value = getenv(text);
            printf("{\"value\": \"%s\"}\n", value != NULL ? value : "");
        } else if (strncmp(line, "shell ", 6) == 0) {
            run_shell(line + 6);
        } else {
            fprintf(stderr, "driver: cannot read '%s'\n", line);
            return 2;
        }
        if (child == 0)
            return 0;
    }
    return 0;
}
