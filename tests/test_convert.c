/*
 * Conversions between the 16-bit types and float, of every instruction set that this machine runs: to nearest, ties to even,
 * overflow to inf, nan kept. Right values come from the formats' definition (numbers.h).
 */
#include "testing.h"

#include <config.h>
#include <stdlib.h>

#include "convert_variant.h"
#include "internal.h"
#include "numbers.h"

static const struct conversions *conversions_of(const struct fl_cpu_variant *variant)
{
#if FL_WITH_X86_VARIANTS
    if (variant == &fl_cpu_avx2)
        return &conversions_avx2;
    if (variant == &fl_cpu_avx512)
        return &conversions_avx512;
#endif
    (void)variant;
    return &conversions_base;
}

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)

/* Every one of the 65,536 patterns; conversion in blocks, so that vector code and the remaining elements both see all. */
static void every_element_up(void **state)
{
    (void)state;
    FOR_EACH_VARIANT(variant)
    for (int f = IN_FLOAT16; f <= IN_BFLOAT16; f++)
        for (int block = 5; block <= 64; block += 59) {
            static uint16_t from[65536 + 64];
            static float to[65536 + 64];
            for (int i = 0; i < 65536; i++)
                from[i] = (uint16_t)i;
            for (int i = 0; i < 65536; i += block)
                conversions_of(*variant)->up[f]((const char *)(from + i), to + i, block);
            for (int i = 0; i < 65536; i++) {
                double right = load(&formats[f], &from[i]);
                if (isnan(right)) {
                    assert_true(isnan(to[i]));
                } else {
                    assert_true(to[i] == right);
                    assert_int_equal(signbit(to[i]) != 0, signbit(right) != 0);
                }
            }
        }
}

