// SPDX-License-Identifier: Apache-2.0
/*
 * Three hooks into a stock Triton server, loaded with LD_PRELOAD. docs/hooks.md says what each is for and which
 * properties of Triton's source it rests on.
 *
 *   priority   TRITONSERVER_InferenceRequestSetIntParameter: one reserved key of a BLS request becomes its priority.
 *   dispatch   pthread_cond_clockwait: the batcher's waits for work and a free instance are cut into short slices.
 *   guard      TRITONSERVER_InferenceRequestNew: named models refuse requests from the HTTP and gRPC front ends.
 *
 * Law: every child of the server inherits this library, so it changes nothing outside a server process, takes no lock
 * on the way of a call, and never ends a process. What it cannot do it leaves to the real function.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 35)
#error "the hooks need glibc 2.35 or newer (_dl_find_object)"
#endif

#define HOOK __attribute__((visibility("default")))

#define LEVEL_KEY "priority_router_level"
#define LOADED_ENV "PRIORITY_ROUTER_HOOKS_LOADED"
#define GUARDED_MODELS_ENV "PRIORITY_ROUTER_GUARDED_MODELS"
#define SLICE_ENV "PRIORITY_ROUTER_DISPATCH_SLICE_MICROSECONDS"
#define CORE_LIBRARY "libtritonserver"
#define PYTHON_BACKEND_LIBRARY "libtriton_python"

enum { DEFAULT_SLICE_MICROSECONDS = 100, LONGEST_SLICE_MICROSECONDS = 500000 };
enum { TRITONSERVER_ERROR_INTERNAL = 1, TRITONSERVER_ERROR_INVALID_ARG = 3 };

/* The batcher keeps that mutex in a frame of a few hundred bytes; every other one that Triton waits with is a member. */
enum { STACK_REACH_BYTES = 4096 };

typedef struct TRITONSERVER_Error triton_error;
typedef struct TRITONSERVER_InferenceRequest triton_request;
typedef struct TRITONSERVER_Server triton_server;

typedef int clockwait_fn(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
typedef triton_error *set_int_parameter_fn(triton_request *, const char *, int64_t);
typedef triton_error *set_priority_fn(triton_request *, uint64_t);
typedef triton_error *request_new_fn(triton_request **, triton_server *, const char *, int64_t);
typedef triton_error *error_new_fn(int, const char *);

HOOK set_int_parameter_fn TRITONSERVER_InferenceRequestSetIntParameter;
HOOK request_new_fn TRITONSERVER_InferenceRequestNew;

/* Shared with the router, which maps it read-only: priority_router/hooks.py knows this layout. */
struct counters {
    char magic[8];
    _Atomic uint64_t priorities_set;
    _Atomic uint64_t waits_cut;
    _Atomic uint64_t calls_refused;
    _Atomic uint64_t idle_waits_cut;
};
_Static_assert(sizeof(struct counters) == 40, "the layout is fixed");

/* All zero, and thus inert, until start() has found a server process; constant from then on. */
static struct {
    bool priority, dispatch, guard;
    long slice_nanoseconds;
    char *guarded_models;
    struct counters *counters;
} active;

/* ---- The real functions ---------------------------------------------------------------------------------------- */

enum symbol { CLOCKWAIT, SET_INT_PARAMETER, SET_PRIORITY, REQUEST_NEW, ERROR_NEW, SYMBOLS };

static const char *const symbol_names[SYMBOLS] = {
    [CLOCKWAIT] = "pthread_cond_clockwait",
    [SET_INT_PARAMETER] = "TRITONSERVER_InferenceRequestSetIntParameter",
    [SET_PRIORITY] = "TRITONSERVER_InferenceRequestSetPriorityUInt64",
    [REQUEST_NEW] = "TRITONSERVER_InferenceRequestNew",
    [ERROR_NEW] = "TRITONSERVER_ErrorNew",
};

static bool file_is(const char *path, const char *stem)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(stem);

    /* "-" starts the hash that wheel tools put into the name of a bundled library. */
    return strncmp(name, stem, length) == 0 && (name[length] == '.' || name[length] == '-');
}

