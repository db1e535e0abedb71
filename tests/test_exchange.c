/*
 * Calls on objects through a DLPack exchange table, with a table and objects of the test's own: an "object" is a DLTensor.
 */
#include "testing.h"

#include "internal.h"
#include "tensors.h"

#if DLPACK_MAJOR_VERSION > 1 || DLPACK_MINOR_VERSION >= 3

#include <math.h>

/* What the table's functions were asked. */
static int reads, streams, asked_type, asked_id;
static void *failing_object; /* the one that cannot be described */
static int stream_fails;

static int read_object(void *object, DLTensor *out)
{
    reads++;
    if (object == failing_object)
        return -1;
    *out = *(DLTensor *)object;
    return 0;
}

static int current_stream(DLDeviceType type, int32_t id, void **stream)
{
    streams++;
    asked_type = (int)type;
    asked_id = id;
    *stream = (void *)0x5770;
    return stream_fails ? -1 : 0;
}

static DLPackExchangeAPI table;
static float values[3][4];
static DLTensor objects[3];
static int64_t shape[] = {4};

static int set_up(void **state)
{
    (void)state;
    table = (DLPackExchangeAPI){.header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}},
                                .dltensor_from_py_object_no_sync = read_object,
                                .current_work_stream = current_stream};
    for (int k = 0; k < 3; k++) {
        objects[k] = tensor_of(values[k], FLOAT32, 1, shape, NULL);
        for (int i = 0; i < 4; i++)
            values[k][i] = (float)(k == 2 ? 99 : i + 1);
    }
    reads = streams = stream_fails = 0;
    failing_object = NULL;
    return 0;
}

static void works_on_the_cpu(void **state)
{
    (void)state;
    assert_ok(fuseline_swish_forward_objects(&table, &objects[0], 1, &objects[2]));
    assert_float_equal(values[2][1], 2 / (1 + exp(-2)), 1e-6);
    assert_int_equal(reads, 2);
    assert_ok(fuseline_swish_backward_objects(&table, &objects[0], &objects[1], 1, &objects[2]));
    assert_float_equal(values[2][0], 0.9276705, 1e-6); /* the derivative at 1 */
    assert_int_equal(reads, 5);
    assert_int_equal(streams, 0); /* the CPU has none */
}

static void other_minor_versions(void **state)
{
    (void)state;
    table.header.version.minor = 3;
    assert_ok(fuseline_swish_forward_objects(&table, &objects[0], 1, &objects[2]));
    table.header.version.minor = 99;
    assert_ok(fuseline_swish_forward_objects(&table, &objects[0], 1, &objects[2]));
}

static void other_major_version(void **state)
{
    (void)state;
    for (unsigned major = 0; major <= 2; major += 2) {
        table.header.version.major = major;
        table.dltensor_from_py_object_no_sync = (DLPackDLTensorFromPyObjectNoSync)(uintptr_t)0x10; /* must not be called */
        assert_refused(fuseline_swish_forward_objects(&table, &objects[0], 1, &objects[2]), FUSELINE_ERROR_VERSION,
                       "api: ", major ? "2." : "0.", "accepted: 1.x");
    }
    assert_true(values[2][0] == 99);
}

static void null_table(void **state)
{
    (void)state;
    assert_refused(fuseline_swish_forward_objects(NULL, &objects[0], 1, &objects[2]), FUSELINE_ERROR_ARGUMENT, "api: ", "NULL");
    assert_refused(fuseline_swish_backward_objects(NULL, NULL, NULL, 1, NULL), FUSELINE_ERROR_ARGUMENT, "api: ", "NULL");
}

static void null_functions(void **state)
{
    (void)state;
    table.dltensor_from_py_object_no_sync = NULL;
    assert_refused(fuseline_swish_forward_objects(&table, &objects[0], 1, &objects[2]), FUSELINE_ERROR_ARGUMENT,
                   "api: ", "dltensor_from_py_object_no_sync");
    set_up(NULL);
    table.current_work_stream = NULL;
    assert_refused(fuseline_swish_forward_objects(&table, &objects[0], 1, &objects[2]), FUSELINE_ERROR_ARGUMENT,
                   "api: ", "current_work_stream");
    assert_true(values[2][0] == 99);
}

