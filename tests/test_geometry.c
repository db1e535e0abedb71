/* The geometry of launches, on counts that no test machine has the memory for. */
#include "testing.h"

#include "gpu/geometry.h"

/* The geometry of a kernel with that many operands of one dtype, any will do, where a thread has one vector of each on its way. */
static struct fl_geometry geometry_of(const struct fl_arguments *arguments, int operands, enum fl_dtype dtype)
{
    return fl_geometry(arguments, &fl_operators[operands == 2 ? FL_INDEX_swish_forward : FL_INDEX_swish_backward],
                       (struct fl_types){dtype, dtype}, fl_tuning_of("gfx1151"));
}

/* A dense call on `columns` elements, all operands aligned. */
static struct fl_arguments dense(int operands, long long columns)
{
    struct fl_arguments arguments = {.rows = 1, .columns = columns};
    for (int k = 0; k < operands; k++) {
        arguments.data[k] = (void *)(uintptr_t)(0x7f0000000000 + 0x100000000ll * k);
        arguments.column_stride[k] = 1;
    }
    return arguments;
}

static struct fl_arguments strided(int operands, long long rows, long long columns, long long row_stride)
{
    struct fl_arguments arguments = dense(operands, columns);
    arguments.rows = rows;
    for (int k = 0; k < operands; k++)
        arguments.row_stride[k] = row_stride;
    return arguments;
}

static void test_one_vector_a_thread(void **state)
{
    (void)state;
    struct fl_arguments arguments = dense(2, 4 * 256);
    struct fl_geometry geometry = geometry_of(&arguments, 2, FL_FLOAT32);
    assert_int_equal(geometry.mode, FL_MODE_VECTOR);
    assert_int_equal(geometry.blocks, 1);
    arguments.columns += 4;
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT32).blocks, 2);
    arguments.columns -= 5; /* elements that fill no vector have a thread each */
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT32).blocks, 2);
    arguments.columns = 4 * 253 + 3;
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT32).blocks, 1);
    arguments = dense(2, 1);
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT64).blocks, 1);
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT64).mode, FL_MODE_VECTOR);
    arguments = dense(2, 8 * 256);
    assert_int_equal(geometry_of(&arguments, 2, FL_BFLOAT16).blocks, 1);
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT64).blocks, 4);
}

/* G5, G7, G8, G10, G11: whatever the count, there is a grid, and it has fewer than 2^32 threads. */
static void test_grid_stays_within_limits(void **state)
{
    static const long long counts[] = {1,
                                       2,
                                       255,
                                       256,
                                       257,
                                       (1ll << 31) - 1,
                                       1ll << 31,
                                       (1ll << 31) + 5,
                                       (1ll << 32) - 1,
                                       1ll << 32,
                                       (1ll << 32) + 7,
                                       (1ll << 32) + 1024,
                                       1ll << 33,
                                       1ll << 36,
                                       (1ll << 40) + 3,
                                       1ll << 60};
    (void)state;
    for (int k = 0; k < COUNT(counts); k++)
        for (enum fl_dtype dtype = 0; dtype < FL_DTYPES; dtype++)
            for (int size = fl_dtype_size[dtype], offset = 0; offset <= size; offset += size) {
                struct fl_arguments arguments = dense(3, counts[k]);
                arguments.data[2] = (char *)arguments.data[2] + offset;
                struct fl_geometry geometry = geometry_of(&arguments, 3, dtype);
                assert_true(geometry.blocks >= 1);
                assert_true((unsigned long long)geometry.blocks * FL_BLOCK_THREADS < 1ull << 32);
                assert_true(geometry.blocks <= 0x7fffffff);
                /* one thread for each vector, and for each element left over: as long as a grid has so many */
                long long length = FL_VECTOR_BYTES / size, threads = counts[k] / length + counts[k] % length;
                if (offset == 0 && threads < (1ll << 32) - 256 - length) {
                    assert_int_equal(geometry.mode, FL_MODE_VECTOR);
                    assert_true((long long)geometry.blocks * FL_BLOCK_THREADS >= threads);
                } else {
                    assert_int_equal(geometry.mode, offset == 0 && counts[k] % length == 0 ? FL_MODE_ROWS : FL_MODE_ELEMENT);
                }
            }
    struct fl_arguments arguments = dense(2, 1ll << 50);
    assert_int_equal(geometry_of(&arguments, 2, FL_BFLOAT16).blocks, (1u << 24) - 1);
    arguments = strided(2, 1ll << 31, 1ll << 20, 1ll << 21);
    assert_int_equal(geometry_of(&arguments, 2, FL_BFLOAT16).blocks, (1u << 24) - 1);
}