static int note_core_library(struct dl_phdr_info *object, size_t size, void *path)
{
    (void)size;
    if (!file_is(object->dlpi_name, CORE_LIBRARY))
        return 0;
    *(const char **)path = object->dlpi_name;
    return 1;
}

static const char *core_library(void)
{
    const char *path = NULL;
    dl_iterate_phdr(note_core_library, &path);
    return path;
}

static void *look_up(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    const char *core;

    /* A program that opens the core by itself, such as an in-process Python server, keeps it out of the global scope. */
    if (found == NULL && (core = core_library()) != NULL) {
        void *handle = dlopen(core, RTLD_LAZY | RTLD_NOLOAD);
        if (handle != NULL) {
            found = dlsym(handle, name);
            dlclose(handle);
        }
    }
    return found;
}

/* Threads that race for the first call find the same address. */
static void *real(enum symbol symbol)
{
    static void *_Atomic addresses[SYMBOLS];
    void *address = atomic_load_explicit(&addresses[symbol], memory_order_acquire);

    if (address == NULL)
        atomic_store(&addresses[symbol], address = look_up(symbol_names[symbol]));
    return address;
}

static triton_error *new_error(int code, const char *text)
{
    error_new_fn *error_new = real(ERROR_NEW);
    return error_new != NULL ? error_new(code, text) : NULL;
}

/* ---- Who calls? ------------------------------------------------------------------------------------------------ */

/*
 * The loaded object that holds a code address. _dl_find_object takes no lock: dladdr would wait for a model load that
 * is inside dlopen. The object cannot go away meanwhile, since the call came from it.
 */
static const struct link_map *object_at(void *code)
{
    struct dl_find_object object;
    return _dl_find_object(code, &object) == 0 ? object.dlfo_link_map : NULL;
}

static bool in_library(void *code, const char *stem)
{
    const struct link_map *object = object_at(code);
    return object != NULL && file_is(object->l_name, stem);
}

static bool in_main_executable(void *code)
{
    const struct link_map *object = object_at(code);
    return object != NULL && object->l_prev == NULL;
}

#define CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

/* ---- BLS priority ---------------------------------------------------------------------------------------------- */

HOOK triton_error *TRITONSERVER_InferenceRequestSetIntParameter(triton_request *request, const char *key, int64_t value)
{
    set_int_parameter_fn *set_int_parameter = real(SET_INT_PARAMETER);
    set_priority_fn *set_priority;

    if (active.priority && value > 0 && key != NULL && strcmp(key, LEVEL_KEY) == 0 &&
        in_library(CALLER(), PYTHON_BACKEND_LIBRARY) && (set_priority = real(SET_PRIORITY)) != NULL) {
        triton_error *error = set_priority(request, (uint64_t)value);
        if (error == NULL)
            active.counters->priorities_set++;
        return error;
    }
    if (set_int_parameter == NULL)
        return new_error(TRITONSERVER_ERROR_INTERNAL, "TRITONSERVER_InferenceRequestSetIntParameter was not found");
    return set_int_parameter(request, key, value);
}

/* ---- Prompt dispatch ------------------------------------------------------------------------------------------- */

/*
 * The batcher waits in two places, and in both can miss that the executor became free: with requests queued, for a free
 * instance, on a mutex of its own stack; with none, for 500 ms on a mutex that is a member. The end of a batch wakes the
 * second an instant before the instance counts as free, and a request that arrives in that instant wakes nobody. Its
 * slices double while nothing wakes it, so that falling idle costs a dozen wake-ups, once.
 */
enum { IDLE_SLICES = 12, FAR_SECONDS = 1000000 };
static const int64_t second = 1000000000, idle_wait = 500000000, idle_wait_tolerance = 1000000;

/* Slices in vain since this thread was last woken. */
static _Thread_local int slices_in_vain;

/* At most FAR_SECONDS, since the whole range of a deadline would overflow; 0 = it is past or broken. */
static int64_t nanoseconds_until(const struct timespec *deadline, const struct timespec *now)
{
    if (deadline->tv_nsec < 0 || deadline->tv_nsec >= second || deadline->tv_sec < now->tv_sec)
        return 0;
    if (deadline->tv_sec > now->tv_sec + FAR_SECONDS)
        return FAR_SECONDS * second;
    return (deadline->tv_sec - now->tv_sec) * second + deadline->tv_nsec - now->tv_nsec;
}

