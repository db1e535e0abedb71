/*
 * The checker: every malformed tensor gets its own error that names the argument, what was found and what is accepted, and
 * nothing is written; every well-formed tensor works, however odd.
 */
#include "testing.h"

#include "numbers.h"
#include "tensors.h"

/* The places that a tensor can take: one bad tensor is tried in each, among good ones. */
enum place { FORWARD_X, FORWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX, PLACES };
static const char *const place_names[PLACES] = {"x: ", "y: ", "dy: ", "x: ", "dx: "};

static float values[4][6];

static fuseline_status call_with(enum place place, DLTensor *bad)
{
    DLTensor good[3];
    DLTensor *tensors[3];
    int64_t shape[] = {2, 3};
    int first = place <= FORWARD_Y ? 0 : 2;
    for (int k = 0; k < 3; k++) {
        good[k] = tensor_of(values[k], FLOAT32, 2, shape, NULL);
        tensors[k] = first + k == (int)place ? bad : &good[k];
    }
    if (first == 0)
        return fuseline_swish_forward(tensors[0], 1, NULL, tensors[1]);
    return fuseline_swish_backward(tensors[0], tensors[1], 1, NULL, tensors[2]);
}

/* Tries a bad tensor in every place. Its data, where it has any, is values[3]. */
#define assert_refused_everywhere(bad, status, ...)                                                                              \
    do {                                                                                                                         \
        for (enum place place = 0; place < PLACES; place++) {                                                                    \
            float before[4][6];                                                                                                  \
            memset(values, 0x41, sizeof values);                                                                                 \
            memcpy(before, values, sizeof values);                                                                               \
            assert_refused(call_with(place, bad), status, __VA_ARGS__);                                                          \
            assert_memory_equal(fuseline_last_error(), place_names[place], strlen(place_names[place]));                          \
            assert_memory_equal(values, before, sizeof values);                                                                  \
        }                                                                                                                        \
    } while (0)

static DLTensor sample(void)
{
    static int64_t shape[2], strides[2];
    memcpy(shape, DIMS(2, 3), sizeof shape);
    memcpy(strides, DIMS(3, 1), sizeof strides);
    return tensor_of(values[3], FLOAT32, 2, shape, strides);
}

static void sample_itself_is_good(void **state)
{
    (void)state;
    for (enum place place = 0; place < PLACES; place++) {
        DLTensor good = sample();
        assert_ok(call_with(place, &good));
    }
}

static void null_tensor(void **state)
{
    (void)state;
    assert_refused_everywhere(NULL, FUSELINE_ERROR_ARGUMENT, "NULL");
}

static void ndim_out_of_range(void **state)
{
    (void)state;
    const int bad[] = {-1, -2147483647 - 1, 65, 2147483647};
    for (int k = 0; k < COUNT(bad); k++) {
        DLTensor tensor = sample();
        char found[16];
        tensor.ndim = bad[k];
        snprintf(found, sizeof found, "%d", bad[k]);
        assert_refused_everywhere(&tensor, FUSELINE_ERROR_ARGUMENT, "ndim", found, "accepted: 0 to 64");
    }
}

static void sixty_four_dimensions(void **state)
{
    (void)state;
    int64_t shape[64];
    float x = 2, y = 0;
    for (int axis = 0; axis < 64; axis++)
        shape[axis] = 1;
    DLTensor from = tensor_of(&x, FLOAT32, 64, shape, NULL), to = tensor_of(&y, FLOAT32, 64, shape, NULL);
    assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
    assert_float_equal(y, swish_in_double(2, 1), 1e-6);
}

/* A18 */
static void null_shape(void **state)
{
    (void)state;
    DLTensor tensor = sample();
    tensor.shape = NULL;
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_ARGUMENT, "shape is NULL", "ndim 2");
}

static void negative_extent(void **state)
{
    (void)state;
    DLTensor tensor = sample();
    tensor.shape[1] = -3;
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "axis 1", "-3", "accepted: 0 or more");
    tensor.shape[0] = 0; /* an empty tensor must be well-formed too */
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "axis 1", "-3");
    tensor.shape[0] = INT64_MIN;
    tensor.shape[1] = 3;
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "axis 0", "-9223372036854775808");
}

