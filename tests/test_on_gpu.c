/*
 * Every operator on an AMD GPU by way of the vendor's runtime alone, without any framework: memory is the device's own, results are
 * copied back and compared with the formula in long double. On the first device of the runtime that FUSELINE_GPU_RUNTIME names, or of
 * ROCm's; where there is none, on the one that the stand-in runtime plays, so that the test itself is tested.
 */
#include "testing.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "numbers.h"
#include "operators.h"
#include "tensors.h"

/* What is called of the runtime, all of which HIP has had in all its versions. */
static struct {
    const char *path, *name;
    int (*device_count)(int *count);
    int (*allocate)(void **memory, size_t size);
    int (*release)(void *memory);
    int (*copy)(void *to, const void *from, size_t size, int kind);
    int (*synchronize)(void);
} hip;

enum { TO_DEVICE = 1, FROM_DEVICE = 2 }; /* hipMemcpyKind */

enum { TENSORS_ON_GPU = 5, ROWS = 37, COLUMNS = 301, PADDING = 16, ROOM = ROWS * (COLUMNS + PADDING) * 8 + 64 };
enum { FILLER = 0x5a };

static void *device_memory[TENSORS_ON_GPU];
static char host_memory[TENSORS_ON_GPU][ROOM];

static int open_runtime(const char *path)
{
    int count = 0;
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL)
        return 0;
    *(void **)&hip.device_count = dlsym(library, "hipGetDeviceCount");
    *(void **)&hip.allocate = dlsym(library, "hipMalloc");
    *(void **)&hip.release = dlsym(library, "hipFree");
    *(void **)&hip.copy = dlsym(library, "hipMemcpy");
    *(void **)&hip.synchronize = dlsym(library, "hipDeviceSynchronize");
    if (hip.device_count == NULL || hip.allocate == NULL || hip.release == NULL || hip.copy == NULL || hip.synchronize == NULL ||
        hip.device_count(&count) != 0 || count == 0)
        return 0;
    hip.path = path;
    return 1;
}

