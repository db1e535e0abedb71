/*
 * The stand-in runtimes themselves (tests/standin): they run kernels as a device does, keep its rules, and notice what they are
 * there to notice. On kernels of their own, tests/standin/probe.hip.
 */
#include <config.h>

#include "testing.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin/standin.h"

enum { THREADS = FL_BLOCK_THREADS };

/* One of the runtimes, by functions that both have. */
static struct runtime {
    const char *name, *file, *probe;
    struct standin *state;
    int (*load)(void **, const void *);
    int (*function)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    void *(*allocate)(int, size_t, int);
    void (*release)(void *);
    int (*device_of)(const void *);
    void *(*stream)(int, int);
    void *(*default_stream)(int);
    void (*wait)(void *);
    void (*follow)(void *, void *);
    void (*copy)(void *, void *, const void *, size_t);
    void (*begin_capture)(void *);
    void *(*end_capture)(void *);
    void (*launch_graph)(void *, void *);
    unsigned long long (*kernels_run)(void);
    int (*leaks)(void);
} runtimes[] =
    {
        {.name = "hip", .file = "libamdhip64.so", .probe = "probe.hipfb"},
        {.name = "cuda", .file = "libcuda.so", .probe = "probe.ptx"},
},
  *rt;

static char target[2][16]; /* the first architectures that the probe was built for, with waves of 32 lanes and of 64, or "" */
static char *image;        /* the probe */
static void *module;

static void in_folder(char *path, size_t size, const char *file)
{
    const char *folder = getenv("builddir");
    snprintf(path, size, "%s/tests/standin/%s", folder != NULL ? folder : ".", file);
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL)
        fail_msg("%s", dlerror());
    return found;
}

