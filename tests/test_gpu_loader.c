/*
 * The GPU side on stand-ins for the vendors' runtimes (tests/standin): which one is used, what it is asked, and what becomes of its
 * errors. Each test runs in a process of its own, since a runtime once found stays.
 */
#include <config.h>

#include "testing.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin/standin.h"
#include "tensors.h"

/* What differs between the vendors, for a test. */
struct vendor {
    const char *name;        /* as tests are called */
    const char *label;       /* as messages have it */
    const char *library;     /* the stand-in's file */
    const char *sonames[5];  /* newest first */
    const char *target;      /* what the targets of its code begin with */
    const char *unsupported; /* an architecture that nothing is built for, as the stand-in has it */
    const char *unsupported_name;
    const char *launch_error, *other_error; /* names of errors 719 and 2 */
    DLDeviceType device_type;
};

static const struct vendor hip = {
    .name = "hip",
    .label = "ROCm",
    .library = "libamdhip64.so",
    .sonames = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
    .target = "gfx",
    .unsupported = "gfx803",
    .unsupported_name = "gfx803",
    .launch_error = "hipErrorLaunchFailure",
    .other_error = "hipErrorOfStandin",
    .device_type = kDLROCM,
};
static const struct vendor cuda = {
    .name = "cuda",
    .label = "CUDA",
    .library = "libcuda.so",
    .sonames = {"libcuda.so.1"},
    .target = "ptx_",
    .unsupported = "50",
    .unsupported_name = "sm_50",
    .launch_error = "CUDA_ERROR_LAUNCH_FAILED",
    .other_error = "CUDA_ERROR_OF_STANDIN",
    .device_type = kDLCUDA,
};
static const struct vendor *vendor; /* of the test that runs */

static char library[1024]; /* its stand-in's path */
static struct standin *standin;

static void set_paths(void)
{
    const char *folder = getenv("builddir");
    snprintf(library, sizeof library, "%s/tests/standin/%s", folder != NULL ? folder : ".", vendor->library);
}

/* Opens a stand-in, as a framework would, and returns its state. */
static struct standin *open_standin(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fail_msg("%s", dlerror());
    return dlsym(handle, "standin");
}

/* A copy of the stand-in under another path, which ld.so takes for another library. */
static const char *copy_of_standin(const char *folder, const char *name)
{
    static char paths[4][1100];
    static int used;
    char command[2400];
    char *path = paths[used++];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    snprintf(command, sizeof command, "cp '%s' '%s'", library, path);
    assert_int_equal(system(command), 0);
    return path;
}

/* What a test that stands for the caller's own code asks of the runtime. */
static void *function_of_runtime(const char *name)
{
    return dlsym(dlopen(library, RTLD_NOW), name);
}

/* As the caller's own code would find it. NVIDIA's driver keeps none. */
static int last_error(void)
{
    int (*peek)(void) = (int (*)(void))function_of_runtime("hipPeekAtLastError");
    return vendor == &hip ? peek() : 0;
}

/* A new folder, which goes with all others at the end. */
static const char *temporary_folder(void)
{
    static char folders[4][256];
    static int used;
    char *folder = folders[used++ % COUNT(folders)];
    snprintf(folder, sizeof folders[0], "%s/XXXXXX", getenv("FUSELINE_TEST_FOLDER"));
    assert_non_null(mkdtemp(folder));
    return folder;
}

static float memory[3][4096] __attribute__((aligned(16)));

/* A tensor "on the GPU": nothing reads its memory. */
static DLTensor device_tensor(int operand, int device, int ndim, int64_t *shape, int64_t *strides)
{
    DLTensor tensor = tensor_of(memory[operand], FLOAT32, ndim, shape, strides);
    tensor.device = (DLDevice){vendor->device_type, device};
    return tensor;
}

static fuseline_status forward_on(int device)
{
    DLTensor x = device_tensor(0, device, 1, DIMS(1000), NULL), y = device_tensor(1, device, 1, DIMS(1000), NULL);
    return fuseline_swish_forward(&x, 1.0, NULL, &y);
}

