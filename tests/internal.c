#include <config.h>

#include "internal.h"

static const struct fl_cpu_variant *in_use = &fl_cpu_base;
static const struct fl_cpu_variant *supported[4] = {&fl_cpu_base};
const struct fl_cpu_variant *const *const test_variants = supported;

struct test_launch test_launch;

#if FL_WITH_X86_VARIANTS
__attribute__((constructor)) static void find_variants(void)
{
    int count = 1;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        supported[count++] = &fl_cpu_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        supported[count++] = &fl_cpu_avx512;
}
#endif

void test_use_variant(const struct fl_cpu_variant *variant)
{
    in_use = variant;
}

const struct fl_cpu_variant *fl_cpu_variant(void)
{
    return in_use;
}

const char *fl_cpu_variant_name(void)
{
    return in_use->name;
}

static fuseline_status record(enum fl_device_kind kind, const struct fl_operator *op, struct fl_types types, int device_id,
                              const struct fl_arguments *arguments, size_t parameters_size, void *stream)
{
    test_launch = (struct test_launch){test_launch.count + 1, kind, device_id, op, types, *arguments, parameters_size, stream};
    return FUSELINE_OK;
}

fuseline_status fl_cuda_run(const struct fl_operator *op, struct fl_types types, int device_id,
                            const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream)
{
    (void)parameters;
    return record(FL_CUDA, op, types, device_id, arguments, parameters_size, stream);
}

fuseline_status fl_rocm_run(const struct fl_operator *op, struct fl_types types, int device_id,
                            const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream)
{
    (void)parameters;
    return record(FL_ROCM, op, types, device_id, arguments, parameters_size, stream);
}

void fl_gpu_info(struct fl_text *text)
{
    fl_text_add(text, "{}");
}