/* How long to wait at most; 0 = as long as the caller says. */
static int64_t next_slice(bool for_instance, int64_t left)
{
    if (for_instance)
        return active.slice_nanoseconds;
    if (left > idle_wait || left < idle_wait - idle_wait_tolerance || slices_in_vain >= IDLE_SLICES)
        return 0;
    return (int64_t)active.slice_nanoseconds << slices_in_vain;
}

HOOK int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                const struct timespec *deadline)
{
    clockwait_fn *clockwait = real(CLOCKWAIT);
    bool for_instance = (uintptr_t)mutex - (uintptr_t)__builtin_frame_address(0) < STACK_REACH_BYTES;
    struct timespec now, end;
    int64_t left, slice;
    bool cut;
    int result;

    if (clockwait == NULL)
        return EINVAL;
    if (!active.dispatch || !in_library(CALLER(), CORE_LIBRARY) || clock_gettime(clock, &now) != 0)
        return clockwait(condition, mutex, clock, deadline);

    left = nanoseconds_until(deadline, &now);
    slice = next_slice(for_instance, left);
    cut = slice > 0 && slice < left;
    end = (struct timespec){now.tv_sec + (now.tv_nsec + slice) / second, (now.tv_nsec + slice) % second};
    result = clockwait(condition, mutex, clock, cut ? &end : deadline);
    if (cut && result == ETIMEDOUT) {
        _Atomic uint64_t *count = for_instance ? &active.counters->waits_cut : &active.counters->idle_waits_cut;
        (*count)++;
        slices_in_vain = for_instance ? 0 : slices_in_vain + 1;
        return 0; /* A spurious wake-up: the caller looks again for what it waits for. */
    }
    if (result == 0)
        slices_in_vain = 0;
    return result;
}

/* ---- Executor guard -------------------------------------------------------------------------------------------- */

/* Looks a model up in "executor=router;other=its_router"; *router is then its router's name, *length bytes long. */
static bool is_guarded(const char *model, const char **router, int *length)
{
    size_t model_length = strlen(model);

    for (const char *entry = active.guarded_models; *entry != '\0';) {
        entry += strspn(entry, "; ");
        const char *end = strchrnul(entry, ';');
        const char *equals = memchr(entry, '=', (size_t)(end - entry));
        const char *name_end = equals != NULL ? equals : end;
        if (model_length > 0 && (size_t)(name_end - entry) == model_length && memcmp(entry, model, model_length) == 0) {
            *router = equals != NULL ? equals + 1 : end;
            *length = (int)(end - *router);
            return true;
        }
        entry = end;
    }
    return false;
}

HOOK triton_error *TRITONSERVER_InferenceRequestNew(triton_request **request, triton_server *server, const char *model,
                                                    int64_t version)
{
    request_new_fn *request_new = real(REQUEST_NEW);
    const char *router;
    int length;

    if (active.guard && model != NULL && is_guarded(model, &router, &length) && in_main_executable(CALLER())) {
        char text[1024];
        triton_error *error;

        snprintf(text, sizeof text, "model '%s' takes no requests from clients: call model '%.*s' instead", model,
                 length, router);
        error = new_error(TRITONSERVER_ERROR_INVALID_ARG, text);
        if (error != NULL) {
            active.counters->calls_refused++;
            return error;
        }
    }
    if (request_new == NULL)
        return new_error(TRITONSERVER_ERROR_INTERNAL, "TRITONSERVER_InferenceRequestNew was not found");
    return request_new(request, server, model, version);
}

/* ---- Start ----------------------------------------------------------------------------------------------------- */

static bool switched_on(const char *name)
{
    const char *value = getenv(name);

    if (value != NULL && strcmp(value, "0") == 0)
        return false;
    if (value != NULL && strcmp(value, "1") != 0)
        dprintf(STDERR_FILENO, "priority_router_hooks: %s='%s' is neither 0 nor 1; the hook stays on\n", name, value);
    return true;
}