/* What the parent's child makes of a call: 0 if all is as it should be. */
static int in_child(int (*check)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(check());
    assert_true(child > 0);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void test_launch_gets_everything(void **state)
{
    (void)state;
    float rate;
    DLTensor x = device_tensor(0, 0, 2, DIMS(10, 103), NULL), y = device_tensor(1, 0, 2, DIMS(10, 103), NULL);
    void *(*new_stream)(int, int) = (void *(*)(int, int))function_of_runtime("standin_stream"), *stream = new_stream(0, 0);
    assert_ok(fuseline_swish_forward(&x, 1.0, stream, &y));
    assert_int_equal(standin->count[STANDIN_LAUNCH], 1);
    assert_string_equal(standin->launch.kernel, "fl_swish_forward_float32_vector");
    assert_int_equal(standin->launch.device, 0);
    assert_int_equal(standin->launch.blocks[0], 2); /* 1030 elements, 4 a thread, 256 threads */
    assert_int_equal(standin->launch.blocks[1] * standin->launch.blocks[2], 1);
    assert_int_equal(standin->launch.threads[0], FL_BLOCK_THREADS);
    assert_int_equal(standin->launch.threads[1] * standin->launch.threads[2], 1);
    assert_int_equal(standin->launch.shared_bytes, 0);
    assert_ptr_equal(standin->launch.stream, stream); /* I1 */
    assert_ptr_equal(standin->launch.arguments.data[0], memory[0]);
    assert_ptr_equal(standin->launch.arguments.data[1], memory[1]);
    assert_int_equal(standin->launch.arguments.rows, 1);
    assert_int_equal(standin->launch.arguments.columns, 1030);
    memcpy(&rate, standin->launch.parameters, sizeof rate);
    assert_true(rate == -1.44269504f); /* -log2(e) */
}

static void test_kernel_follows_operator_dtype_and_mode(void **state)
{
    static const DLDataType dtypes[] = {{kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}};
    static const char *const names[] = {"float16", "bfloat16", "float32", "float64"};
    char wanted[128];
    (void)state;
    for (int k = 0; k < COUNT(dtypes); k++) {
        DLTensor dy = device_tensor(0, 0, 2, DIMS(4, 16), DIMS(32, 1)), x = device_tensor(1, 0, 2, DIMS(4, 16), DIMS(32, 1));
        DLTensor dx = device_tensor(2, 0, 2, DIMS(4, 16), DIMS(32, 1));
        dy.dtype = x.dtype = dx.dtype = dtypes[k];
        assert_ok(fuseline_swish_backward(&dy, &x, 1.0, NULL, &dx));
        snprintf(wanted, sizeof wanted, "fl_swish_backward_%s_rows", names[k]);
        assert_string_equal(standin->launch.kernel, wanted);
        assert_int_equal(standin->launch.arguments.rows, 4);
        assert_int_equal(standin->launch.arguments.row_stride[2], 32);
        assert_null(standin->launch.stream);
        x.byte_offset = dtypes[k].bits / 8;
        assert_ok(fuseline_swish_forward(&x, 1.0, NULL, &dx));
        snprintf(wanted, sizeof wanted, "fl_swish_forward_%s_element", names[k]);
        assert_string_equal(standin->launch.kernel, wanted);
        assert_ptr_equal(standin->launch.arguments.data[0], (char *)memory[1] + dtypes[k].bits / 8);
    }
    assert_int_equal(standin->count[STANDIN_LOAD], COUNT(dtypes)); /* one module for both kernels of a dtype */
}

/* G17, G18: an empty call reaches no runtime at all. */
static void test_zero_elements_launch_nothing(void **state)
{
    (void)state;
    DLTensor x = device_tensor(0, 0, 2, DIMS(10, 0), NULL), y = device_tensor(1, 0, 2, DIMS(10, 0), NULL);
    assert_ok(fuseline_swish_forward(&x, 1.0, NULL, &y));
    for (int k = 0; k < STANDIN_CALLS; k++)
        assert_int_equal(standin->count[k], 0);
}

/* I9 and the cost of a call: once warm, a call asks for the current device and launches, nothing else. */
static void test_warm_call_only_launches(void **state)
{
    int before[STANDIN_CALLS];
    (void)state;
    assert_ok(forward_on(0)); /* the first makes everything ready */
    assert_ok(forward_on(0));
    memcpy(before, standin->count, sizeof before);
    assert_ok(forward_on(0));
    for (int k = 0; k < STANDIN_CALLS; k++) {
        int allowed = k == STANDIN_LAUNCH || k == STANDIN_GET_CURRENT ||
                      (vendor == &cuda && (k == STANDIN_SET_CURRENT || k == STANDIN_POP_CURRENT)); /* no context was current */
        assert_in_range(standin->count[k] - before[k], 0, allowed);
    }
    assert_int_equal(standin->count[STANDIN_LAUNCH], 3);
}

/* The device that the thread would find to be the current one; -1 where no context is. */
static int current_device(void)
{
    if (vendor == &hip) {
        int current = -1;
        int (*get)(int *) = (int (*)(int *))function_of_runtime("hipGetDevice");
        assert_int_equal(get(&current), 0);
        return current;
    }
    void *current = &current;
    int (*get)(void **) = (int (*)(void **))function_of_runtime("cuCtxGetCurrent");
    assert_int_equal(get(&current), 0);
    for (int k = 0; k < standin->devices; k++)
        if (current == standin->architecture[k]) /* whose address the stand-in's contexts are */
            return k;
    assert_null(current);
    return -1;
}

/* As the caller's own code would. */
static void make_current(int device)
{
    void *context;
    int handle;
    if (vendor == &hip) {
        int (*set)(int) = (int (*)(int))function_of_runtime("hipSetDevice");
        assert_int_equal(set(device), 0);
        return;
    }
    int (*find)(int *, int) = (int (*)(int *, int))function_of_runtime("cuDeviceGet");
    int (*retain)(void **, int) = (int (*)(void **, int))function_of_runtime("cuDevicePrimaryCtxRetain");
    int (*push)(void *) = (int (*)(void *))function_of_runtime("cuCtxPushCurrent_v2");
    assert_int_equal(find(&handle, device) | retain(&context, handle) | push(context), 0);
}

/* F8, I4: the tensor's device, not the current one; and that one is current again afterwards. */
static void test_current_device_is_restored(void **state)
{
    int before = current_device();
    (void)state;
    assert_ok(forward_on(1));
    assert_int_equal(standin->launch.device, 1);
    assert_int_equal(current_device(), before);
    assert_ok(forward_on(0));
    assert_int_equal(standin->launch.device, 0);
    assert_int_equal(current_device(), before);
    /* After a failed launch, too. */
    standin->fail[STANDIN_LAUNCH] = 719;
    assert_refused(forward_on(1), FUSELINE_ERROR_RUNTIME, "719");
    standin->fail[STANDIN_LAUNCH] = 0;
    assert_int_equal(current_device(), before);
}

/* F8, I4: the same whichever is current, and where it is the call's own device. */
static void test_each_device_current(void **state)
{
    (void)state;
    make_current(0);
    standin->fail[STANDIN_LOAD] = 2;
    assert_refused(forward_on(1), FUSELINE_ERROR_RUNTIME, "(2)");
    standin->fail[STANDIN_LOAD] = 0;
    int failed = standin->count[STANDIN_LOAD]; /* each image that there is for a device is tried */
    assert_int_equal(current_device(), 0);
    for (int current = 0; current < 2; current++) {
        make_current(current);
        for (int k = 0; k < 4; k++) {
            assert_ok(forward_on(k % 2));
            assert_int_equal(standin->launch.device, k % 2);
            assert_int_equal(current_device(), current);
            standin->fail[STANDIN_LAUNCH] = 719;
            assert_refused(forward_on(k % 2), FUSELINE_ERROR_RUNTIME, "719");
            standin->fail[STANDIN_LAUNCH] = 0;
            assert_int_equal(current_device(), current);
        }
    }
    assert_int_equal(standin->count[STANDIN_LOAD], failed + 2); /* once for each device */
}

/* F8: nothing is made ready on a device that no tensor is on. */
static void test_first_call_on_the_second_device(void **state)
{
    (void)state;
    assert_ok(forward_on(1));
    assert_ok(forward_on(1));
    assert_int_equal(standin->launch.device, 1);
    assert_int_equal(standin->count[STANDIN_LOAD], 1);
    assert_int_equal(standin->count[STANDIN_RETAIN_CONTEXT], vendor == &cuda);
    assert_int_equal(standin->count[STANDIN_SET_CURRENT], 2 * (vendor == &hip ? 2 : 1)); /* HIP: there and back */
    assert_ok(forward_on(0));
    assert_int_equal(standin->launch.device, 0);
    assert_int_equal(standin->count[STANDIN_LOAD], 2);
    assert_int_equal(standin->count[STANDIN_RETAIN_CONTEXT], vendor == &cuda ? 2 : 0);
}

static void test_device_index_beyond_the_last(void **state)
{
    (void)state;
    assert_refused(forward_on(2), FUSELINE_ERROR_DEVICE, vendor->label, "device 2", "2 device");
    standin->devices = 0;
    assert_refused(forward_on(2), FUSELINE_ERROR_DEVICE, "device 2"); /* as counted when the runtime was found */
}

/* The same words again in a child: where there was no device, no fork has broken one. */
static int no_device_in_child(void)
{
    return forward_on(0) != FUSELINE_ERROR_DEVICE || strstr(fuseline_last_error(), "0 device") == NULL;
}

static void test_no_device(void **state)
{
    char text[8192];
    (void)state;
    standin->devices = 0;
    for (int again = 0; again < 2; again++)
        assert_refused(forward_on(0), FUSELINE_ERROR_DEVICE, vendor->label, library, "0 device");
    assert_int_equal(standin->count[STANDIN_INIT], 1);
    assert_int_equal(last_error(), 0);
    assert_int_equal(in_child(no_device_in_child), 0);
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    if (vendor == &hip) /* this system's own HIP runtime, if there is one, would be named first */
        assert_non_null(strstr(text, library));
    assert_non_null(strstr(text, "\"error\": null, \"devices\": []"));
}

/* J1, J3, J9, J11, J12: the device's architecture, the built ones and the option; other devices go on working. */
static void test_unsupported_architecture(void **state)
{
    char first[1024];
    (void)state;
    strcpy(standin->architecture[0], vendor->unsupported);
    assert_refused(forward_on(0), FUSELINE_ERROR_ARCHITECTURE, vendor->label, "device 0", vendor->unsupported_name,
                   vendor->target, vendor == &hip ? "--with-hip-targets" : "--with-ptx");
    strcpy(first, fuseline_last_error());
    assert_null(strstr(first, "OVERRIDE")); /* which makes a chip run another one's code */
    assert_ok(forward_on(1));
    assert_refused(forward_on(0), FUSELINE_ERROR_ARCHITECTURE, vendor->unsupported_name);
    assert_string_equal(fuseline_last_error(), first);
    assert_int_equal(last_error(), 0);
    assert_int_equal(standin->count[STANDIN_LAUNCH], 1);
    standin->fail[STANDIN_LOAD] = STANDIN_NO_BINARY; /* also where the list seems to have it */
    DLTensor x = device_tensor(0, 1, 1, DIMS(8), NULL);
    x.dtype = FLOAT16;
    assert_refused(fuseline_swish_forward(&x, 1.0, NULL, &x), FUSELINE_ERROR_ARCHITECTURE, "device 1");
}

/* J13: what the info call lists is what is embedded, for every dtype. */
static void test_every_listed_target_has_code(void **state)
{
    static const DLDataType dtypes[] = {{kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}};
    char text[8192], *save, *list;
    (void)state;
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1); /* finds no devices yet: see HIDDEN */
    list = strstr(text, "\"targets\": [");
    assert_non_null(list);
    *strchr(list, ']') = '\0';
    standin = open_standin(library);
    standin->devices = 0;
    for (char *target = strtok_r(strchr(list, '['), "[\", ", &save); target != NULL; target = strtok_r(NULL, "[\", ", &save))
        if (strncmp(target, "gfx", 3) == 0 ? vendor == &hip : vendor == &cuda)
            strcpy(standin->architecture[standin->devices++], vendor == &hip ? target : strchr(target, '_') + 1);
    assert_true(standin->devices > 0);
    assert_int_equal(setenv("FUSELINE_GPU_RUNTIME", library, 1), 0);
    for (int device = 0; device < standin->devices; device++)
        for (int k = 0; k < COUNT(dtypes); k++) {
            DLTensor x = device_tensor(0, device, 1, DIMS(8), NULL);
            x.dtype = dtypes[k];
            assert_ok(fuseline_swish_forward(&x, 1.0, NULL, &x));
        }
}