/* C20 */
static void element_count_overflows(void **state)
{
    (void)state;
    DLTensor tensor = tensor_of(values[3], FLOAT32, 3, DIMS((int64_t)1 << 31, (int64_t)1 << 31, 4), NULL);
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "overflow", "axis 0", "(2147483648, 2147483648, 4)");
    tensor.strides = DIMS(0, 0, 0); /* a broadcast value: small in memory, the count overflows all the same */
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "overflow", "axis 0");
    tensor = tensor_of(values[3], FLOAT32, 3, DIMS(4, (int64_t)1 << 31, (int64_t)1 << 32), NULL);
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "overflow", "axis 1");
}

/* The count fits 64 bits, the bytes do not. */
static void memory_extent_overflows(void **state)
{
    (void)state;
    DLTensor tensor = tensor_of(values[3], FLOAT32, 1, DIMS(INT64_MAX), NULL);
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "overflow", "axis 0");
    tensor = tensor_of(values[3], FLOAT32, 2, DIMS(2, 3), DIMS(1, INT64_MAX / 2));
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "overflow", "axis 1");
    tensor.strides = DIMS(INT64_MIN, 1);
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "overflow", "axis 0");
    tensor = tensor_of(values[3], FLOAT32, 2, DIMS(3, 3), DIMS(INT64_MAX / 8, INT64_MAX / 8)); /* each fits, the sum does not */
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "overflow", "axis 1");
}

/* Memory that would run past the end of the address space is no memory. */
static void address_space_ends(void **state)
{
    (void)state;
    DLTensor tensor = tensor_of((void *)(UINTPTR_MAX - 7), FLOAT32, 1, DIMS(6), NULL);
    for (enum place place = 0; place < PLACES;
         place++) { /* one dimension: the good tensors have another shape, which comes later */
        assert_refused(call_with(place, &tensor), FUSELINE_ERROR_SHAPE, "address");
        assert_memory_equal(fuseline_last_error(), place_names[place], strlen(place_names[place]));
    }
    tensor = tensor_of((void *)8, FLOAT32, 2, DIMS(2, 3), DIMS(-100, 1));
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "address");
    tensor = sample();
    tensor.byte_offset = UINT64_MAX - 3;
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_SHAPE, "address");
}

static void several_lanes(void **state)
{
    (void)state;
    const int lanes[] = {0, 2, 4, 65535};
    for (int k = 0; k < COUNT(lanes); k++) {
        DLTensor tensor = sample();
        char found[32];
        tensor.dtype.lanes = (uint16_t)lanes[k];
        snprintf(found, sizeof found, "%d lanes", lanes[k]);
        assert_refused_everywhere(&tensor, FUSELINE_ERROR_DTYPE, found, "accepted: 1");
    }
}