/* G22, G23: a vector access needs every address that it can touch aligned to 16 bytes. */
static void test_mode_follows_alignment(void **state)
{
    (void)state;
    struct fl_arguments arguments = strided(3, 10, 64, 128);
    assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_ROWS);
    assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).blocks, 1);

    for (int k = 0; k < 3; k++) {
        arguments = strided(3, 10, 64, 128);
        arguments.data[k] = (char *)arguments.data[k] + 2;
        assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_ELEMENT);
        arguments = strided(3, 10, 64, 128);
        arguments.row_stride[k] = 129;
        assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_ELEMENT);
        arguments = strided(3, 10, 64, 128);
        arguments.row_stride[k] = 136;
        assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_ROWS);
    }
    arguments = strided(3, 10, 63, 128);
    assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_ELEMENT);
    arguments = strided(2, 9, 5, 5);
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT64).mode, FL_MODE_ELEMENT);
    arguments = strided(2, 9, 6, 8);
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT64).mode, FL_MODE_ROWS);
}

/* Of repeated values only the gradient's has a place in the mode for dense operands. */
static void test_repeated_operand_has_another_mode(void **state)
{
    (void)state;
    struct fl_arguments arguments = dense(3, 1024);
    arguments.column_stride[1] = 0;
    assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_ROWS);
    arguments.columns = 1023;
    assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_ELEMENT);
}

/* An operator's operands as gate and up lie interleaved: those that form a pair with a step of 2, the rest beside them. */
static struct fl_arguments interleaved(const struct fl_operator *op, enum fl_dtype dtype, long long rows, long long columns)
{
    struct fl_arguments arguments = strided(op->inputs + op->outputs, rows, columns, columns);
    for (int k = 0; k < op->inputs + op->outputs; k++) {
        char role = op->roles[k];
        if (role == 'b' || role == 'c') {
            arguments.data[k] = NULL;
            arguments.column_stride[k] = 0;
            arguments.row_stride[k] = 0;
        } else if (role == 'g' || role == 'u') {
            arguments.column_stride[k] = 2;
            arguments.row_stride[k] = 2 * columns;
            if (role == 'u')
                arguments.data[k] = (char *)arguments.data[k - 1] + fl_dtype_size[dtype];
        }
    }
    arguments.plain = 1;
    return arguments;
}

/* Of interleaved pairs a thread takes two vectors together, unless eight operands make too many registers of them. */
static void test_pairs_go_by_two(void **state)
{
    static const struct {
        int op, together;
    } cases[] = {{FL_INDEX_swiglu_forward, 2}, {FL_INDEX_swiglu_backward, 2}, {FL_INDEX_swiglu_double_backward, 1}};
    static const char *const architectures[] = {"sm_90", "gfx1151", "gfx90a", "gfx942"};
    (void)state;
    for (int k = 0; k < COUNT(cases); k++)
        for (int number = 0; number < FL_DTYPES * COUNT(architectures); number++) {
            enum fl_dtype dtype = number % FL_DTYPES;
            int card = number / FL_DTYPES;
            const struct fl_operator *op = &fl_operators[cases[k].op];
            struct fl_types types = {dtype, dtype};
            long long length = FL_VECTOR_BYTES / fl_dtype_size[dtype], block = (long long)cases[k].together * FL_BLOCK_THREADS;
            const struct {
                long long rows, vectors, blocks;
            } sizes[] = {{1, 1, 1},     {1, block, 1},     {1, block + 1, 2}, {1, 2 * block, 2},
                         {block, 1, 1}, {block + 1, 1, 2}, {3, block, 3},     {1ll << 20, 1ll << 20, FL_BLOCKS_MOST}};
            for (int size = 0; size < COUNT(sizes); size++) {
                struct fl_arguments arguments = interleaved(op, dtype, sizes[size].rows, sizes[size].vectors * length);
                struct fl_geometry geometry = fl_geometry(&arguments, op, types, fl_tuning_of(architectures[card]));
                assert_int_equal(geometry.mode, FL_MODE_PAIRS);
                assert_int_equal(geometry.blocks, sizes[size].blocks);
                long long steps = sizes[size].rows * sizes[size].vectors;
                struct fl_division division = fl_division_by(sizes[size].vectors, steps);
                assert_int_equal(geometry.division.shift, division.shift);
                assert_int_equal(geometry.division.multiplier, division.multiplier);
            }
            /* With clamps, an offset or biases: one vector, whatever the operands. */
            if (op->roles[op->inputs - 1] != 'c')
                continue;
            struct fl_arguments arguments = interleaved(op, dtype, 1, (FL_BLOCK_THREADS + 1) * length);
            arguments.plain = 0;
            assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of(architectures[card])).mode, FL_MODE_PAIRS_FULL);
            assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of(architectures[card])).blocks, 2);
            arguments.columns -= length;
            assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of(architectures[card])).blocks, 1);
        }
}