static long slice_microseconds(void)
{
    const char *value = getenv(SLICE_ENV);
    char *end;
    long slice;

    if (value == NULL)
        return DEFAULT_SLICE_MICROSECONDS;
    slice = strtol(value, &end, 10);
    if (*end == '\0' && slice >= 1 && slice <= LONGEST_SLICE_MICROSECONDS)
        return slice;
    dprintf(STDERR_FILENO, "priority_router_hooks: %s='%s' is not a number from 1 to %d; slices are %d us\n", SLICE_ENV,
            value, LONGEST_SLICE_MICROSECONDS, DEFAULT_SLICE_MICROSECONDS);
    return DEFAULT_SLICE_MICROSECONDS;
}

/* A copy, since a process may change its environment at any time. */
static char *guarded_models(void)
{
    const char *value = getenv(GUARDED_MODELS_ENV);
    return value != NULL && value[strspn(value, "; ")] != '\0' ? strdup(value) : NULL;
}

/* The descriptor is left open across exec, so that the router can map it; sealed, so that no child can cut it short. */
static struct counters *new_counters(int *descriptor)
{
    static struct counters unshared;
    void *memory = MAP_FAILED;
    int low = memfd_create("priority_router_hooks", MFD_ALLOW_SEALING);

    /* Not 0, 1 or 2, which are free where the server was started without: what it writes there would be the counters. */
    *descriptor = low < 0 || low > STDERR_FILENO ? low : fcntl(low, F_DUPFD, STDERR_FILENO + 1);
    if (low != *descriptor)
        close(low);
    if (*descriptor >= 0 && ftruncate(*descriptor, sizeof(struct counters)) == 0 &&
        fcntl(*descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        memory = mmap(NULL, sizeof(struct counters), PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
    if (memory == MAP_FAILED) {
        dprintf(STDERR_FILENO, "priority_router_hooks: no shared memory for the counters: %s\n", strerror(errno));
        if (*descriptor >= 0)
            close(*descriptor);
        *descriptor = -1;
        memory = &unshared;
    }
    memcpy(memory, "PRHOOKS2", sizeof(((struct counters *)memory)->magic));
    return memory;
}

__attribute__((constructor)) static void start(void)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction on_pipe, on_size;
    char hooks[32] = "", marker[128];
    int descriptor;

    /* Not left to the first wait: dlsym takes the loader's lock, and who holds it may wait for that very thread. */
    real(CLOCKWAIT);
    if (core_library() == NULL)
        return;
    for (enum symbol symbol = 0; symbol < SYMBOLS; symbol++)
        real(symbol);
    /* A stderr that nobody reads, or a limit on file sizes, must not end a server that cannot yet say what it does then. */
    sigaction(SIGPIPE, &ignored, &on_pipe);
    sigaction(SIGXFSZ, &ignored, &on_size);
    active.counters = new_counters(&descriptor);
    active.slice_nanoseconds = slice_microseconds() * 1000;
    active.guarded_models = guarded_models();
    active.priority = switched_on("PRIORITY_ROUTER_HOOK_PRIORITY") && real(SET_PRIORITY) != NULL;
    active.dispatch = switched_on("PRIORITY_ROUTER_HOOK_DISPATCH");
    active.guard = switched_on("PRIORITY_ROUTER_HOOK_GUARD") && active.guarded_models != NULL && real(ERROR_NEW) != NULL;

    snprintf(hooks, sizeof hooks, "%s%s%s", active.priority ? ",priority" : "", active.dispatch ? ",dispatch" : "",
             active.guard ? ",guard" : "");
    snprintf(marker, sizeof marker, "pid=%d;fd=%d;hooks=%s", (int)getpid(), descriptor, hooks + (hooks[0] == ','));
    setenv(LOADED_ENV, marker, 1);
    dprintf(STDERR_FILENO, "priority_router_hooks: %s slice_us=%ld guarded=%s\n", marker, active.slice_nanoseconds / 1000,
            active.guard ? active.guarded_models : "");
    sigaction(SIGPIPE, &on_pipe, NULL);
    sigaction(SIGXFSZ, &on_size, NULL);
}