/* D3, D4, D5, D7: every pair of code and bits but four is refused, by its true name, and never read as a float. */
static void other_dtypes(void **state)
{
    (void)state;
    static const struct {
        DLDataType dtype;
        const char *found;
    } named[] = {
        {{kDLBool, 8, 1}, "bool of 8 bits"},           {{kDLInt, 8, 1}, "int of 8 bits"},
        {{kDLInt, 16, 1}, "int of 16 bits"},           {{kDLInt, 32, 1}, "int of 32 bits"},
        {{kDLInt, 64, 1}, "int of 64 bits"},           {{kDLUInt, 8, 1}, "uint of 8 bits"},
        {{kDLUInt, 16, 1}, "uint of 16 bits"},         {{kDLComplex, 64, 1}, "complex of 64 bits"},
        {{kDLComplex, 128, 1}, "complex of 128 bits"}, {{kDLFloat, 8, 1}, "float of 8 bits"},
        {{kDLFloat, 128, 1}, "float of 128 bits"},     {{kDLFloat, 0, 1}, "float of 0 bits"},
        {{kDLBfloat, 32, 1}, "bfloat of 32 bits"},     {{kDLOpaqueHandle, 64, 1}, "opaque handle of 64 bits"},
        {{7, 8, 1}, "float8_e3m4 of 8 bits"},          {{8, 8, 1}, "float8_e4m3 of 8 bits"},
        {{9, 8, 1}, "float8_e4m3b11fnuz of 8 bits"},   {{10, 8, 1}, "float8_e4m3fn of 8 bits"},
        {{11, 8, 1}, "float8_e4m3fnuz of 8 bits"},     {{12, 8, 1}, "float8_e5m2 of 8 bits"},
        {{13, 8, 1}, "float8_e5m2fnuz of 8 bits"},     {{14, 8, 1}, "float8_e8m0fnu of 8 bits"},
        {{17, 4, 1}, "float4_e2m1fn of 4 bits"},       {{99, 16, 1}, "unknown of 16 bits (DLPack code 99)"},
        {{255, 32, 1}, "unknown of 32 bits"},
    };
    DLTensor tensor = sample();
    for (int k = 0; k < COUNT(named); k++) {
        tensor.dtype = named[k].dtype;
        assert_refused_everywhere(&tensor, FUSELINE_ERROR_DTYPE, named[k].found, "float16, bfloat16, float32, float64");
    }
    for (int code = 0; code < 256; code++)
        for (int bits = 0; bits < 256; bits++) {
            if ((code == kDLFloat && (bits == 16 || bits == 32 || bits == 64)) || (code == kDLBfloat && bits == 16))
                continue;
            tensor.dtype = (DLDataType){(uint8_t)code, (uint8_t)bits, 1};
            assert_refused(call_with(FORWARD_X, &tensor), FUSELINE_ERROR_DTYPE, "x: ", "accepted: ");
        }
}

static void all_four_dtypes(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        const struct format *format = &formats[f];
        char x[3 * 8], y[3 * 8];
        for (int i = 0; i < 3; i++)
            store(format, x + i * format->size, i - 1);
        DLTensor from = tensor_of(x, format->dtype, 1, DIMS(3), NULL), to = tensor_of(y, format->dtype, 1, DIMS(3), NULL);
        assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
        for (int i = 0; i < 3; i++)
            assert_true(ulps_between(format, load(format, y + i * format->size), swish_in_long_double(i - 1, 1)) <= 1);
    }
}

/* F6 and the whole list of device types: host memory runs on the CPU whatever its index, GPUs with an index that no machine has get
 * a clear error, and everything else is refused by number. */
static void device_types(void **state)
{
    (void)state;
    for (int type = -3; type < 40; type++) {
        float x[3] = {-1, 0, 1}, y[3] = {9, 9, 9};
        char found[32];
        DLTensor from = tensor_of(x, FLOAT32, 1, DIMS(3), NULL), to = tensor_of(y, FLOAT32, 1, DIMS(3), NULL);
        from.device = to.device = (DLDevice){(DLDeviceType)type, 4096};
        fuseline_status status = fuseline_swish_forward(&from, 1, NULL, &to);
        switch (type) {
        case kDLCPU:
        case kDLCUDAHost:
        case kDLROCMHost:
            assert_ok(status);
            assert_float_equal(y[2], swish_in_double(1, 1), 1e-6);
            break;
        case kDLCUDA:
        case kDLCUDAManaged:
        case kDLROCM:
            assert_true(status == FUSELINE_ERROR_DEVICE || status == FUSELINE_ERROR_RUNTIME ||
                        status == FUSELINE_ERROR_ARCHITECTURE);
            assert_true(strlen(fuseline_last_error()) > 10);
            assert_true(y[2] == 9);
            break;
        default:
            snprintf(found, sizeof found, "device type is %d", type);
            assert_refused(status, FUSELINE_ERROR_DEVICE, "x: ", found, "accepted: CPU, CUDA host, ROCm host");
            assert_true(y[2] == 9);
        }
    }
}

static void unknown_device_in_every_place(void **state)
{
    (void)state;
    DLTensor tensor = sample();
    tensor.device.device_type = kDLVulkan;
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_DEVICE, "device type is 7", "accepted: CPU");
}