/* Of the targets that the info call lists, those whose names end so. */
static int listed_targets(const char *ending)
{
    char text[8192];
    int count = 0;
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    *strchr(strstr(text, "\"targets\": ["), ']') = '\0';
    for (const char *place = text; (place = strstr(place, ending)) != NULL; place++)
        count++;
    return count;
}

/*
 * A chip without code of its own, as an old runtime sees it that does not know generic targets: generic code is tried where there is
 * some, and only once; the whole message is what an owner of such a chip reads.
 */
static void test_chip_without_own_code(void **state)
{
    int has_generic = listed_targets("-generic\"") > 0;
    (void)state;
    standin->old_loader = 1;
    strcpy(standin->architecture[0], "gfx1036");
    int before = standin->count[STANDIN_LOAD];
    assert_refused(forward_on(0), FUSELINE_ERROR_ARCHITECTURE,
                   "ROCm device 0 is gfx1036, for which this library has no code; it has code for gfx",
                   "; configure's option --with-hip-targets adds others",
                   has_generic ? "-generic (generic code is loaded by ROCm 6.4 and newer); configure" : "; configure");
    assert_int_equal(standin->count[STANDIN_LOAD] - before, 1 + has_generic);
    standin->fail[STANDIN_LOAD] = 2; /* another error is not taken for missing code where there is some */
    assert_refused(forward_on(1), FUSELINE_ERROR_RUNTIME, "hipErrorOfStandin");
}