static int same_tuning(const struct fl_tuning *tuning, const struct fl_tuning *other)
{
    return tuning->vectors == other->vectors && tuning->pairs == other->pairs && tuning->rows == other->rows &&
           tuning->rows_float64 == other->rows_float64 && tuning->loads == other->loads;
}

/* Every architecture that configure builds for by default, or that a generic target of its serves, has the row of its family. */
static void test_every_architecture_has_its_row(void **state)
{
    static const struct {
        const char *architectures;
        struct fl_tuning tuning;
    } families[] = {
        {"sm_75 sm_80 sm_90 sm_120", {1, 2, 16, 8, FL_LOADS_ORDINARY}},
        {"gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c gfx90a:sramecc+:xnack-", {1, 2, 16, 8, FL_LOADS_ORDINARY}},
        {"gfx940 gfx941 gfx942 gfx950 gfx942:sramecc+:xnack-", {2, 2, 16, 8, FL_LOADS_STREAMING}},
        {"gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100 gfx1101 gfx1102 "
         "gfx1103 "
         "gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201",
         {1, 2, 16, 8, FL_LOADS_ORDINARY}},
        /* What has no row of its own, because it is not known, or because the runtime does not tell, or because more is. */
        {"gfx803 gfx94 gfx9421 gfx1250 AMD an_unknown_architecture", {1, 2, 16, 8, FL_LOADS_ORDINARY}},
    };
    (void)state;
    for (int k = 0; k < COUNT(families); k++)
        for (const char *at = families[k].architectures; *at != '\0'; at += strspn(at, " ")) {
            char name[64];
            int length = (int)strcspn(at, " ");
            snprintf(name, sizeof name, "%.*s", length, at);
            if (!same_tuning(fl_tuning_of(name), &families[k].tuning))
                fail_msg("%s has another row", name);
            at += length;
        }
}

/* A thread of an Instinct of the MI300 series takes two vectors in a block that has all of them; what is left over has a thread each. */
static void test_two_vectors_a_thread(void **state)
{
    static const struct {
        int op;
        enum fl_dtype operand, result;
        int together;
    } cases[] = {
        {FL_INDEX_swish_forward, FL_FLOAT32, FL_FLOAT32, 2},         {FL_INDEX_swish_backward, FL_BFLOAT16, FL_BFLOAT16, 2},
        {FL_INDEX_swiglu_backward, FL_FLOAT16, FL_FLOAT16, 2},       {FL_INDEX_swish_double_backward, FL_FLOAT64, FL_FLOAT64, 2},
        {FL_INDEX_swish_forward, FL_BFLOAT16, FL_FLOAT32, 1},        {FL_INDEX_swish_backward, FL_FLOAT32, FL_FLOAT16, 1},
        {FL_INDEX_swiglu_double_backward, FL_FLOAT32, FL_FLOAT32, 1}};
    static const long long vectors[] = {
        0, 1, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 1279, 1280, (1ll << 31) + 1, (1ll << 32) - 300};
    (void)state;
    for (int k = 0; k < COUNT(cases); k++)
        for (int v = 0; v < COUNT(vectors); v++) {
            const struct fl_operator *op = &fl_operators[cases[k].op];
            struct fl_types types = {cases[k].operand, cases[k].result};
            int size = fl_dtype_size[types.operand] < fl_dtype_size[types.result] ? fl_dtype_size[types.operand]
                                                                                  : fl_dtype_size[types.result];
            int length = FL_VECTOR_BYTES / size;
            for (int left = vectors[v] == 0; left < length; left++) {
                struct fl_arguments arguments = dense(op->inputs + op->outputs, vectors[v] * length + left);
                arguments.plain = 1;
                struct fl_geometry geometry = fl_geometry(&arguments, op, types, fl_tuning_of("gfx942"));
                assert_int_equal(geometry.mode, FL_MODE_VECTOR);
                /* As the kernel has it: blocks of 256 threads that take all, and further ones of 256 steps. */
                long long full = vectors[v] / (256 * cases[k].together), rest = vectors[v] % (256 * cases[k].together) + left;
                assert_int_equal(geometry.blocks, full + (rest + 255) / 256);
                assert_true(geometry.blocks <= FL_BLOCKS_MOST);
            }
        }
    struct fl_arguments arguments = dense(2, 4 * 512 * 10);
    const struct fl_operator *op = &fl_operators[FL_INDEX_swish_forward];
    struct fl_types types = {FL_FLOAT32, FL_FLOAT32};
    assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of("gfx950")).blocks, 10);
    assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of("gfx90a")).blocks, 20);
    assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of("sm_90")).blocks, 20);
    arguments.columns += 3; /* three threads of a further block */
    assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of("gfx942")).blocks, 11);
    arguments.columns += 4 * 256; /* and it, and another one */
    assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of("gfx942")).blocks, 12);
    arguments.row_stride[0] = arguments.row_stride[1] = arguments.columns -= 3;
    arguments.rows = 3; /* one vector a thread in all modes but that */
    assert_int_equal(fl_geometry(&arguments, op, types, fl_tuning_of("gfx942")).blocks, 63);
}