static void negative_device_index(void **state)
{
    (void)state;
    DLTensor tensor = sample();
    tensor.device = (DLDevice){kDLCUDA, -1};
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_DEVICE, "device index is -1", "accepted: 0 or more");
    tensor.device = (DLDevice){kDLROCM, -2147483647 - 1};
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_DEVICE, "device index is -2147483648");
    tensor.device = (DLDevice){kDLCUDAHost, -1}; /* without meaning there: F6 */
    assert_ok(call_with(FORWARD_X, &tensor));
}

static void two_devices(void **state)
{
    (void)state;
    static const struct {
        DLDevice x, y;
        const char *found, *wanted;
    } pairs[] = {
        {{kDLCPU, 0}, {kDLCUDA, 0}, "y is on CUDA device 0", "x is on CPU"},
        {{kDLCUDA, 1}, {kDLCPU, 0}, "y is on CPU", "x is on CUDA device 1"},
        {{kDLCUDA, 0}, {kDLCUDA, 1}, "y is on CUDA device 1", "x is on CUDA device 0"},
        {{kDLCUDA, 0}, {kDLROCM, 0}, "y is on ROCm device 0", "x is on CUDA device 0"},
        {{kDLCUDAHost, 0}, {kDLCUDA, 0}, "y is on CUDA device 0", "x is on CPU"},
    };
    for (int k = 0; k < COUNT(pairs); k++) {
        float x[2] = {1, 2}, y[2] = {9, 9};
        DLTensor from = tensor_of(x, FLOAT32, 1, DIMS(2), NULL), to = tensor_of(y, FLOAT32, 1, DIMS(2), NULL);
        from.device = pairs[k].x;
        to.device = pairs[k].y;
        assert_refused(fuseline_swish_forward(&from, 1, NULL, &to), FUSELINE_ERROR_DEVICE, pairs[k].found, pairs[k].wanted,
                       "accepted: one device");
        assert_true(y[0] == 9);
    }
}

static void host_memory_of_several_kinds(void **state)
{
    (void)state;
    float dy[2] = {1, 1}, x[2] = {1, 2}, dx[2];
    DLTensor tensors[] = {tensor_of(dy, FLOAT32, 1, DIMS(2), NULL), tensor_of(x, FLOAT32, 1, DIMS(2), NULL),
                          tensor_of(dx, FLOAT32, 1, DIMS(2), NULL)};
    tensors[0].device = (DLDevice){kDLCUDAHost, 3};
    tensors[1].device = (DLDevice){kDLROCMHost, 1};
    assert_ok(fuseline_swish_backward(&tensors[0], &tensors[1], 1, NULL, &tensors[2]));
    assert_float_equal(dx[1], swish_slope_in_double(2, 1), 1e-6);
}

static void dtypes_differ(void **state)
{
    (void)state;
    DLTensor tensor = sample();
    tensor.dtype = BFLOAT16;
    assert_refused(call_with(BACKWARD_X, &tensor), FUSELINE_ERROR_DTYPE, "dx: dtype is float32", "x is bfloat16",
                   "accepted: the same dtype");
    assert_refused(call_with(BACKWARD_DX, &tensor), FUSELINE_ERROR_DTYPE, "dx: dtype is bfloat16", "x is float32");
    tensor.dtype = FLOAT64;
    tensor.shape[0] = 1; /* the dtype comes first */
    static const int places[] = {FORWARD_X, FORWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX};
    for (int k = 0; k < COUNT(places); k++)
        assert_refused(call_with(places[k], &tensor), FUSELINE_ERROR_DTYPE, "dtype is ", "float64", "float32", "accepted: ");
}