/* Opens the first of the runtimes that has a device; returns why none has, or NULL. */
static const char *find_gpu(void)
{
    static char standin[1024];
    const char *folder = getenv("builddir");
    const char *const paths[] = {getenv("FUSELINE_GPU_RUNTIME"), "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                 standin};
    int has_driver = access("/dev/kfd", F_OK) == 0; /* else ROCm's would be opened for nothing */
    snprintf(standin, sizeof standin, "%s/tests/standin/libamdhip64.so", folder != NULL ? folder : ".");
    for (int k = 0; k < COUNT(paths) && hip.path == NULL; k++)
        if (k == 0 || has_driver || paths[k] == standin)
            open_runtime(paths[k]);
    if (hip.path == NULL)
        return "no ROCm device, and no stand-in for one";
    setenv("FUSELINE_GPU_RUNTIME", hip.path, 1); /* which goes before all other ways */
    hip.name = hip.path == standin ? "the stand-in runtime" : hip.path;
    return NULL;
}

static int take_memory(void **state)
{
    (void)state;
    for (int k = 0; k < TENSORS_ON_GPU; k++)
        assert_int_equal(hip.allocate(&device_memory[k], ROOM), 0);
    return 0;
}

static int give_memory_back(void **state)
{
    (void)state;
    for (int k = 0; k < TENSORS_ON_GPU; k++)
        assert_int_equal(hip.release(device_memory[k]), 0);
    return 0;
}

/* One problem: so many rows and columns, rows `stride` elements apart, everything `shift` elements from aligned memory. */
struct problem {
    const struct format *format;
    int64_t shape[2], strides[2];
    int shift;
};

static char *at(const struct problem *p, int tensor, int64_t row, int64_t column)
{
    return host_memory[tensor] + (p->shift + row * p->strides[0] + column) * p->format->size;
}

/* Multiples of 1/16 between -8 and 8, exact in every dtype. */
static double input(int tensor, int64_t row, int64_t column)
{
    return (double)((row * 7919 + column * 104729 + tensor * 31) % 257 - 128) / 16;
}

/* Fills the first `inputs` tensors, and all else with bytes that are to stay, here and on the device; describes all. */
static void set_up(struct problem *p, int inputs, int count, DLTensor *tensors)
{
    memset(host_memory, FILLER, sizeof host_memory);
    for (int k = 0; k < count; k++) {
        for (int64_t row = 0; row < p->shape[0] && k < inputs; row++)
            for (int64_t column = 0; column < p->shape[1]; column++)
                store(p->format, at(p, k, row, column), input(k, row, column));
        assert_int_equal(hip.copy(device_memory[k], host_memory[k], ROOM, TO_DEVICE), 0);
        tensors[k] = tensor_of((char *)device_memory[k] + p->shift * p->format->size, p->format->dtype, 2, p->shape, p->strides);
        tensors[k].device = (DLDevice){kDLROCM, 0};
    }
}

/* Copies everything back; whatever is no element of the outputs, from the tensor `first` on, has to be what it was. */
static void read_back(const struct problem *p, int first, int count)
{
    static char before[ROOM];
    assert_int_equal(hip.synchronize(), 0);
    for (int k = 0; k < count; k++) {
        memcpy(before, host_memory[k], ROOM);
        assert_int_equal(hip.copy(host_memory[k], device_memory[k], ROOM, FROM_DEVICE), 0);
        for (int64_t row = 0; row < p->shape[0] && k >= first; row++) {
            size_t from = (size_t)(at(p, k, row, 0) - host_memory[k]);
            memcpy(before + from, host_memory[k] + from, (size_t)(p->shape[1] * p->format->size));
        }
        assert_memory_equal(before, host_memory[k], ROOM);
    }
}

/* How far `got` may be from `right`: some units of the type computed in, of the larger of the result and `scale`, and one rounding. For
 * 16-bit types GPUs take less trouble: 2^-18. */
static void assert_near(const struct problem *p, double got, long double right, long double scale, double *worst)
{
    int size = p->format->size;
    long double unit = ldexpl(1, size == 8 ? -52 : size == 4 ? -23 : -20), ulp = ulp_at(p->format, right);
    long double bound = 4 * unit * fmaxl(fabsl(right), scale) + (size == 2 ? 0.505L : 0.5L) * ulp;
    if (size == 8 && !long_double_is_wider())
        bound *= 100;
    if (!(fabsl(got - right) <= bound)) {
        print_error("%s: %.17g, wanted %.17Lg within %Lg\n", p->format->name, got, right, bound);
        fail();
    }
    *worst = fmax(*worst, (double)(fabsl(got - right) / ulp_at(p->format, fmaxl(fabsl(right), scale))));
}

static void check_unary(struct problem *p, const struct operator_case *op, double *worst)
{
    DLTensor t[3];
    set_up(p, 1, 2, t);
    assert_ok(op->forward.borrow((void *[]){&t[0], &t[1]}, &plain_scalars));
    read_back(p, 1, 2);
    for (int64_t row = 0; row < p->shape[0]; row++)
        for (int64_t column = 0; column < p->shape[1]; column++)
            assert_near(p, load(p->format, at(p, 1, row, column)), op->value(input(0, row, column), 1), 0, &worst[0]);
    set_up(p, 2, 3, t);
    assert_ok(op->backward.borrow((void *[]){&t[0], &t[1], &t[2]}, &plain_scalars));
    read_back(p, 2, 3);
    for (int64_t row = 0; row < p->shape[0]; row++)
        for (int64_t column = 0; column < p->shape[1]; column++) {
            double dy = input(0, row, column), x = input(1, row, column);
            assert_near(p, load(p->format, at(p, 2, row, column)), right_gradient(op, dy, x, 1), fabs(dy), &worst[1]);
        }
}

static void check_gated(struct problem *p, const struct operator_case *op, double *worst)
{
    DLTensor t[5];
    set_up(p, 2, 3, t);
    assert_ok(op->forward.borrow((void *[]){&t[0], &t[1], NULL, &t[2]}, &plain_scalars));
    read_back(p, 2, 3);
    for (int64_t row = 0; row < p->shape[0]; row++)
        for (int64_t column = 0; column < p->shape[1]; column++) {
            long double right = op->value(input(0, row, column), 1) * input(1, row, column);
            assert_near(p, load(p->format, at(p, 2, row, column)), right, 0, &worst[0]);
        }
    set_up(p, 3, 5, t);
    assert_ok(op->backward.borrow((void *[]){&t[0], &t[1], &t[2], NULL, &t[3], &t[4]}, &plain_scalars));
    read_back(p, 3, 5);
    for (int64_t row = 0; row < p->shape[0]; row++)
        for (int64_t column = 0; column < p->shape[1]; column++) {
            double dy = input(0, row, column), gate = input(1, row, column), up = input(2, row, column);
            assert_near(p, load(p->format, at(p, 3, row, column)), right_gradient(op, dy * up, gate, 1), fabs(dy * up),
                        &worst[1]);
            assert_near(p, load(p->format, at(p, 4, row, column)), dy * op->value(gate, 1), 0, &worst[1]);
        }
}

/* Why the library does not run on the device, for want of code for it; NULL if it does. */
static const char *why_no_code(void)
{
    static float numbers[2];
    static char text[8192];
    void *memory = NULL;
    int64_t shape[1] = {1};
    fuseline_info(text, sizeof text);
    const char *targets = strstr(text, "\"targets\": ["), *code = strstr(targets, "\"gfx"); /* devices are named so too, later */
    if (code == NULL || code > strchr(targets, ']'))
        return "the library has no code for AMD";
    if (hip.allocate(&memory, sizeof numbers) != 0 || hip.copy(memory, numbers, sizeof numbers, TO_DEVICE) != 0)
        return NULL; /* the tests will tell */
    DLTensor x = tensor_of(memory, FLOAT32, 1, shape, NULL);
    x.device = (DLDevice){kDLROCM, 0};
    fuseline_status status = fuseline_swish_forward(&x, 1, NULL, &x);
    hip.synchronize();
    hip.release(memory);
    return status == FUSELINE_ERROR_ARCHITECTURE ? fuseline_last_error() : NULL;
}

/* Contiguous and aligned; contiguous, one element from aligned memory; rows apart. The first two have a tail beyond whole vectors. */
static void every_operator_in_every_dtype_and_layout(void **state)
{
    (void)state;
    for (const struct operator_case *op = operators; op < operators + OPERATORS; op++)
        for (int f = 0; f < FORMATS; f++) {
            double worst[2] = {0, 0};
            struct problem problems[] = {{&formats[f], {ROWS, COLUMNS}, {COLUMNS, 1}, 0},
                                         {&formats[f], {ROWS, COLUMNS}, {COLUMNS, 1}, 1},
                                         {&formats[f], {ROWS, COLUMNS}, {COLUMNS + PADDING, 1}, 0}};
            for (int k = 0; k < COUNT(problems); k++)
                (op->is_gated ? check_gated : check_unary)(&problems[k], op, worst);
            print_message("# %s %s: forward %.3f, backward %.3f ulp\n", op->name, formats[f].name, worst[0], worst[1]);
        }
}

/* Sums of multiples of 1/16 are exact in float32 and float64; in 16 bits they are rounded once. */
static void sums_of_columns(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        struct problem p = {&formats[f], {ROWS, COLUMNS}, {COLUMNS + PADDING, 1}, 0}, row = p;
        DLTensor t[2];
        set_up(&p, 1, 2, t);
        t[1].ndim = 1;
        t[1].shape = &p.shape[1];
        t[1].strides = NULL;
        row.shape[0] = 1;
        assert_ok(fuseline_column_sum(&t[0], NULL, &t[1]));
        read_back(&row, 1, 2);
        for (int64_t column = 0; column < COLUMNS; column++) {
            double sum = 0;
            for (int64_t k = 0; k < ROWS; k++)
                sum += input(0, k, column);
            assert_true(load(p.format, at(&p, 1, 0, column)) == round_to(p.format, sum));
        }
    }
}