static char *read_file(const char *name)
{
    char path[1024];
    in_folder(path, sizeof path, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, size + 1);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

static void make_current(void *library, int device)
{
    int (*set)(int) = (int (*)(int))dlsym(library, "hipSetDevice");
    if (set != NULL) {
        assert_int_equal(set(device), 0);
        return;
    }
    int (*retain)(void **, int) = (int (*)(void **, int))symbol(library, "cuDevicePrimaryCtxRetain");
    int (*push)(void *) = (int (*)(void *))symbol(library, "cuCtxPushCurrent_v2");
    void *context;
    assert_int_equal(retain(&context, 1000 + device), 0);
    assert_int_equal(push(context), 0);
}

static void *library;

/* Opens a runtime, makes its device current, and loads the probe. */
static void begin(int device)
{
    char path[1024];
    in_folder(path, sizeof path, rt->file);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail_msg("%s", dlerror());
    int is_hip = rt == &runtimes[0];
    rt->state = symbol(library, "standin");
#define FIND(member, name) *(void **)&rt->member = symbol(library, name)
    FIND(load, is_hip ? "hipModuleLoadData" : "cuModuleLoadData");
    FIND(function, is_hip ? "hipModuleGetFunction" : "cuModuleGetFunction");
    FIND(launch, is_hip ? "hipModuleLaunchKernel" : "cuLaunchKernel");
    FIND(allocate, "standin_allocate");
    FIND(release, "standin_release");
    FIND(device_of, "standin_device_of");
    FIND(stream, "standin_stream");
    FIND(default_stream, "standin_default_stream");
    FIND(wait, "standin_wait");
    FIND(follow, "standin_follow");
    FIND(copy, "standin_copy");
    FIND(begin_capture, "standin_begin_capture");
    FIND(end_capture, "standin_end_capture");
    FIND(launch_graph, "standin_launch_graph");
    FIND(kernels_run, "standin_kernels_run");
    FIND(leaks, "standin_leaks");
    if (is_hip) {
        rt->state->devices = 0;
        for (int k = 0; k < 2; k++)
            if (target[k][0] != '\0')
                strcpy(rt->state->architecture[rt->state->devices++], target[k]);
    }
    make_current(library, device);
    assert_int_equal(rt->load(&module, image), 0);
}

static void *function_of(const char *name)
{
    void *function;
    assert_int_equal(rt->function(&function, module, name), 0);
    return function;
}

#define LAUNCH(name, blocks, stream, ...)                                                                                        \
    rt->launch(function_of(name), blocks, 1, 1, THREADS, 1, 1, 0, stream, (void *[]){__VA_ARGS__}, NULL)

/* --- what a kernel sees --- */

static void test_places(void **state)
{
    enum { BLOCKS = 5 };
    (void)state;
    begin(0);
    unsigned long long *places = rt->allocate(0, BLOCKS * THREADS * sizeof *places, 1);
    unsigned *threads = rt->allocate(0, BLOCKS * THREADS * sizeof *threads, 1);
    assert_int_equal(LAUNCH("fl_probe_places", BLOCKS, NULL, &places, &threads), 0);
    rt->wait(NULL);
    for (unsigned k = 0; k < BLOCKS * THREADS; k++) {
        assert_true(places[k] == ((unsigned long long)(k / THREADS) << 32 | k % THREADS));
        assert_int_equal(threads[k], BLOCKS * THREADS + BLOCKS);
    }
    rt->release(places);
    rt->release(threads);
}

static void test_barriers(void **state)
{
    enum { BLOCKS = 3, TIMES = 7 };
    int times = TIMES;
    (void)state;
    begin(0);
    unsigned *values = rt->allocate(0, BLOCKS * THREADS * sizeof *values, 1);
    for (unsigned k = 0; k < BLOCKS * THREADS; k++)
        values[k] = 1000 * k;
    assert_int_equal(LAUNCH("fl_probe_barriers", BLOCKS, NULL, &values, &times), 0);
    rt->wait(NULL);
    for (unsigned k = 0; k < BLOCKS * THREADS; k++) /* an odd number of reversals */
        assert_int_equal(values[k], 1000 * (k / THREADS * THREADS + THREADS - 1 - k % THREADS) + TIMES);
    rt->release(values);
}

/* On a device with waves of as many lanes. */
static void check_lanes(int device, unsigned lanes_right)
{
    enum { BLOCKS = 2 };
    begin(device);
    unsigned *sums = rt->allocate(device, BLOCKS * THREADS * sizeof *sums, 1);
    unsigned *lanes = rt->allocate(device, BLOCKS * THREADS * sizeof *lanes, 1);
    unsigned *neighbours = rt->allocate(device, BLOCKS * THREADS * sizeof *neighbours, 1);
    assert_int_equal(LAUNCH("fl_probe_lanes", BLOCKS, NULL, &sums, &lanes, &neighbours), 0);
    rt->wait(NULL);
    for (unsigned k = 0; k < BLOCKS * THREADS; k++) {
        unsigned first = k / lanes_right * lanes_right;
        assert_int_equal(lanes[k], lanes_right);
        assert_int_equal(sums[k], lanes_right * first + lanes_right * (lanes_right - 1) / 2);
        assert_int_equal(neighbours[k], first + (k + 1) % lanes_right);
    }
    rt->release(sums);
    rt->release(lanes);
    rt->release(neighbours);
}

static void test_lanes(void **state)
{
    (void)state;
    check_lanes(0, rt == &runtimes[0] && target[0][0] == '\0' ? 64 : 32);
}

static void test_lanes_of_the_other_size(void **state)
{
    (void)state;
    check_lanes(1, 64);
}

static void test_arguments(void **state)
{
    struct {
        float a;
        double b;
    } d = {4, 5};
    char a = 1;
    double b = 2;
    short c = 3;
    unsigned char e = 6;
    (void)state;
    begin(0);
    double *out = rt->allocate(0, sizeof *out, 1);
    assert_int_equal(LAUNCH("fl_probe_arguments", 1, NULL, &a, &b, &c, &d, &e, &out), 0);
    a = 9; /* they were copied */
    rt->wait(NULL);
    assert_true(*out == 654321);
    rt->release(out);
}

/* --- launches that no device takes --- */

static void test_refused_launches(void **state)
{
    (void)state;
    begin(0);
    unsigned *out = rt->allocate(0, sizeof *out, 1);
    int times = 1, other_device = rt->state->devices - 1;
    void *function = function_of("fl_probe_barriers"), *arguments[] = {&out, &times}, *unknown;
    assert_int_equal(rt->launch(function, 1, 1, 1, THREADS + 1, 1, 1, 0, NULL, arguments, NULL), STANDIN_INVALID_VALUE);
    assert_int_equal(rt->launch(function, 1, 1, 1, 0, 1, 1, 0, NULL, arguments, NULL), STANDIN_INVALID_VALUE);
    assert_int_equal(rt->launch(function, 0, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), STANDIN_INVALID_VALUE);
    assert_int_equal(rt->launch(function, 1u << 24, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), STANDIN_INVALID_VALUE);
    assert_int_equal(rt->launch(function, 1, 2, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), STANDIN_INVALID_VALUE);
    assert_int_equal(rt->launch(function, 1, 1, 1, THREADS, 1, 1, (64 << 10) + 1, NULL, arguments, NULL), STANDIN_INVALID_VALUE);
    assert_int_equal(rt->launch(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, NULL, NULL), STANDIN_INVALID_VALUE);
    assert_int_equal(rt->launch(function, 1, 1, 1, THREADS, 1, 1, 0, &times, arguments, NULL), STANDIN_INVALID_HANDLE);
    assert_int_equal(rt->function(&unknown, module, "fl_probe_nothing"), STANDIN_NOT_FOUND);
    if (other_device != 0) {
        assert_int_equal(rt->launch(function, 1, 1, 1, THREADS, 1, 1, 0, rt->stream(other_device, 0), arguments, NULL),
                         STANDIN_INVALID_HANDLE);
        make_current(library, other_device);
        assert_int_equal(rt->launch(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), STANDIN_INVALID_HANDLE);
    }
    rt->wait(NULL);
    assert_int_equal(rt->kernels_run(), 0);
    assert_int_equal(*out, 0xa5a5a5a5);
    rt->release(out);
}

/* Where code says something else than the host's compiler: here, since a byte of it was changed. */
static void test_code_that_was_changed(void **state)
{
    (void)state;
    begin(0);
    double *out = rt->allocate(0, sizeof *out, 1);
    char a = 1, *size = strstr(image, "fl_probe_arguments_param_3[16]"), *count = strstr(image, ".entry fl_probe_torn_barrier(");
    assert_non_null(size);
    memcpy(size, "fl_probe_arguments_param_3[24]", 30);
    assert_int_equal(LAUNCH("fl_probe_arguments", 1, NULL, &a, &out, &a, &out, &a, &out), STANDIN_INVALID_VALUE);
    memcpy(size, "fl_probe_arguments_param_3[16]", 30);
    assert_non_null(count);
    count = strstr(count, ".param");
    memcpy(count, ".p4r4m", 6);
    assert_int_equal(LAUNCH("fl_probe_torn_barrier", 1, NULL, &out), STANDIN_INVALID_VALUE);
    memcpy(count, ".param", 6);
    rt->release(out);
}

/* The same for code objects: the note's and the descriptor's numbers; and code that is none, or for another target. */
static void test_code_objects_that_were_changed(void **state)
{
    void *function, *other;
    uint64_t place[3];
    (void)state;
    begin(0);
    /* The entry of the first device's target; names and so the entries' places differ from compiler to compiler. */
    char *entry = image + 32, *code = NULL;
    for (uint64_t k = 0; k < *(uint64_t *)(void *)(image + 24); k++) {
        memcpy(place, entry, sizeof place);
        const char *architecture = rt->state->architecture[0];
        size_t length = strlen(architecture);
        if (place[2] > length && memcmp(entry + 24 + place[2] - length, architecture, length) == 0)
            code = image + place[0];
        entry += 24 + place[2];
    }
    assert_non_null(code);
    for (char *at = code;; at++) { /* ".kernarg_segment_size", then the number: 8 bytes for one pointer */
        at = memmem(at, place[1], ".kernarg_segment_size", 21);
        if (at == NULL)
            fail();
        at += 21;
        char kept = *at;
        if ((unsigned char)kept > 64)
            continue;
        *at = (char)(kept + 4);
        assert_int_equal(rt->load(&other, image), 0);
        int refused = 0;
        static const char *const names[] = {"fl_probe_places", "fl_probe_barriers", "fl_probe_lanes", "fl_probe_arguments"};
        for (int k = 0; k < COUNT(names); k++)
            refused += rt->function(&function, other, names[k]) == STANDIN_INVALID_IMAGE;
        *at = kept;
        if (refused == 1)
            break; /* it was one of these kernels', whose descriptor says otherwise */
    }
    code[1] = 'e';
    assert_int_equal(rt->load(&other, image), STANDIN_INVALID_IMAGE);
    code[1] = 'E';
    char *name = memmem(image, 4096, rt->state->architecture[0], strlen(rt->state->architecture[0]));
    *name = 'G';
    assert_int_equal(rt->load(&other, image), STANDIN_NO_BINARY);
    *name = 'g';
    strcat(rt->state->architecture[0], ":sramecc+:xnack-"); /* what code does not name may be either way */
    assert_int_equal(rt->load(&other, image), 0);
    strcpy(rt->state->architecture[0], "gfx1036");
    assert_int_equal(rt->load(&other, image), STANDIN_NO_BINARY);
    assert_int_equal(rt->load(&other, code), STANDIN_NO_BINARY); /* not in a bundle */
}

/* --- streams --- */

/* Nothing runs before somebody waits for it; then all that was queued before it does. */
static void test_work_is_done_late_and_in_order(void **state)
{
    int times = 1;
    (void)state;
    begin(0);
    void *first = rt->stream(0, 0), *second = rt->stream(0, 0);
    unsigned *values = rt->allocate(0, THREADS * sizeof *values, 1), source[THREADS] = {5},
             *copied = rt->allocate(0, sizeof source, 0);
    rt->copy(first, values, source, sizeof source);
    assert_int_equal(LAUNCH("fl_probe_barriers", 1, first, &values, &times), 0);
    rt->copy(second, copied, values, sizeof source); /* not in order: nobody said so */
    rt->wait(second);
    assert_int_equal(copied[THREADS - 1], 0xa5a5a5a5);
    assert_int_equal(values[0], 0xa5a5a5a5);
    rt->follow(second, first);
    rt->copy(second, copied, values, sizeof source);
    assert_int_equal(rt->kernels_run(), 0);
    rt->wait(second);
    assert_int_equal(rt->kernels_run(), 1);
    assert_int_equal(copied[THREADS - 1], 6);
    void *at_once = rt->stream(0, 1);
    assert_int_equal(LAUNCH("fl_probe_barriers", 1, at_once, &values, &times), 0);
    assert_int_equal(values[0], 7);
    rt->release(values);
    rt->release(copied);
}

static void test_capture(void **state)
{
    int times = 1;
    void *other;
    (void)state;
    begin(0);
    void *stream = rt->stream(0, 0), *graph;
    unsigned *values = rt->allocate(0, THREADS * sizeof *values, 1);
    memset(values, 0, THREADS * sizeof *values);
    rt->begin_capture(stream);
    assert_int_equal(LAUNCH("fl_probe_barriers", 1, stream, &values, &times), 0);
    graph = rt->end_capture(stream);
    rt->wait(stream);
    assert_int_equal(rt->kernels_run(), 0);
    for (int k = 0; k < 3; k++)
        rt->launch_graph(graph, stream);
    rt->wait(stream);
    assert_int_equal(values[0], 3);
    rt->begin_capture(stream);
    assert_int_equal(rt->load(&other, image), STANDIN_CAPTURE_UNSUPPORTED);
    assert_null(rt->end_capture(stream));
    assert_int_equal(rt->load(&other, image), 0);
    rt->release(values);
}

/* --- memory, failures, leaks --- */

static void test_failures_on_demand(void **state)
{
    void *function;
    (void)state;
    begin(0);
    rt->state->fail[STANDIN_FUNCTION] = 33;
    rt->state->fail_only[STANDIN_FUNCTION] = 2;
    assert_int_equal(rt->function(&function, module, "fl_probe_places"), 0);
    assert_int_equal(rt->function(&function, module, "fl_probe_places"), 33);
    assert_int_equal(rt->function(&function, module, "fl_probe_places"), 0);
    rt->state->fail_only[STANDIN_FUNCTION] = 0;
    for (int k = 0; k < 2; k++)
        assert_int_equal(rt->function(&function, module, "fl_probe_places"), 33);
    assert_int_equal(rt->state->count[STANDIN_FUNCTION], 5);
    if (rt == &runtimes[0]) { /* the last error stays through calls that succeed, until it is taken */
        int (*peek)(void) = (int (*)(void))symbol(library, "hipPeekAtLastError");
        int (*take)(void) = (int (*)(void))symbol(library, "hipGetLastError");
        make_current(library, 0);
        assert_int_equal(peek(), 33);
        assert_int_equal(take(), 33);
        assert_int_equal(take(), 0);
    }
}

static void test_leaks(void **state)
{
    void *again;
    (void)state;
    begin(0);
    assert_int_equal(rt->leaks(), 0);
    void *memory = rt->allocate(0, 10, 0);
    assert_int_equal(rt->device_of(memory), 0);
    assert_int_equal(rt->device_of(&again), -1);
    assert_int_equal(rt->leaks(), 1);
    rt->release(memory);
    assert_int_equal(rt->device_of(memory), -1);
    assert_int_equal(rt->leaks(), 0);
    assert_int_equal(rt->load(&again, image), 0);
    assert_int_equal(rt->leaks(), 1);
}

/* Processes that are to die. */
static void launch_past_the_end(void)
{
    unsigned *values = rt->allocate(0, (THREADS - 1) * sizeof *values, 1);
    int times = 1;
    LAUNCH("fl_probe_barriers", 1, NULL, &values, &times);
}

static void launch_before_the_beginning(void)
{
    unsigned *values = (unsigned *)rt->allocate(0, THREADS * sizeof *values, 0) - 1;
    int times = 1;
    LAUNCH("fl_probe_barriers", 1, NULL, &values, &times);
}

static void release_before_it_runs(void)
{
    unsigned *values = rt->allocate(0, THREADS * sizeof *values, 1);
    int times = 1;
    LAUNCH("fl_probe_barriers", 1, NULL, &values, &times);
    rt->release(values);
}

static void wait_in_vain(void)
{
    unsigned *out = rt->allocate(0, sizeof *out, 1);
    LAUNCH("fl_probe_torn_barrier", 1, NULL, &out);
}

static void test_crashes(void **state)
{
    static const struct {
        void (*run)(void);
        const char *says;
    } cases[] = {{launch_past_the_end, "1020 bytes from the beginning of memory of 1020 bytes"},
                 {launch_before_the_beginning, "-4 bytes from the beginning of memory of 1024 bytes"},
                 {release_before_it_runs, "in memory of 1024 bytes that was given back"},
                 {wait_in_vain, "fl_probe_torn_barrier, block 0: some threads wait for others that do not come"}};
    (void)state;
    for (int k = 0; k < COUNT(cases); k++) {
        char said[1 << 14] = "";
        size_t length = 0;
        ssize_t got;
        int status, ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            /* cmocka's handlers would go on to exit, and wait there for the thread that they are called on. */
            signal(SIGABRT, SIG_DFL);
            begin(0);
            cases[k].run();
            rt->wait(NULL);
            _exit(0);
        }
        close(ends[1]);
        while ((got = read(ends[0], said + length, sizeof said - 1 - length)) > 0)
            length += (size_t)got;
        close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            fail_msg("case %d went on", k);
        if (strstr(said, cases[k].says) == NULL)
            fail_msg("case %d: %s", k, said);
    }
}