static void shapes_differ(void **state)
{
    (void)state;
    DLTensor tensor = sample();
    float before[6];
    memcpy(before, values[1], sizeof before);
    tensor.shape = DIMS(3, 2); /* as many elements, even so */
    assert_refused(call_with(FORWARD_X, &tensor), FUSELINE_ERROR_SHAPE, "y: shape is (2, 3)", "x is (3, 2)");
    assert_refused(call_with(BACKWARD_X, &tensor), FUSELINE_ERROR_SHAPE, "x: shape is (3, 2)", "dy is (2, 3)");
    assert_refused(call_with(BACKWARD_DX, &tensor), FUSELINE_ERROR_SHAPE, "dx: shape is (3, 2)");
    tensor.ndim = 1;
    tensor.shape = DIMS(6);
    assert_refused(call_with(FORWARD_Y, &tensor), FUSELINE_ERROR_SHAPE, "y: shape is (6)");
    tensor.shape = DIMS(0);
    assert_refused(call_with(FORWARD_X, &tensor), FUSELINE_ERROR_SHAPE, "x is (0)");
    tensor.ndim = 0;
    assert_refused(call_with(FORWARD_X, &tensor), FUSELINE_ERROR_SHAPE, "x is ()");
    assert_memory_equal(before, values[1], sizeof before);
}

/* float32 with a 16-bit type is fine for a result and its gradient; the operands agree among themselves. */
static void dtypes_mix(void **state)
{
    (void)state;
    DLTensor tensor = sample();
    for (int k = 0; k < 2; k++) {
        tensor.dtype = k == 0 ? FLOAT16 : BFLOAT16;
        assert_ok(call_with(FORWARD_X, &tensor));
        assert_ok(call_with(FORWARD_Y, &tensor));
        assert_ok(call_with(BACKWARD_DY, &tensor));
    }
    float x[6] = {0}, y[6];
    DLTensor from = tensor_of(x, FLOAT16, 1, DIMS(6), NULL), to = tensor_of(y, BFLOAT16, 1, DIMS(6), NULL);
    assert_refused(fuseline_swish_forward(&from, 1, NULL, &to), FUSELINE_ERROR_DTYPE, "y: dtype is bfloat16", "x is float16",
                   "float32 with a 16-bit type");
    assert_refused(fuseline_swish_forward(&to, 1, NULL, &from), FUSELINE_ERROR_DTYPE, "y: dtype is float16", "x is bfloat16");
}

/* A message about many long extents is cut, not overrun. */
static void shapes_of_many_long_extents(void **state)
{
    (void)state;
    int64_t shape[64];
    float value = 0;
    for (int axis = 0; axis < 64; axis++)
        shape[axis] = axis == 0 ? 0 : INT64_MAX;
    DLTensor tensor = tensor_of(&value, FLOAT32, 64, shape, NULL);
    assert_refused(call_with(FORWARD_X, &tensor), FUSELINE_ERROR_SHAPE, "x is (0, 9223372036854775807, ", "...)");
}

static void data_is_null(void **state)
{
    (void)state;
    DLTensor tensor = sample();
    tensor.data = NULL;
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_ARGUMENT, "data is NULL", "6 elements");
    tensor.byte_offset = 64; /* an offset makes no memory of it */
    assert_refused_everywhere(&tensor, FUSELINE_ERROR_ARGUMENT, "data is NULL");
}

/* C1: 16 floats, the last eight addressed by byte_offset 32, in every place. */
static void byte_offset_counts(void **state)
{
    (void)state;
    float dy[16], x[16], y[16];
    for (int i = 0; i < 16; i++) {
        dy[i] = (float)i;
        x[i] = (float)(i - 8);
        y[i] = 99;
    }
    DLTensor gradient = tensor_of(dy, FLOAT32, 1, DIMS(8), NULL), from = tensor_of(x, FLOAT32, 1, DIMS(8), NULL),
             to = tensor_of(y, FLOAT32, 1, DIMS(8), NULL);
    from.byte_offset = 32;
    to.byte_offset = 16;
    gradient.byte_offset = 20;
    assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
    for (int i = 0; i < 16; i++)
        assert_float_equal(y[i], i >= 4 && i < 12 ? swish_in_double(x[8 + i - 4], 1) : 99, 1e-5);
    assert_ok(fuseline_swish_backward(&gradient, &from, 1, NULL, &to));
    for (int i = 0; i < 16; i++)
        assert_float_equal(y[i], i >= 4 && i < 12 ? dy[5 + i - 4] * swish_slope_in_double(x[8 + i - 4], 1) : 99, 1e-5);
}

