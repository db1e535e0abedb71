/*
 * FUSELINE_CPU lowers the instruction set, never raises it, and is read once. Each case is a process of its own.
 */
#include "testing.h"

#include <config.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tensors.h"

static const char *const variants[] = {"base", "avx2", "avx512"};

/* The number, in `variants`, of the one that fuseline_info names. */
static int variant_in_info(void)
{
    char text[1 << 16];
    fuseline_info(text, sizeof text);
    for (int k = 0; k < COUNT(variants); k++) {
        char words[64];
        snprintf(words, sizeof words, "\"variant\": \"%s\"", variants[k]);
        if (strstr(text, words) != NULL)
            return k;
    }
    return 99;
}

/* The variant of a new process; value NULL: FUSELINE_CPU not set. */
static int variant_with(const char *value)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        float x = 1, y = 0;
        DLTensor from = tensor_of(&x, FLOAT32, 0, NULL, NULL), to = tensor_of(&y, FLOAT32, 0, NULL, NULL);
        if (value != NULL)
            setenv("FUSELINE_CPU", value, 1);
        else
            unsetenv("FUSELINE_CPU");
        if (fuseline_swish_forward(&from, 1, NULL, &to) != FUSELINE_OK || y < 0.73f || y > 0.74f)
            _exit(98);
        setenv("FUSELINE_CPU", "base", 1); /* too late */
        _exit(variant_in_info());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int best_of_this_machine(void)
{
#if FL_WITH_X86_VARIANTS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 1;
#endif
    return 0;
}

static void best_without_the_variable(void **state)
{
    (void)state;
    assert_int_equal(variant_with(NULL), best_of_this_machine());
}

static void variable_lowers(void **state)
{
    (void)state;
    int best = best_of_this_machine();
    for (int k = 0; k < COUNT(variants); k++)
        assert_int_equal(variant_with(variants[k]), k < best ? k : best);
}

static void other_values_change_nothing(void **state)
{
    (void)state;
    static const char *const values[] = {"", "AVX2", "sse2", "avx1024"};
    for (int k = 0; k < COUNT(values); k++)
        assert_int_equal(variant_with(values[k]), best_of_this_machine());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_without_the_variable),
        cmocka_unit_test(variable_lowers),
        cmocka_unit_test(other_values_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
