/*
 * AMD's own runtime, as a distribution packages it, on a machine without a device: its functions, the one error that a tensor gets,
 * and that everything else goes on. Skipped where the runtime is missing or shows a device. Each test runs in a process of its own.
 */
#include <config.h>

#include "testing.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/vendor.h"
#include "tensors.h"

static const char *const sonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};

/* How a child ends that was asked whether the tests can run. */
enum { FOUND = 0, MISSING = 77, HAS_DEVICE = 78 };

/* As a framework opens it. NULL where there is none. */
static void *open_runtime(void)
{
    void *handle = NULL;
    for (int k = 0; k < COUNT(sonames) && handle == NULL; k++)
        handle = dlopen(sonames[k], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

static void *function_of(void *handle, const char *name)
{
    void *function = dlsym(handle, name);
    if (function == NULL)
        fail_msg("%s", dlerror());
    return function;
}

static const char *path_of(void *handle)
{
    Dl_info info;
    assert_int_not_equal(dladdr(function_of(handle, "hipInit"), &info), 0);
    return info.dli_fname;
}

static fuseline_status forward_on(int device)
{
    static float memory[2][8] __attribute__((aligned(16))); /* nothing reads it */
    DLTensor x = tensor_of(memory[0], FLOAT32, 1, DIMS(8), NULL), y = tensor_of(memory[1], FLOAT32, 1, DIMS(8), NULL);
    x.device = y.device = (DLDevice){kDLROCM, device};
    return fuseline_swish_forward(&x, 1.0, NULL, &y);
}

/* A call on the CPU and its value; 0 if all is right. */
static int cpu_fails(void)
{
    float in[3] = {-1.5f, 0, 1.5f}, out[3];
    DLTensor x = tensor_of(in, FLOAT32, 1, DIMS(3), NULL), y = tensor_of(out, FLOAT32, 1, DIMS(3), NULL);
    if (fuseline_swish_forward(&x, 1.0, NULL, &y) != FUSELINE_OK)
        return 1;
    for (int k = 0; k < 3; k++)
        if (fabs(out[k] - in[k] / (1 + exp(-(double)in[k]))) > 1e-6)
            return 1;
    return 0;
}

#define assert_no_device(device, path)                                                                                           \
    assert_refused(forward_on(device), FUSELINE_ERROR_DEVICE, "ROCm device " #device, path, "0 device")

/* Each function that is asked for, by its name; of the two that tell the architecture, the one of the runtime's age. */
static void test_every_function_is_there(void **state)
{
    static const struct fl_symbol symbols[] = {
#define FL_SYMBOL(member, name, required) {name, 0, required},
#include "gpu/symbols-hip.def"
#undef FL_SYMBOL
    };
    void *handle = open_runtime();
    int version = 0, (*get_version)(int *) = (int (*)(int *))function_of(handle, "hipDriverGetVersion");
    (void)state;
    assert_int_equal(get_version(&version), 0);
    print_message("%s: version %d.%d.%d\n", path_of(handle), version / 10000000, version / 100000 % 100, version % 100000);
    for (int k = 0; k < COUNT(symbols); k++) {
        int is_newer = strcmp(symbols[k].name, "hipGetDevicePropertiesR0600") == 0 && version < 60000000;
        void *function = dlsym(handle, symbols[k].name);
        print_message("%s: %s\n", symbols[k].name, function != NULL ? "there" : "missing");
        if (function == NULL && !is_newer)
            fail_msg("%s is missing", symbols[k].name);
        if (function != NULL && is_newer)
            fail_msg("%s is not expected in this version", symbols[k].name);
    }
}

/* What the runtime itself answers, which the stand-in and the library go by: every call fails, and only the count says why. */
static void test_what_the_runtime_answers(void **state)
{
    void *handle = open_runtime(), *module;
    int count = -1, (*init)(unsigned) = (int (*)(unsigned))function_of(handle, "hipInit");
    int (*device_count)(int *) = (int (*)(int *))function_of(handle, "hipGetDeviceCount");
    int (*load)(void **, const void *) = (int (*)(void **, const void *))function_of(handle, "hipModuleLoadData");
    const char *(*name)(int) = (const char *(*)(int))function_of(handle, "hipGetErrorName");
    (void)state;
    assert_int_not_equal(init(0), 0);
    assert_int_equal(device_count(&count), 100);
    assert_string_equal(name(100), "hipErrorNoDevice");
    assert_int_not_equal(load(&module, "no code"), 0);
}

/* Nobody has loaded it: the system's is found, and its lack of a device is the error, each time. */
static void test_one_clear_error(void **state)
{
    (void)state;
    for (int again = 0; again < 3; again++)
        assert_no_device(0, "libamdhip64.so");
    assert_no_device(7, "libamdhip64.so");
    assert_int_equal(cpu_fails(), 0);
}

static void test_framework_comes_first(void **state)
{
    char path[1024];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of(open_runtime()));
    assert_no_device(0, path);
    assert_int_equal(cpu_fails(), 0);
}

static void test_framework_comes_later(void **state)
{
    char path[1024];
    (void)state;
    assert_no_device(0, "libamdhip64.so");
    snprintf(path, sizeof path, "%s", path_of(open_runtime()));
    assert_no_device(0, path);
    assert_int_equal(cpu_fails(), 0);
}

static void test_info(void **state)
{
    char text[8192];
    (void)state;
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    assert_non_null(strstr(text, "libamdhip64.so"));
    assert_non_null(strstr(text, "\"error\": null, \"devices\": []"));
}

static pthread_barrier_t all_are_there;

static void *first_call(void *data)
{
    pthread_barrier_wait(&all_are_there);
    *(int *)data = forward_on(0) == FUSELINE_ERROR_DEVICE && strstr(fuseline_last_error(), "0 device") != NULL && !cpu_fails();
    return NULL;
}

static void test_threads_that_come_at_once(void **state)
{
    pthread_t threads[16];
    int is_right[16] = {0};
    (void)state;
    pthread_barrier_init(&all_are_there, NULL, COUNT(threads));
    for (int k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, first_call, &is_right[k]), 0);
    for (int k = 0; k < COUNT(threads); k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(is_right[k], 1);
    }
}

static int fails_in_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(forward_on(0) != FUSELINE_ERROR_DEVICE || strstr(fuseline_last_error(), "0 device") == NULL || cpu_fails());
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* N8: before the first call, and after it, when the runtime's own threads and files are of no matter. */
static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(fails_in_child(), 0);
    assert_no_device(0, "libamdhip64.so");
    assert_int_equal(fails_in_child(), 0);
    assert_int_equal(cpu_fails(), 0);
}