/* A repeated value is read as one element, wherever it lies; a repeated row is a row. */
static void test_broadcast_needs_no_alignment(void **state)
{
    (void)state;
    struct fl_arguments arguments = dense(3, 1000);
    arguments.column_stride[0] = 0;
    arguments.data[0] = (char *)arguments.data[0] + 2;
    assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_VECTOR);
    arguments = strided(3, 10, 64, 128);
    arguments.column_stride[0] = 0;
    arguments.row_stride[0] = 1;
    arguments.data[0] = (char *)arguments.data[0] + 2;
    arguments.row_stride[1] = 0;
    assert_int_equal(geometry_of(&arguments, 3, FL_BFLOAT16).mode, FL_MODE_ROWS);
}

/* The division by multiplication, as the kernels do it, at the ends and around the multiples of many divisors. */
static void test_division_is_exact(void **state)
{
    static const long long divisors[] = {
        1, 2, 3, 5, 7, 10, 641, 1 << 16, 1000003, 0x7fffffff, 0x80000000ll, 0x80000001ll, 0xfffffffell, 0xffffffffll, 1ll << 32};
    const long long indices = 1ll << 32;
    (void)state;
    for (int k = 0; k < COUNT(divisors); k++) {
        long long d = divisors[k], step = (indices / 1000 / d + 1) * d;
        struct fl_division division = fl_division_by(d, indices);
        assert_in_range(division.shift, 0, 32);
        for (long long multiple = 0; multiple <= indices; multiple += step)
            for (long long index = multiple - 1; index <= multiple + 1; index++)
                if (index >= 0 && index < indices)
                    assert_int_equal((((unsigned long long)index * division.multiplier >> 32) + (unsigned long long)index) >>
                                         division.shift,
                                     index / d);
    }
    assert_int_equal(fl_division_by(3, indices + 1).shift, -1); /* beyond 32 bits the kernel is told to divide */
    struct fl_arguments arguments = strided(2, 1ll << 20, (1ll << 12) + 1, (1ll << 12) + 1);
    assert_int_equal(geometry_of(&arguments, 2, FL_FLOAT32).division.shift, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_vector_a_thread),
        cmocka_unit_test(test_grid_stays_within_limits),
        cmocka_unit_test(test_mode_follows_alignment),
        cmocka_unit_test(test_broadcast_needs_no_alignment),
        cmocka_unit_test(test_repeated_operand_has_another_mode),
        cmocka_unit_test(test_pairs_go_by_two),
        cmocka_unit_test(test_every_architecture_has_its_row),
        cmocka_unit_test(test_two_vectors_a_thread),
        cmocka_unit_test(test_division_is_exact),
    };
    return cmocka_run_group_tests_name("geometry of a launch", tests, NULL, NULL);
}