/* The same on a newer runtime: the bundle of generic code comes second, and is what runs. */
static void test_generic_code(void **state)
{
    (void)state;
    if (listed_targets("gfx10-3-generic\"") == 0)
        return;
    strcpy(standin->architecture[0], "gfx1036");
    int before = standin->count[STANDIN_LOAD];
    for (int again = 0; again < 2; again++)
        assert_ok(forward_on(0));
    assert_int_equal(standin->count[STANDIN_LOAD] - before, 2);
    assert_int_equal(last_error(), 0);
}

/* The architecture's name is found in either of HIP's structures, and without its features. */
static void test_older_properties(void **state)
{
    (void)state;
    standin->old_properties = 1;
    strcpy(standin->architecture[0], "gfx803:sramecc+:xnack-");
    assert_refused(forward_on(0), FUSELINE_ERROR_ARCHITECTURE, "is gfx803, ");
    standin->fail[STANDIN_ARCHITECTURE] = 1;
    strcpy(standin->architecture[1], "gfx803");
    assert_refused(forward_on(1), FUSELINE_ERROR_ARCHITECTURE, "is Stand-in GPU 1, ");
}

/* I10: a failed launch is this call's error, by name; the next call is a new chance. */
static void test_launch_failure(void **state)
{
    (void)state;
    standin->fail[STANDIN_LAUNCH] = 719;
    assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "launching fl_swish_forward_float32_vector", "device 0",
                   vendor->launch_error, "(719)", vendor->library);
    assert_int_equal(last_error(), 0);
    standin->fail[STANDIN_LAUNCH] = 0;
    assert_ok(forward_on(0));
}

static void test_other_failures(void **state)
{
    static const enum standin_call calls[] = {STANDIN_DEVICE_COUNT, STANDIN_GET_CURRENT, STANDIN_LOAD, STANDIN_FUNCTION};
    (void)state;
    for (int k = 0; k < COUNT(calls); k++) {
        standin->fail[calls[k]] = 2;
        for (int again = 0; again < 2; again++)
            assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, vendor->other_error, "(2)", vendor->library);
        standin->fail[calls[k]] = 0;
        assert_int_equal(standin->count[STANDIN_LAUNCH], 0);
    }
    assert_ok(forward_on(0));
    if (vendor == &cuda) {
        standin->fail[STANDIN_RETAIN_CONTEXT] = 2;
        assert_refused(forward_on(1), FUSELINE_ERROR_RUNTIME, "opening CUDA device 1", "(2)");
        standin->fail[STANDIN_RETAIN_CONTEXT] = 0;
        assert_ok(forward_on(1));
    }
}