static uint16_t down(const struct conversions *conversions, int f, float value, int in_vector)
{
    float from[16];
    uint16_t to[16];
    for (int i = 0; i < 16; i++)
        from[i] = value;
    conversions->down[f](from, (char *)to, in_vector ? 16 : 1);
    return to[in_vector ? 11 : 0];
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* L29: rounding, ties and overflow of bfloat16. */
static void bfloat16_rounds_to_nearest(void **state)
{
    (void)state;
    static const struct {
        double from, right;
    } cases[] = {
        {0.2691408770292272, 0.26953125},
        {1 + 0x1p-8, 1},
        {1 + 3 * 0x1p-8, 1 + 4 * 0x1p-8},
        {-1 - 3 * 0x1p-8, -1 - 4 * 0x1p-8},
        {3.39e38, 3.3895313892515355e38},
        {3.3962e38, INFINITY},
        {-3.3962e38, -INFINITY},
        {FLT_MAX, INFINITY},
        {0x1p-133, 0x1p-133},
        {0x1p-134, 0},
        {0x1.0002p-134, 0x1p-133},
    };
    FOR_EACH_VARIANT(variant)
    for (int k = 0; k < COUNT(cases); k++)
        for (int in_vector = 0; in_vector < 2; in_vector++) {
            uint16_t bits = down(conversions_of(*variant), IN_BFLOAT16, (float)cases[k].from, in_vector);
            assert_true(load(&formats[IN_BFLOAT16], &bits) == cases[k].right);
        }
}

static void float16_rounds_to_nearest(void **state)
{
    (void)state;
    static const struct {
        double from, right;
    } cases[] = {
        {1 + 0x1p-11, 1},
        {1 + 3 * 0x1p-11, 1 + 4 * 0x1p-11},
        {65504, 65504},
        {65519.996, 65504},
        {65520, INFINITY},
        {-65520, -INFINITY},
        {3e38, INFINITY},
        {0x1p-24, 0x1p-24},
        {0x1p-25, 0},
        {0x1.000002p-25, 0x1p-24},
        {3 * 0x1p-25, 0x1p-23},
        {0x1.ff8p-15, 0x1.ff8p-15},
        {0x1.ffcp-15, 0x1p-14},
        {0x1.ffbffep-15, 0x1.ff8p-15},
        {1e-40, 0},
    };
    FOR_EACH_VARIANT(variant)
    for (int k = 0; k < COUNT(cases); k++)
        for (int in_vector = 0; in_vector < 2; in_vector++) {
            uint16_t bits = down(conversions_of(*variant), IN_FLOAT16, (float)cases[k].from, in_vector);
            assert_true(load(&formats[IN_FLOAT16], &bits) == cases[k].right);
        }
}

/* L27's patterns among them; the sign stays. */
static void nan_stays_nan(void **state)
{
    (void)state;
    static const uint32_t patterns[] = {0x7fd8c09a, 0x7f800001, 0x7fffffff, 0xff800001, 0xffc00000, 0x7f801fff, 0x7f80ffff};
    FOR_EACH_VARIANT(variant)
    for (int k = 0; k < COUNT(patterns); k++)
        for (int f = IN_FLOAT16; f <= IN_BFLOAT16; f++)
            for (int in_vector = 0; in_vector < 2; in_vector++) {
                uint16_t bits = down(conversions_of(*variant), f, from_bits(patterns[k]), in_vector);
                assert_true(isnan(load(&formats[f], &bits)));
                assert_int_equal(bits >> 15, patterns[k] >> 31);
            }
}

enum { BATCH = 4096 };

/* Converts a batch with every variant and compares each result with the format's definition. */
static void check_down(int f, const float *from, int count)
{
    static uint16_t right[BATCH], to[BATCH];
    for (int i = 0; i < count; i++)
        store(&formats[f], &right[i], from[i]);
    FOR_EACH_VARIANT(variant)
    {
        conversions_of(*variant)->down[f](from, (char *)to, count);
        for (int i = 0; i < count; i++)
            if (to[i] != right[i] && !isnan(from[i])) {
                print_error("%s to %s: %a gives %04x, right is %04x\n", (*variant)->name, formats[f].name, from[i], to[i],
                            right[i]);
                fail();
            }
    }
}

/* Around every number of the 16-bit type: itself, the point half-way to the next one, and that point's neighbours. */
static void every_tie_down(void **state)
{
    (void)state;
    int step = getenv("FUSELINE_TEST_THIN") != NULL ? 97 : 1;
    for (int f = IN_FLOAT16; f <= IN_BFLOAT16; f++) {
        float from[BATCH];
        int count = 0;
        for (int i = 0; i < 65535; i += step) {
            uint16_t low = (uint16_t)i, high = (uint16_t)(i + 1);
            float here = (float)load(&formats[f], &low), next = (float)load(&formats[f], &high);
            float half_way = (float)(((double)here + next) / 2);
            from[count++] = here;
            from[count++] = half_way;
            from[count++] = nextafterf(half_way, INFINITY);
            from[count++] = nextafterf(half_way, -INFINITY);
            if (count == BATCH) {
                check_down(f, from, count);
                count = 0;
            }
        }
        check_down(f, from, count);
    }
}

/* Floats at a fixed distance; all 2^32 of them with FUSELINE_TEST_ALL=1. */
static void sampled_floats_down(void **state)
{
    (void)state;
    uint64_t step = getenv("FUSELINE_TEST_ALL") != NULL ? 1 : getenv("FUSELINE_TEST_THIN") != NULL ? 2500003 : 16411;
    for (int f = IN_FLOAT16; f <= IN_BFLOAT16; f++)
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32;) {
            float from[BATCH];
            int count = 0;
            for (; count < BATCH && bits < (uint64_t)1 << 32; bits += step)
                from[count++] = from_bits((uint32_t)bits);
            check_down(f, from, count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_up),
        cmocka_unit_test(bfloat16_rounds_to_nearest),
        cmocka_unit_test(float16_rounds_to_nearest),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(every_tie_down),
        cmocka_unit_test(sampled_floats_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