/* Neither we nor, unless it is asked to (AMD_LOG_LEVEL), the runtime says anything besides. */
static void test_nothing_is_printed(void **state)
{
    char path[1024];
    struct stat printed;
    (void)state;
    snprintf(path, sizeof path, "%s/stderr", getenv("FUSELINE_TEST_FOLDER"));
    int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600), kept = dup(STDERR_FILENO);
    assert_true(file >= 0 && kept >= 0);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    fuseline_status status = forward_on(0);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    dup2(kept, STDERR_FILENO);
    assert_int_equal(status, FUSELINE_ERROR_DEVICE);
    assert_int_equal(fstat(file, &printed), 0);
    assert_int_equal(printed.st_size, 0);
}

static void copy_runtime(const char *name, char path[1024])
{
    char command[4096];
    snprintf(path, 1024, "%s/%s", getenv("FUSELINE_TEST_FOLDER"), name);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\" && cp '%s' '%s'", path, path_of(open_runtime()), path);
    assert_int_equal(system(command), 0);
}

/* J14, J16: the system's and a wheel's; both are the real thing, and each believes that it is alone. */
static void test_two_copies_are_refused(void **state)
{
    char first[1024], second[1024], text[8192];
    (void)state;
    snprintf(first, sizeof first, "%s", path_of(open_runtime()));
    copy_runtime("torch/lib/libamdhip64.so", second);
    assert_non_null(dlopen(second, RTLD_NOW | RTLD_LOCAL));
    for (int again = 0; again < 2; again++)
        assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "2 copies", "ROCm", first, second, "FUSELINE_GPU_RUNTIME");
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    assert_non_null(strstr(text, "\"runtime\": null"));
    assert_non_null(strstr(text, "2 copies"));
    assert_int_equal(cpu_fails(), 0);
    assert_ok(fuseline_set_gpu_runtime(second));
    assert_no_device(0, second);
}