static void null_objects(void **state)
{
    (void)state;
    assert_refused(fuseline_swish_backward_objects(&table, NULL, &objects[1], 1, &objects[2]), FUSELINE_ERROR_ARGUMENT, "dy: ");
    assert_refused(fuseline_swish_backward_objects(&table, &objects[0], NULL, 1, &objects[2]), FUSELINE_ERROR_ARGUMENT, "x: ");
    assert_refused(fuseline_swish_backward_objects(&table, &objects[0], &objects[1], 1, NULL), FUSELINE_ERROR_ARGUMENT, "dx: ");
}

static void reading_fails(void **state)
{
    (void)state;
    static const char *const names[] = {"dy: ", "x: ", "dx: "};
    for (int k = 0; k < 3; k++) {
        failing_object = &objects[k];
        assert_refused(fuseline_swish_backward_objects(&table, &objects[0], &objects[1], 1, &objects[2]), FUSELINE_ERROR_EXCHANGE,
                       names[k]);
        assert_true(values[2][0] == 99);
    }
}

/* What the table hands over is checked like any tensor. */
static void bad_tensor_from_the_table(void **state)
{
    (void)state;
    objects[1].dtype.code = kDLInt;
    assert_refused(fuseline_swish_backward_objects(&table, &objects[0], &objects[1], 1, &objects[2]), FUSELINE_ERROR_DTYPE,
                   "x: dtype is int");
}

static void bad_beta(void **state)
{
    (void)state;
    assert_refused(fuseline_swish_forward_objects(&table, &objects[0], NAN, &objects[2]), FUSELINE_ERROR_ARGUMENT, "beta: ");
    assert_int_equal(reads, 0);
}

static void gpu_calls_run_on_the_current_stream(void **state)
{
    (void)state;
    static const DLDeviceType types[] = {kDLCUDA, kDLCUDAManaged, kDLROCM};
    for (int t = 0; t < COUNT(types); t++) {
        for (int k = 0; k < 3; k++)
            objects[k].device = (DLDevice){types[t], 5};
        int launches = test_launch.count;
        assert_ok(fuseline_swish_backward_objects(&table, &objects[0], &objects[1], 1, &objects[2]));
        assert_int_equal(streams, t + 1);
        assert_int_equal(asked_type, types[t]);
        assert_int_equal(asked_id, 5);
        assert_int_equal(test_launch.count, launches + 1);
        assert_ptr_equal(test_launch.stream, (void *)0x5770);
        assert_int_equal(test_launch.device_id, 5);
    }
    stream_fails = 1;
    int launches = test_launch.count;
    assert_refused(fuseline_swish_backward_objects(&table, &objects[0], &objects[1], 1, &objects[2]), FUSELINE_ERROR_EXCHANGE,
                   "stream");
    assert_int_equal(test_launch.count, launches);
}

/* Pinned host memory belongs to the CPU: no stream. */
static void host_memory_asks_for_no_stream(void **state)
{
    (void)state;
    objects[0].device.device_type = kDLCUDAHost;
    objects[2].device.device_type = kDLROCMHost;
    assert_ok(fuseline_swish_forward_objects(&table, &objects[0], 1, &objects[2]));
    assert_int_equal(streams, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(works_on_the_cpu, set_up),
        cmocka_unit_test_setup(other_minor_versions, set_up),
        cmocka_unit_test_setup(other_major_version, set_up),
        cmocka_unit_test_setup(null_table, set_up),
        cmocka_unit_test_setup(null_functions, set_up),
        cmocka_unit_test_setup(null_objects, set_up),
        cmocka_unit_test_setup(reading_fails, set_up),
        cmocka_unit_test_setup(bad_tensor_from_the_table, set_up),
        cmocka_unit_test_setup(bad_beta, set_up),
        cmocka_unit_test_setup(gpu_calls_run_on_the_current_stream, set_up),
        cmocka_unit_test_setup(host_memory_asks_for_no_stream, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* Built with a DLPack that has no such table: one clear error. */
static void refused_without_the_table(void **state)
{
    (void)state;
    int object;
    assert_refused(fuseline_swish_forward_objects((void *)&object, &object, 1, &object), FUSELINE_ERROR_VERSION,
                   "api: ", "accepted: 1.3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_without_the_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
