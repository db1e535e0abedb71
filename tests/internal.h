/*
 * The library with some of its parts replaced, for tests that must reach inside: the instruction set is the test's to choose, and
 * the GPU side only records what it is asked. Link with libinternal.la instead of libfuseline.la.
 */
#ifndef INTERNAL_H
#define INTERNAL_H

#include "cpu/select.h"
#include "gpu/gpu.h"
#include "plan.h"

/* The variants that were built and that this machine can run; the base variant is the first. Ends in NULL. */
extern const struct fl_cpu_variant *const *const test_variants;

/* What every call runs on from now on. */
void test_use_variant(const struct fl_cpu_variant *variant);

/* What the GPU side was asked last. */
struct test_launch {
    int count; /* of launches so far */
    enum fl_device_kind device_kind;
    int device_id;
    const struct fl_operator *op;
    struct fl_types types;
    struct fl_arguments arguments;
    size_t parameters_size;
    void *stream;
};
extern struct test_launch test_launch;

#endif