/* J16: one file under two names is one copy. */
static void test_one_file_under_two_names(void **state)
{
    char copy[1024], link[1024];
    (void)state;
    copy_runtime("one/libamdhip64.so.9", copy);
    snprintf(link, sizeof link, "%s/one/libamdhip64.so", getenv("FUSELINE_TEST_FOLDER"));
    unlink(link);
    assert_int_equal(symlink(copy, link), 0);
    assert_int_equal(setenv("FUSELINE_GPU_RUNTIME", copy, 1), 0);
    assert_non_null(dlopen(link, RTLD_NOW | RTLD_LOCAL));
    assert_no_device(0, "/one/libamdhip64.so");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_function_is_there),   cmocka_unit_test(test_what_the_runtime_answers),
    cmocka_unit_test(test_one_clear_error),           cmocka_unit_test(test_framework_comes_first),
    cmocka_unit_test(test_framework_comes_later),     cmocka_unit_test(test_info),
    cmocka_unit_test(test_threads_that_come_at_once), cmocka_unit_test(test_fork),
    cmocka_unit_test(test_nothing_is_printed),        cmocka_unit_test(test_two_copies_are_refused),
    cmocka_unit_test(test_one_file_under_two_names),
};

/* In its own process. */
static int look(void)
{
    void *handle = open_runtime();
    int count = 0, (*device_count)(int *) = handle != NULL ? (int (*)(int *))dlsym(handle, "hipGetDeviceCount") : NULL;
    if (device_count == NULL)
        return MISSING;
    return device_count(&count) == 0 && count > 0 ? HAS_DEVICE : FOUND;
}

static int run_alone(const char *name)
{
    for (int k = 0; k < COUNT(tests); k++)
        if (strcmp(tests[k].name, name) == 0) {
            dup2(STDERR_FILENO, STDOUT_FILENO); /* the parent speaks TAP there */
            const struct CMUnitTest test[] = {tests[k]};
            return cmocka_run_group_tests(test, NULL, NULL) != 0;
        }
    return look();
}

static int status_of(const char *name)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        unsetenv("FUSELINE_GPU_RUNTIME");
        unsetenv("CMOCKA_MESSAGE_OUTPUT");
        unsetenv("AMD_LOG_LEVEL");
        alarm(100); /* what hangs has failed */
        execl("/proc/self/exe", "test_real_runtime", name, (char *)NULL);
        _exit(98);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void run_isolated(void **state)
{
    assert_int_equal(status_of(*state), 0);
}

int main(int argc, char **argv)
{
    struct CMUnitTest isolated[COUNT(tests)];
    char folder[] = "/tmp/fuseline-test-XXXXXX", command[64], text[8192];

    if (argc == 2)
        return run_alone(argv[1]);
    fuseline_info(text, sizeof text);
    int has_code = strstr(text, "\"gfx") != NULL, found = has_code ? status_of("look") : MISSING;
    if (found != FOUND) {
        printf("1..0 # SKIP %s\n", !has_code             ? "this library has no AMD code"
                                   : found == HAS_DEVICE ? "there is a ROCm device"
                                                         : "there is no libamdhip64");
        return 0;
    }
    for (int k = 0; k < COUNT(tests); k++)
        isolated[k] = (struct CMUnitTest){tests[k].name, run_isolated, NULL, NULL, (void *)tests[k].name};
    if (mkdtemp(folder) == NULL || setenv("FUSELINE_TEST_FOLDER", folder, 1) != 0)
        return 1;
    int result = _cmocka_run_group_tests("real runtime", isolated, COUNT(isolated), NULL, NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || result;
}