/* I12: what was wrong before us is neither our error nor ours to clear. */
static void test_stale_error_is_not_ours(void **state)
{
    (void)state;
    int (*set_device)(int) = (int (*)(int))function_of_runtime("hipSetDevice");
    assert_int_equal(set_device(99), STANDIN_INVALID_DEVICE);
    assert_ok(forward_on(0));
    assert_ok(forward_on(1));
    assert_int_equal(last_error(), STANDIN_INVALID_DEVICE);
}

static void test_failed_initialisation(void **state)
{
    (void)state;
    standin->fail[STANDIN_INIT] = 2;
    for (int again = 0; again < 2; again++)
        assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "initialising", vendor->label, "(2)", vendor->library);
    standin->fail[STANDIN_INIT] = 0;
    assert_ok(forward_on(0));
}

static void *forward_many(void *data)
{
    for (int k = 0; k < 100; k++)
        if (forward_on(k & 1) != FUSELINE_OK)
            *(int *)data = 1;
    return NULL;
}

/* A thread for each device, to which another one is current: the stand-in refuses launches elsewhere than where code was loaded. */
static void *forward_on_one(void *data)
{
    int *result = data, device = *result;
    make_current(1 - device);
    *result = 0;
    for (int k = 0; k < 200; k++)
        *result += forward_on(device) != FUSELINE_OK || current_device() != 1 - device;
    return NULL;
}

static void test_thread_for_each_device(void **state)
{
    pthread_t threads[6];
    int results[6];
    (void)state;
    for (int k = 0; k < COUNT(threads); k++) {
        results[k] = k % 2;
        assert_int_equal(pthread_create(&threads[k], NULL, forward_on_one, &results[k]), 0);
    }
    for (int k = 0; k < COUNT(threads); k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(results[k], 0);
    }
    assert_int_equal(standin->count[STANDIN_LOAD], 2);
    assert_int_equal(standin->count[STANDIN_LAUNCH], 1200);
}

static void test_threads_load_once(void **state)
{
    pthread_t threads[8];
    int failures[8] = {0};
    (void)state;
    for (int k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, forward_many, &failures[k]), 0);
    for (int k = 0; k < COUNT(threads); k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(failures[k], 0);
    }
    assert_int_equal(standin->count[STANDIN_INIT], 1);
    assert_int_equal(standin->count[STANDIN_LOAD], 2); /* once per device */
    assert_int_equal(standin->count[STANDIN_LAUNCH], 800);
}

static int gpu_refused_cpu_works(void)
{
    float in[3] = {0}, out[3];
    DLTensor x = tensor_of(in, FLOAT32, 1, DIMS(3), NULL), y = tensor_of(out, FLOAT32, 1, DIMS(3), NULL);
    if (forward_on(0) != FUSELINE_ERROR_RUNTIME || strstr(fuseline_last_error(), "fork") == NULL)
        return 1;
    return fuseline_swish_forward(&x, 1.0, NULL, &y) != FUSELINE_OK;
}

static int gpu_works(void)
{
    return forward_on(0) != FUSELINE_OK;
}

/* N8: a runtime does not survive fork. N6: but nothing is wrong with forking first. */
static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(in_child(gpu_works), 0);
    assert_ok(forward_on(0));
    assert_int_equal(in_child(gpu_refused_cpu_works), 0);
    assert_ok(forward_on(0));
}

static void test_info(void **state)
{
    char text[8192], wanted[128];
    (void)state;
    strcpy(standin->architecture[1], vendor->unsupported);
    assert_refused(fuseline_swish_forward(NULL, 1.0, NULL, NULL), FUSELINE_ERROR_ARGUMENT, "NULL");
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    assert_non_null(strstr(fuseline_last_error(), "NULL")); /* still */
    assert_non_null(strstr(text, library));
    snprintf(wanted, sizeof wanted, "{\"index\": 0, \"kind\": \"%s\", \"architecture\": \"%s\", \"supported\": true}",
             vendor == &hip ? "rocm" : "cuda", vendor == &hip ? "gfx1151" : "sm_90");
    assert_non_null(strstr(text, wanted));
    snprintf(wanted, sizeof wanted, "{\"index\": 1, \"kind\": \"%s\", \"architecture\": \"%s\", \"supported\": false}",
             vendor == &hip ? "rocm" : "cuda", vendor->unsupported_name);
    assert_non_null(strstr(text, wanted));
    assert_int_equal(standin->count[STANDIN_RETAIN_CONTEXT] + standin->count[STANDIN_SET_CURRENT], 0);
}

/* J14, J16: two copies are two runtimes, and a stream belongs to one of them. */
static void test_two_copies_are_refused(void **state)
{
    const char *first = copy_of_standin(temporary_folder(), vendor->library);
    const char *second = copy_of_standin(temporary_folder(), vendor->library);
    struct standin *of_first = open_standin(first), *of_second = open_standin(second);
    (void)state;
    assert_ptr_not_equal(of_first, of_second);
    assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "2 copies", vendor->label, first, second, "FUSELINE_GPU_RUNTIME");
    assert_int_equal(of_first->count[STANDIN_INIT] + of_second->count[STANDIN_INIT], 0);
    assert_ok(fuseline_set_gpu_runtime(second));
    assert_ok(forward_on(0));
    assert_int_equal(of_first->count[STANDIN_LAUNCH], 0);
    assert_int_equal(of_second->count[STANDIN_LAUNCH], 1);
}