/* C5: strides NULL means compact. */
static void strides_null(void **state)
{
    (void)state;
    float x[6] = {-3, -2, -1, 1, 2, 3}, y[6];
    DLTensor from = tensor_of(x, FLOAT32, 2, DIMS(2, 3), NULL), to = tensor_of(y, FLOAT32, 2, DIMS(2, 3), DIMS(3, 1));
    assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
    for (int i = 0; i < 6; i++)
        assert_float_equal(y[i], swish_in_double(x[i], 1), 1e-6);
}

/* C7, C9: the stride of a dimension of size 1 never matters. */
static void strides_of_one_element(void **state)
{
    (void)state;
    static const int64_t odd[] = {0, 1, 3, -7, INT64_MAX, INT64_MIN};
    for (int k = 0; k < COUNT(odd); k++) {
        float x[3] = {-1, 1, 2}, y[3];
        DLTensor from = tensor_of(x, FLOAT32, 1, DIMS(1), DIMS(odd[k])), to = tensor_of(y, FLOAT32, 1, DIMS(1), DIMS(odd[k]));
        assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
        assert_float_equal(y[0], swish_in_double(-1, 1), 1e-6);

        from = tensor_of(x, FLOAT32, 3, DIMS(1, 3, 1), DIMS(odd[k], 1, odd[k]));
        to = tensor_of(y, FLOAT32, 3, DIMS(1, 3, 1), DIMS(odd[COUNT(odd) - 1 - k], 1, odd[k]));
        assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
        for (int i = 0; i < 3; i++)
            assert_float_equal(y[i], swish_in_double(x[i], 1), 1e-6);

        from = tensor_of(x, FLOAT32, 3, DIMS(1, 1, 1), DIMS(odd[k], odd[k], odd[k]));
        to = tensor_of(y, FLOAT32, 3, DIMS(1, 1, 1), DIMS(0, 0, 0));
        assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
    }
}

/* C13: no shape is read in rank 0. */
static void rank_zero(void **state)
{
    (void)state;
    double x = 1.5, dy = 2, y = 0, dx = 0;
    DLTensor from = tensor_of(&x, FLOAT64, 0, NULL, NULL), to = tensor_of(&y, FLOAT64, 0, NULL, NULL);
    assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
    assert_true(ulps_between(&formats[IN_FLOAT64], y, swish_in_long_double(1.5, 1)) <= 3);
    from.shape = from.strides = (int64_t *)1; /* a pointer that must not be followed */
    to.shape = to.strides = (int64_t *)1;
    y = 0;
    assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
    assert_true(y > 1);
    DLTensor gradient = tensor_of(&dy, FLOAT64, 0, NULL, NULL), slope = tensor_of(&dx, FLOAT64, 0, NULL, NULL);
    assert_ok(fuseline_swish_backward(&gradient, &from, 1, NULL, &slope));
    assert_true(fabs(dx - 2 * swish_slope_in_double(1.5, 1)) < 1e-15);
}

/* C10, G18: nothing to do is a success, whatever data and strides say, and nothing is touched. */
static void zero_elements(void **state)
{
    (void)state;
    static const struct {
        int ndim;
        int64_t shape[4];
    } shapes[] = {{1, {0}}, {2, {10, 0}}, {2, {0, 10}}, {2, {0, 0}}, {3, {3, 0, 5}}, {4, {1, 8, 0, 128}}};
    static const int64_t odd_strides[4] = {-5, 0, INT64_MAX, INT64_MIN};
    for (int k = 0; k < COUNT(shapes); k++)
        for (int odd = 0; odd < 2; odd++) {
            float untouched[4] = {1, 2, 3, 4};
            int64_t *strides = odd ? (int64_t *)odd_strides : NULL;
            void *data[] = {NULL, untouched, (void *)3};
            for (int d = 0; d < COUNT(data); d++) {
                DLTensor from = tensor_of(data[d], FLOAT32, shapes[k].ndim, (int64_t *)shapes[k].shape, strides), to = from;
                assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
                assert_ok(fuseline_swish_backward(&from, &from, 1, NULL, &to));
                to.device.device_type = from.device.device_type = kDLROCM; /* no launch, so no GPU is needed */
                assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
            }
            assert_memory_equal(untouched, ((float[]){1, 2, 3, 4}), sizeof untouched);
        }
}