/* --- each test in a process of its own, on each runtime --- */

static const struct scenario {
    const char *name;
    CMUnitTestFunction function;
    const struct runtime *only; /* NULL for both */
} scenarios[] = {
    {"test_places", test_places, NULL},
    {"test_barriers", test_barriers, NULL},
    {"test_lanes", test_lanes, NULL},
    {"test_lanes_of_the_other_size", test_lanes_of_the_other_size, &runtimes[0]},
    {"test_arguments", test_arguments, NULL},
    {"test_refused_launches", test_refused_launches, NULL},
    {"test_code_that_was_changed", test_code_that_was_changed, &runtimes[1]},
    {"test_code_objects_that_were_changed", test_code_objects_that_were_changed, &runtimes[0]},
    {"test_work_is_done_late_and_in_order", test_work_is_done_late_and_in_order, NULL},
    {"test_capture", test_capture, NULL},
    {"test_failures_on_demand", test_failures_on_demand, NULL},
    {"test_leaks", test_leaks, NULL},
    {"test_crashes", test_crashes, NULL},
};

struct isolated {
    struct runtime *runtime;
    const struct scenario *scenario;
    char name[128];
};

static void run_isolated(void **state)
{
    const struct isolated *isolated = *state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        const struct CMUnitTest test[] = {{isolated->scenario->name, isolated->scenario->function, NULL, NULL, NULL}};
        dup2(STDERR_FILENO, STDOUT_FILENO); /* the parent speaks TAP there */
        rt = isolated->runtime;
        image = read_file(rt->probe);
        exit(cmocka_run_group_tests(test, NULL, NULL) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The first targets in the probe's bundle whose waves have 32 and 64 lanes: gfx10 and newer, and those before. */
static void find_targets(const char *bundle)
{
    const char *entry = bundle + 32;
    for (uint64_t k = 0; k < *(const uint64_t *)(const void *)(bundle + 24); k++) {
        uint64_t place[3];
        memcpy(place, entry, sizeof place);
        const char *name = memmem(entry + 24, place[2], "gfx", 3), *end = entry + 24 + place[2];
        if (name != NULL) {
            char *found = target[end - name == 6]; /* gfx942, gfx1151 */
            if (*found == '\0')
                snprintf(found, sizeof target[0], "%.*s", (int)(end - name), name);
        }
        entry = end;
    }
}

int main(void)
{
    static struct isolated isolated[2 * COUNT(scenarios)];
    static struct CMUnitTest tests[2 * COUNT(scenarios)];
    size_t count = 0;
    for (struct runtime *runtime = runtimes; runtime < runtimes + COUNT(runtimes); runtime++) {
        char *probe = read_file(runtime->probe);
        if (probe != NULL && runtime == &runtimes[0])
            find_targets(probe);
        for (int k = 0; k < COUNT(scenarios) && probe != NULL; k++) {
            struct isolated *one = &isolated[count];
            if ((scenarios[k].only != NULL && scenarios[k].only != runtime) ||
                (scenarios[k].function == test_lanes_of_the_other_size && (target[0][0] == '\0' || target[1][0] == '\0')))
                continue;
            *one = (struct isolated){runtime, &scenarios[k], ""};
            snprintf(one->name, sizeof one->name, "%s: %s", runtime->name, scenarios[k].name);
            tests[count++] = (struct CMUnitTest){one->name, run_isolated, NULL, NULL, one};
        }
        free(probe);
    }
    return _cmocka_run_group_tests("stand-in runtimes", tests, count, NULL, NULL);
}