/* J14, F18: a framework that is imported later may bring a copy of its own. Until somebody says whose tensors come, none run. */
static void test_copy_that_comes_later_is_refused(void **state)
{
    const char *other = copy_of_standin(temporary_folder(), vendor->library);
    (void)state;
    assert_ok(forward_on(0));
    struct standin *of_other = open_standin(other);
    for (int again = 0; again < 2; again++)
        assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "2 copies", vendor->label, library, other, "FUSELINE_GPU_RUNTIME");
    assert_refused(fuseline_set_gpu_runtime(other), FUSELINE_ERROR_RUNTIME, other, library);
    assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "2 copies");
    assert_int_equal(setenv("FUSELINE_GPU_RUNTIME", other, 1), 0);
    assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "FUSELINE_GPU_RUNTIME", other, library, "in use already");
    assert_int_equal(unsetenv("FUSELINE_GPU_RUNTIME"), 0);
    assert_ok(fuseline_set_gpu_runtime(library));
    assert_ok(forward_on(0));
    assert_int_equal(standin->count[STANDIN_LAUNCH], 2);
    assert_int_equal(of_other->count[STANDIN_INIT], 0);
}

/* Whoever has named one is not asked again. */
static void test_copy_that_comes_later_than_a_name(void **state)
{
    const char *named = copy_of_standin(temporary_folder(), vendor->library);
    (void)state;
    assert_int_equal(setenv("FUSELINE_GPU_RUNTIME", named, 1), 0);
    assert_ok(forward_on(0));
    open_standin(copy_of_standin(temporary_folder(), vendor->library));
    assert_ok(forward_on(0));
    assert_int_equal(open_standin(named)->count[STANDIN_LAUNCH], 2);
}

/* Libraries of other names that come later, as a framework's do, change nothing. */
static void test_other_libraries_that_come_later(void **state)
{
    (void)state;
    assert_ok(forward_on(0));
    open_standin(copy_of_standin(temporary_folder(), "libtorch_hip.so"));
    assert_ok(forward_on(0));
    assert_int_equal(standin->count[STANDIN_INIT], 1);
    assert_int_equal(standin->count[STANDIN_LAUNCH], 2);
}

static int count_copies(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(int *)data += strstr(info->dlpi_name, vendor->library) != NULL;
    return 0;
}

static int copies_in_process(void)
{
    int count = 0;
    dl_iterate_phdr(count_copies, &count);
    return count;
}

/* N6: a call on the CPU opens nothing, nor does an empty one on a GPU. */
static void test_nothing_is_opened_before_it_is_needed(void **state)
{
    float in[3] = {0}, out[3];
    DLTensor x = tensor_of(in, FLOAT32, 1, DIMS(3), NULL), y = tensor_of(out, FLOAT32, 1, DIMS(3), NULL);
    DLTensor none = device_tensor(0, 0, 1, DIMS(0), NULL);
    (void)state;
    assert_ok(fuseline_swish_forward(&x, 1.0, NULL, &y));
    assert_ok(fuseline_swish_forward(&none, 1.0, NULL, &none));
    assert_int_equal(copies_in_process(), 0);
    assert_ok(forward_on(0));
    assert_int_equal(copies_in_process(), 1);
}

/*
 * J14, J18: the copy of a framework's wheel is used where the system has one, too, and a newer one: that is never opened. The copy's
 * soname is none by which the system's would be found, or else ld.so might take the one for the other.
 */
static void use_copy_of_wheel(const char *file)
{
    char text[8192], command[2400];
    const char *path = copy_of_standin(temporary_folder(), file);
    snprintf(command, sizeof command, "LC_ALL=C sed -i 's/%s\\.so\\.[0-9]/%s.so.0/' '%s'",
             vendor == &hip ? "libamdhip64" : "libcuda", vendor == &hip ? "libamdhip64" : "libcuda", path);
    assert_int_equal(system(command), 0);
    struct standin *of_wheel = open_standin(path);
    assert_ok(forward_on(0));
    assert_int_equal(of_wheel->count[STANDIN_LAUNCH], 1);
    assert_int_equal(copies_in_process(), 1);
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    assert_non_null(strstr(text, path));
}

/* As PyTorch's wheels have it: no number in the file's name, and the soname that it always had. */
static void test_wheel_with_stripped_file_name(void **state)
{
    (void)state;
    use_copy_of_wheel(vendor->library);
}

/* As in the ROCm SDK's wheels: a numbered file in a folder of their own. */
static void test_wheel_with_numbered_file_name(void **state)
{
    (void)state;
    use_copy_of_wheel(vendor == &hip ? "libamdhip64.so.6" : "libcuda.so.1");
}

static void test_environment_is_preferred_to_hint(void **state)
{
    const char *hinted = copy_of_standin(temporary_folder(), vendor->library);
    const char *named = copy_of_standin(temporary_folder(), "renamed.so"); /* any name will do */
    (void)state;
    assert_ok(fuseline_set_gpu_runtime(hinted));
    assert_int_equal(setenv("FUSELINE_GPU_RUNTIME", named, 1), 0);
    assert_ok(forward_on(0));
    assert_int_equal(open_standin(named)->count[STANDIN_LAUNCH], 1);
    assert_int_equal(open_standin(hinted)->count[STANDIN_LAUNCH], 0);
}