/* Emptiness does not excuse a bad scalar or a bad tensor. */
static void zero_elements_are_checked_too(void **state)
{
    (void)state;
    DLTensor from = tensor_of(NULL, FLOAT32, 1, DIMS(0), NULL), to = from, other = from;
    assert_refused(fuseline_swish_forward(&from, NAN, NULL, &to), FUSELINE_ERROR_ARGUMENT, "beta: ");
    other.dtype = FLOAT64;
    assert_refused(fuseline_swish_forward(&from, 1, NULL, &other), FUSELINE_ERROR_DTYPE, "y: ");
    other = tensor_of(NULL, FLOAT32, 2, DIMS(0, 3), NULL);
    assert_refused(fuseline_swish_forward(&from, 1, NULL, &other), FUSELINE_ERROR_SHAPE, "y: ");
}

/* Any address works on the CPU, multiples of the element size or not. */
static void unaligned_memory(void **state)
{
    (void)state;
    enum { LENGTH = 70 };
    for (int f = 0; f < FORMATS; f++)
        for (int offset = 0; offset < 9; offset++) {
            const struct format *format = &formats[f];
            char x[(LENGTH + 2) * 8], y[(LENGTH + 2) * 8], *from = x + offset, *to = y + (offset * 5 + 3) % 9;
            int bytes = LENGTH * format->size;
            memset(y, 0x5a, sizeof y);
            for (int i = 0; i < LENGTH; i++)
                store(format, from + i * format->size, (i - 30) * 0.25);
            DLTensor in = tensor_of(from, format->dtype, 1, DIMS(LENGTH), NULL),
                     out = tensor_of(to, format->dtype, 1, DIMS(LENGTH), NULL);
            assert_ok(fuseline_swish_forward(&in, 1, NULL, &out));
            for (int i = 0; i < LENGTH; i++) {
                double right = swish_in_double(load(format, from + i * format->size), 1);
                assert_true(ulps_between(format, load(format, to + i * format->size), right) <= 3);
            }
            for (char *c = y; c < y + sizeof y; c++)
                assert_true((c >= to && c < to + bytes) || *c == 0x5a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_itself_is_good),
        cmocka_unit_test(null_tensor),
        cmocka_unit_test(ndim_out_of_range),
        cmocka_unit_test(sixty_four_dimensions),
        cmocka_unit_test(null_shape),
        cmocka_unit_test(negative_extent),
        cmocka_unit_test(element_count_overflows),
        cmocka_unit_test(memory_extent_overflows),
        cmocka_unit_test(address_space_ends),
        cmocka_unit_test(several_lanes),
        cmocka_unit_test(other_dtypes),
        cmocka_unit_test(all_four_dtypes),
        cmocka_unit_test(device_types),
        cmocka_unit_test(unknown_device_in_every_place),
        cmocka_unit_test(negative_device_index),
        cmocka_unit_test(two_devices),
        cmocka_unit_test(host_memory_of_several_kinds),
        cmocka_unit_test(dtypes_differ),
        cmocka_unit_test(dtypes_mix),
        cmocka_unit_test(shapes_differ),
        cmocka_unit_test(shapes_of_many_long_extents),
        cmocka_unit_test(data_is_null),
        cmocka_unit_test(byte_offset_counts),
        cmocka_unit_test(strides_null),
        cmocka_unit_test(strides_of_one_element),
        cmocka_unit_test(rank_zero),
        cmocka_unit_test(zero_elements),
        cmocka_unit_test(zero_elements_are_checked_too),
        cmocka_unit_test(unaligned_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