/* Many blocks, and every one of a grid's threads at its own element. */
static void numbers_beyond_one_block(void **state)
{
    enum { MANY = (1 << 22) + 3, BYTES = MANY * 2 };
    const struct format *format = &formats[IN_BFLOAT16];
    (void)state;
    void *memory[2];
    uint16_t *numbers = malloc(BYTES), table[257];
    int64_t shape[1] = {MANY};
    DLTensor t[2];
    assert_non_null(numbers);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(hip.allocate(&memory[k], BYTES), 0);
        t[k] = tensor_of(memory[k], format->dtype, 1, shape, NULL);
        t[k].device = (DLDevice){kDLROCM, 0};
    }
    for (int k = 0; k < 257; k++)
        store(format, &table[k], (k - 128) / 16.0);
    for (int k = 0; k < MANY; k++)
        numbers[k] = table[k % 257];
    assert_int_equal(hip.copy(memory[0], numbers, BYTES, TO_DEVICE), 0);
    assert_ok(fuseline_relu2_forward(&t[0], NULL, &t[1]));
    assert_int_equal(hip.synchronize(), 0);
    assert_int_equal(hip.copy(numbers, memory[1], BYTES, FROM_DEVICE), 0);
    for (int k = 0; k < 257; k++) {
        double x = (k - 128) / 16.0;
        store(format, &table[k], x > 0 ? x * x : 0);
    }
    for (int k = 0; k < MANY; k++)
        assert_int_equal(numbers[k], table[k % 257]);
    for (int k = 0; k < 2; k++)
        assert_int_equal(hip.release(memory[k]), 0);
    free(numbers);
}

/* All are skipped in TAP's way, since cmocka's own is not that of every version. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_in_every_dtype_and_layout),
        cmocka_unit_test(sums_of_columns),
        cmocka_unit_test(numbers_beyond_one_block),
    };
    const char *reason = find_gpu();
    if (reason == NULL)
        reason = why_no_code();
    if (reason != NULL)
        return printf("1..0 # SKIP %s\n", reason) < 0;
    printf("# on the first device of %s\n", hip.name);
    return cmocka_run_group_tests(tests, take_memory, give_memory_back);
}