static void test_hint_comes_before_first_use(void **state)
{
    const char *other = copy_of_standin(temporary_folder(), vendor->library);
    (void)state;
    assert_ok(fuseline_set_gpu_runtime(other));
    assert_ok(fuseline_set_gpu_runtime(NULL)); /* forgotten */
    assert_ok(forward_on(0));
    assert_int_equal(standin->count[STANDIN_LAUNCH], 1);
    assert_refused(fuseline_set_gpu_runtime(other), FUSELINE_ERROR_RUNTIME, other, library);
    assert_ok(fuseline_set_gpu_runtime(library));
    assert_ok(fuseline_set_gpu_runtime(NULL));
}

static void test_named_file_cannot_be_opened(void **state)
{
    (void)state;
    assert_int_equal(setenv("FUSELINE_GPU_RUNTIME", "/nowhere/at/all.so", 1), 0);
    assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "FUSELINE_GPU_RUNTIME", "/nowhere/at/all.so", vendor->label);
    assert_int_equal(setenv("FUSELINE_GPU_RUNTIME", "libm.so.6", 1), 0); /* a library, but no runtime */
    assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "libm.so.6", vendor == &hip ? "hipInit" : "cuInit");
    assert_int_equal(unsetenv("FUSELINE_GPU_RUNTIME"), 0);
    assert_ok(fuseline_set_gpu_runtime("/nowhere/at/all.so"));
    assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "fuseline_set_gpu_runtime", "/nowhere/at/all.so");
    assert_ok(fuseline_set_gpu_runtime(NULL));
    assert_ok(forward_on(0)); /* the copy in the process */
}

/* F1: each kind of tensor needs its own vendor's runtime; a name that is plainly the other's is passed over. */
static void test_other_vendor_is_passed_over(void **state)
{
    (void)state;
    assert_int_equal(setenv("FUSELINE_GPU_RUNTIME", vendor == &hip ? "/nowhere/libcuda.so.1" : "/nowhere/libamdhip64.so.7", 1),
                     0);
    assert_ok(forward_on(0));
    assert_int_equal(standin->count[STANDIN_LAUNCH], 1);
}

/* Nothing loaded, nothing named: what the system has, newest first. The folder is on the library path: see `before`. */
static void test_system_runtime_newest_first(void **state)
{
    char text[8192];
    (void)state;
    assert_ok(forward_on(0));
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    assert_non_null(strstr(text, vendor->sonames[0]));
}

/* The newest that can be opened: older ones are tried after newer ones that cannot. */
static void test_system_runtime_is_older(void **state)
{
    char text[8192];
    (void)state;
    assert_ok(forward_on(0));
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    assert_non_null(strstr(text, vendor->sonames[2]));
}

/* Nothing that can be opened: files on the library path that are no libraries hide those of the system. */
static void test_no_runtime(void **state)
{
    (void)state;
    assert_refused(forward_on(0), FUSELINE_ERROR_RUNTIME, "no", vendor->label, "runtime is loaded", "could be opened",
                   vendor->library);
}

/* How a test wants its process to begin. */
enum start { LOADED, EMPTY, ON_LIBRARY_PATH, OLDER_ON_LIBRARY_PATH, HIDDEN };

static const struct scenario {
    const char *name;
    CMUnitTestFunction function;
    enum start start;
    const struct vendor *only; /* NULL for both */
} scenarios[] = {
    {"test_launch_gets_everything", test_launch_gets_everything, LOADED, NULL},
    {"test_kernel_follows_operator_dtype_and_mode", test_kernel_follows_operator_dtype_and_mode, LOADED, NULL},
    {"test_zero_elements_launch_nothing", test_zero_elements_launch_nothing, LOADED, NULL},
    {"test_warm_call_only_launches", test_warm_call_only_launches, LOADED, NULL},
    {"test_current_device_is_restored", test_current_device_is_restored, LOADED, NULL},
    {"test_each_device_current", test_each_device_current, LOADED, NULL},
    {"test_first_call_on_the_second_device", test_first_call_on_the_second_device, LOADED, NULL},
    {"test_device_index_beyond_the_last", test_device_index_beyond_the_last, LOADED, NULL},
    {"test_no_device", test_no_device, LOADED, NULL},
    {"test_unsupported_architecture", test_unsupported_architecture, LOADED, NULL},
    {"test_every_listed_target_has_code", test_every_listed_target_has_code, HIDDEN, NULL},
    {"test_generic_code", test_generic_code, LOADED, &hip},
    {"test_chip_without_own_code", test_chip_without_own_code, LOADED, &hip},
    {"test_older_properties", test_older_properties, LOADED, &hip},
    {"test_launch_failure", test_launch_failure, LOADED, NULL},
    {"test_other_failures", test_other_failures, LOADED, NULL},
    {"test_stale_error_is_not_ours", test_stale_error_is_not_ours, LOADED, &hip},
    {"test_failed_initialisation", test_failed_initialisation, LOADED, NULL},
    {"test_thread_for_each_device", test_thread_for_each_device, LOADED, NULL},
    {"test_threads_load_once", test_threads_load_once, LOADED, NULL},
    {"test_fork", test_fork, LOADED, NULL},
    {"test_info", test_info, LOADED, NULL},
    {"test_two_copies_are_refused", test_two_copies_are_refused, EMPTY, NULL},
    {"test_copy_that_comes_later_is_refused", test_copy_that_comes_later_is_refused, LOADED, NULL},
    {"test_copy_that_comes_later_than_a_name", test_copy_that_comes_later_than_a_name, EMPTY, NULL},
    {"test_other_libraries_that_come_later", test_other_libraries_that_come_later, LOADED, NULL},
    {"test_nothing_is_opened_before_it_is_needed", test_nothing_is_opened_before_it_is_needed, ON_LIBRARY_PATH, NULL},
    {"test_wheel_with_stripped_file_name", test_wheel_with_stripped_file_name, ON_LIBRARY_PATH, NULL},
    {"test_wheel_with_numbered_file_name", test_wheel_with_numbered_file_name, ON_LIBRARY_PATH, NULL},
    {"test_environment_is_preferred_to_hint", test_environment_is_preferred_to_hint, EMPTY, NULL},
    {"test_hint_comes_before_first_use", test_hint_comes_before_first_use, LOADED, NULL},
    {"test_named_file_cannot_be_opened", test_named_file_cannot_be_opened, LOADED, NULL},
    {"test_other_vendor_is_passed_over", test_other_vendor_is_passed_over, LOADED, NULL},
    {"test_system_runtime_newest_first", test_system_runtime_newest_first, ON_LIBRARY_PATH, NULL},
    {"test_system_runtime_is_older", test_system_runtime_is_older, OLDER_ON_LIBRARY_PATH, &hip},
    {"test_no_runtime", test_no_runtime, HIDDEN, NULL},
};

/* In its own process: one scenario, reported by the exit status. */
static int run_alone(const struct scenario *scenario)
{
    const struct CMUnitTest test[] = {{scenario->name, scenario->function, NULL, NULL, NULL}};
    dup2(STDERR_FILENO, STDOUT_FILENO); /* the parent speaks TAP there */
    set_paths();
    if (scenario->start == LOADED)
        standin = open_standin(library);
    return cmocka_run_group_tests(test, NULL, NULL) != 0;
}

static void write_no_library(const char *folder, const char *name)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("not a library\n", file);
    fclose(file);
}

static void start_process(const struct scenario *scenario)
{
    unsetenv("FUSELINE_GPU_RUNTIME");
    unsetenv("CMOCKA_MESSAGE_OUTPUT");
    if (scenario->start >= ON_LIBRARY_PATH) {
        const char *folder = temporary_folder(), *before = getenv("LD_LIBRARY_PATH");
        char path[4096];
        for (int k = 0; vendor->sonames[k] != NULL; k++) {
            if (scenario->start == HIDDEN || (scenario->start == OLDER_ON_LIBRARY_PATH && k < 2))
                write_no_library(folder, vendor->sonames[k]);
            else if (scenario->start == OLDER_ON_LIBRARY_PATH || k < 2)
                copy_of_standin(folder, vendor->sonames[k]);
        }
        snprintf(path, sizeof path, "%s%s%s", folder, before != NULL ? ":" : "", before != NULL ? before : "");
        setenv("LD_LIBRARY_PATH", path, 1);
    }
    execl("/proc/self/exe", "test_gpu_loader", vendor->name, scenario->name, (char *)NULL);
    _exit(98);
}

static int has_code_for(const struct vendor *which)
{
    char text[8192], quoted[16];
    snprintf(quoted, sizeof quoted, "\"%s", which->target);
    fuseline_info(text, sizeof text);
    return strstr(text, quoted) != NULL;
}

struct isolated {
    const struct scenario *scenario;
    const struct vendor *vendor;
    char name[128];
};

static void run_isolated(void **state)
{
    const struct isolated *isolated = *state;
    int status;
    vendor = isolated->vendor;
    set_paths();
    pid_t child = fork();
    if (child == 0)
        start_process(isolated->scenario);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    static const struct vendor *const vendors[] = {&hip, &cuda};
    static struct isolated isolated[2 * COUNT(scenarios)];
    static struct CMUnitTest tests[2 * COUNT(scenarios)];
    size_t count = 0;

    for (int v = 0; v < 2; v++) {
        int has_code = argc == 1 && has_code_for(vendors[v]);
        for (int k = 0; k < COUNT(scenarios); k++) {
            if (argc == 3 && strcmp(argv[1], vendors[v]->name) == 0 && strcmp(argv[2], scenarios[k].name) == 0) {
                vendor = vendors[v];
                return run_alone(&scenarios[k]);
            }
            if (!has_code || (scenarios[k].only != NULL && scenarios[k].only != vendors[v]))
                continue;
            struct isolated *one = &isolated[count];
            *one = (struct isolated){&scenarios[k], vendors[v], ""};
            snprintf(one->name, sizeof one->name, "%s: %s", vendors[v]->name, scenarios[k].name);
            tests[count++] = (struct CMUnitTest){one->name, run_isolated, NULL, NULL, one};
        }
    }
    char folder[] = "/tmp/fuseline-test-XXXXXX", command[64];
    if (mkdtemp(folder) == NULL || setenv("FUSELINE_TEST_FOLDER", folder, 1) != 0)
        return 1;
    int result = _cmocka_run_group_tests("GPU loader", tests, count, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || result;
}
