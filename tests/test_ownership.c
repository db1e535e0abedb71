/*
 * The entries that take their tensors over: every deleter runs exactly once, on success and on every error.
 */
#include "testing.h"

#include <math.h>

#include "tensors.h"

enum { INPUT, SECOND, OUTPUT, MOST };

/* One kind of ownership, called through the same two functions: forward uses INPUT and OUTPUT, backward all three. */
struct kind {
    const char *name;
    void *(*make)(int place, DLTensor tensor, int *deletions);
    DLTensor *(*tensor)(int place);
    void (*remove_deleter)(int place);
    fuseline_status (*forward)(void *x, double beta, void *y);
    fuseline_status (*backward)(void *dy, void *x, double beta, void *dx);
};

static DLManagedTensor managed[MOST];
static DLManagedTensorVersioned versioned[MOST];

static void *make_managed(int place, DLTensor tensor, int *deletions)
{
    managed[place] = (DLManagedTensor){tensor, deletions, count_deletion};
    return &managed[place];
}

static void *make_versioned(int place, DLTensor tensor, int *deletions)
{
    versioned[place] = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                                  .manager_ctx = deletions,
                                                  .deleter = count_deletion_versioned,
                                                  .flags = 0,
                                                  .dl_tensor = tensor};
    return &versioned[place];
}

static DLTensor *tensor_of_managed(int place)
{
    return &managed[place].dl_tensor;
}

static DLTensor *tensor_of_versioned(int place)
{
    return &versioned[place].dl_tensor;
}

static void remove_deleter_managed(int place)
{
    managed[place].deleter = NULL;
}

static void remove_deleter_versioned(int place)
{
    versioned[place].deleter = NULL;
}

static fuseline_status forward_managed(void *x, double beta, void *y)
{
    return fuseline_swish_forward_managed(x, beta, NULL, y);
}

static fuseline_status backward_managed(void *dy, void *x, double beta, void *dx)
{
    return fuseline_swish_backward_managed(dy, x, beta, NULL, dx);
}

static fuseline_status forward_versioned(void *x, double beta, void *y)
{
    return fuseline_swish_forward_versioned(x, beta, NULL, y);
}

static fuseline_status backward_versioned(void *dy, void *x, double beta, void *dx)
{
    return fuseline_swish_backward_versioned(dy, x, beta, NULL, dx);
}

static const struct kind kinds[] = {
    {"managed", make_managed, tensor_of_managed, remove_deleter_managed, forward_managed, backward_managed},
    {"versioned", make_versioned, tensor_of_versioned, remove_deleter_versioned, forward_versioned, backward_versioned},
};

static float values[MOST][4];
static int deletions[MOST];
static int64_t shape[] = {4};

/* Fills all[] with three good tensors, nothing deleted yet. */
static void make_all(const struct kind *kind, void **all)
{
    for (int place = 0; place < MOST; place++) {
        for (int i = 0; i < 4; i++)
            values[place][i] = (float)(place == OUTPUT ? 99 : i);
        deletions[place] = 0;
        all[place] = kind->make(place, tensor_of(values[place], FLOAT32, 1, shape, NULL), &deletions[place]);
    }
}

static void assert_deleted(int input, int second, int output)
{
    assert_int_equal(deletions[INPUT], input);
    assert_int_equal(deletions[SECOND], second);
    assert_int_equal(deletions[OUTPUT], output);
}

static void assert_output_untouched(void)
{
    for (int i = 0; i < 4; i++)
        assert_true(values[OUTPUT][i] == 99);
}

#define FOR_EACH_KIND(kind) for (const struct kind *kind = kinds; kind < kinds + COUNT(kinds); kind++)

/* A3 */
static void success_deletes_once(void **state)
{
    (void)state;
    FOR_EACH_KIND(kind)
    {
        void *all[MOST];
        make_all(kind, all);
        assert_ok(kind->forward(all[INPUT], 1, all[OUTPUT]));
        assert_deleted(1, 0, 1);
        assert_float_equal(values[OUTPUT][1], 1 / (1 + exp(-1)), 1e-6);
        make_all(kind, all);
        assert_ok(kind->backward(all[INPUT], all[SECOND], 1, all[OUTPUT]));
        assert_deleted(1, 1, 1);
        assert_true(values[OUTPUT][1] != 99);
    }
}

/* A18, and every other way to be bad, in every place. */
static void bad_tensor_in_any_place(void **state)
{
    (void)state;
    enum { NDIM, SHAPE, EXTENT, LANES, DTYPE, DEVICE, LENGTH, LAYOUT, OVERLAP, DATA, FAULTS };
    static const fuseline_status wanted[FAULTS] = {
        [NDIM] = FUSELINE_ERROR_ARGUMENT, [SHAPE] = FUSELINE_ERROR_ARGUMENT, [EXTENT] = FUSELINE_ERROR_SHAPE,
        [LANES] = FUSELINE_ERROR_DTYPE,   [DTYPE] = FUSELINE_ERROR_DTYPE,    [DEVICE] = FUSELINE_ERROR_DEVICE,
        [LENGTH] = FUSELINE_ERROR_SHAPE,  [LAYOUT] = FUSELINE_ERROR_LAYOUT,  [OVERLAP] = FUSELINE_ERROR_OVERLAP,
        [DATA] = FUSELINE_ERROR_ARGUMENT,
    };
    FOR_EACH_KIND(kind)
    for (int fault = 0; fault < FAULTS; fault++)
        for (int place = 0; place < MOST; place++)
            for (int backward = 0; backward < 2; backward++) {
                int64_t negative[] = {-4}, three[] = {3}, step[] = {2};
                void *all[MOST];
                if (place == SECOND && !backward)
                    continue;
                make_all(kind, all);
                DLTensor *bad = kind->tensor(place);
                switch (fault) {
                case NDIM:
                    bad->ndim = -1;
                    break;
                case SHAPE:
                    bad->shape = NULL;
                    break;
                case EXTENT:
                    bad->shape = negative;
                    break;
                case LANES:
                    bad->dtype.lanes = 4;
                    break;
                case DTYPE:
                    bad->dtype.code = kDLInt;
                    break;
                case DEVICE:
                    bad->device.device_type = kDLMetal;
                    break;
                case LENGTH:
                    bad->shape = three;
                    break;
                case LAYOUT:
                    bad->strides = step;
                    break;
                case OVERLAP:
                    bad->data = place == OUTPUT ? (char *)values[INPUT] + 4 : (char *)values[OUTPUT] - 4;
                    break;
                case DATA:
                    bad->data = NULL;
                    break;
                }
                assert_int_equal(backward ? kind->backward(all[INPUT], all[SECOND], 1, all[OUTPUT])
                                          : kind->forward(all[INPUT], 1, all[OUTPUT]),
                                 wanted[fault]);
                assert_deleted(1, backward, 1);
                assert_output_untouched();
            }
}

static void null_tensor_in_any_place(void **state)
{
    (void)state;
    static const char *const names[] = {"dy: ", "x: ", "dx: "};
    FOR_EACH_KIND(kind)
    {
        void *all[MOST];
        for (int place = 0; place < MOST; place++) {
            make_all(kind, all);
            all[place] = NULL;
            assert_refused(kind->backward(all[INPUT], all[SECOND], 1, all[OUTPUT]), FUSELINE_ERROR_ARGUMENT, names[place],
                           "NULL");
            assert_deleted(place != INPUT, place != SECOND, place != OUTPUT);
            assert_output_untouched();
        }
        make_all(kind, all);
        assert_refused(kind->forward(NULL, 1, all[OUTPUT]), FUSELINE_ERROR_ARGUMENT, "x: ", "NULL");
        assert_deleted(0, 0, 1);
        make_all(kind, all);
        assert_refused(kind->forward(all[INPUT], 1, NULL), FUSELINE_ERROR_ARGUMENT, "y: ", "NULL");
        assert_deleted(1, 0, 0);
        assert_refused(kind->forward(NULL, 1, NULL), FUSELINE_ERROR_ARGUMENT, "x: ", "NULL");
        assert_refused(kind->backward(NULL, NULL, 1, NULL), FUSELINE_ERROR_ARGUMENT, "dy: ", "NULL");
    }
}

static void bad_beta(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e39, -1e300};
    FOR_EACH_KIND(kind)
    for (int k = 0; k < COUNT(bad); k++) {
        void *all[MOST];
        make_all(kind, all);
        assert_refused(kind->forward(all[INPUT], bad[k], all[OUTPUT]), FUSELINE_ERROR_ARGUMENT, "beta: ", "accepted: ");
        assert_deleted(1, 0, 1);
        assert_output_untouched();
        make_all(kind, all);
        assert_refused(kind->backward(all[INPUT], all[SECOND], bad[k], all[OUTPUT]), FUSELINE_ERROR_ARGUMENT, "beta: ");
        assert_deleted(1, 1, 1);
        assert_output_untouched();
        assert_refused(kind->backward(NULL, NULL, bad[k], NULL), FUSELINE_ERROR_ARGUMENT, "beta: ");
    }
}

/* A8: a NULL deleter is skipped, on success and on errors. */
static void null_deleter(void **state)
{
    (void)state;
    FOR_EACH_KIND(kind)
    for (int place = 0; place < MOST; place++) {
        void *all[MOST];
        make_all(kind, all);
        kind->remove_deleter(place);
        assert_ok(kind->backward(all[INPUT], all[SECOND], 1, all[OUTPUT]));
        assert_deleted(place != INPUT, place != SECOND, place != OUTPUT);
        make_all(kind, all);
        kind->remove_deleter(place);
        kind->tensor(place)->dtype.code = kDLInt;
        assert_refused(kind->backward(all[INPUT], all[SECOND], 1, all[OUTPUT]), FUSELINE_ERROR_DTYPE, "int");
        assert_deleted(place != INPUT, place != SECOND, place != OUTPUT);
        make_all(kind, all);
        kind->remove_deleter(place);
        assert_int_equal(kind->backward(all[INPUT], all[SECOND], NAN, all[OUTPUT]), FUSELINE_ERROR_ARGUMENT);
        assert_deleted(place != INPUT, place != SECOND, place != OUTPUT);
    }
}

/* One structure passed twice or three times is deleted once. */
static void same_structure_twice(void **state)
{
    (void)state;
    FOR_EACH_KIND(kind)
    {
        void *all[MOST];
        make_all(kind, all);
        assert_ok(kind->forward(all[INPUT], 1, all[INPUT]));
        assert_deleted(1, 0, 0);
        assert_float_equal(values[INPUT][1], 1 / (1 + exp(-1)), 1e-6);
        make_all(kind, all);
        assert_ok(kind->backward(all[INPUT], all[INPUT], 1, all[OUTPUT]));
        assert_deleted(1, 0, 1);
        make_all(kind, all);
        assert_ok(kind->backward(all[INPUT], all[SECOND], 1, all[INPUT]));
        assert_deleted(1, 1, 0);
        make_all(kind, all);
        assert_ok(kind->backward(all[INPUT], all[SECOND], 1, all[SECOND]));
        assert_deleted(1, 1, 0);
        make_all(kind, all);
        assert_ok(kind->backward(all[SECOND], all[SECOND], 1, all[SECOND]));
        assert_deleted(0, 1, 0);
        make_all(kind, all);
        assert_int_equal(kind->backward(all[SECOND], all[SECOND], NAN, all[SECOND]), FUSELINE_ERROR_ARGUMENT);
        assert_deleted(0, 1, 0);
    }
}

/* Deleters run after the work: an output that its deleter hands on must be complete by then. */
static float seen_by_deleter;

static void look_and_wreck(DLManagedTensor *self)
{
    seen_by_deleter = ((float *)self->dl_tensor.data)[1];
    memset(self, 0x5a, sizeof *self);
}

static void deleters_run_last(void **state)
{
    (void)state;
    void *all[MOST];
    make_all(&kinds[0], all);
    managed[OUTPUT].deleter = managed[INPUT].deleter = managed[SECOND].deleter = look_and_wreck;
    assert_ok(fuseline_swish_backward_managed(all[INPUT], all[SECOND], 1, NULL, all[OUTPUT]));
    assert_float_equal(seen_by_deleter, values[OUTPUT][1], 0);
    assert_true(seen_by_deleter != 99);
}

/* Another major version: its fields may mean anything, so none but version and deleter is read. */
static void other_major_version(void **state)
{
    (void)state;
    static const char *const names[] = {"dy: ", "x: ", "dx: "};
    for (int place = 0; place < MOST; place++)
        for (int older = 0; older < 2; older++) {
            void *all[MOST];
            make_all(&kinds[1], all);
            DLManagedTensorVersioned *other = &versioned[place];
            memset(&other->dl_tensor, 0x5a, sizeof other->dl_tensor); /* pointers that would crash */
            other->flags = UINT64_MAX;
            other->version.major = older ? DLPACK_MAJOR_VERSION - 1 : DLPACK_MAJOR_VERSION + 1;
            other->version.minor = 7;
            assert_refused(fuseline_swish_backward_versioned(all[INPUT], all[SECOND], 1, NULL, all[OUTPUT]),
                           FUSELINE_ERROR_VERSION, names[place], older ? "0.7" : "2.7", "accepted: 1.x");
            assert_deleted(1, 1, 1);
            for (size_t i = 0; i < sizeof other->dl_tensor; i++)
                assert_true(((unsigned char *)&other->dl_tensor)[i] == 0x5a);
            assert_output_untouched();
            make_all(&kinds[1], all);
            versioned[place].version.major = 2;
            versioned[place].deleter = NULL;
            assert_int_equal(fuseline_swish_backward_versioned(all[INPUT], all[SECOND], 1, NULL, all[OUTPUT]),
                             FUSELINE_ERROR_VERSION);
            assert_deleted(place != INPUT, place != SECOND, place != OUTPUT);
        }
}

static void other_minor_versions(void **state)
{
    (void)state;
    void *all[MOST];
    make_all(&kinds[1], all);
    versioned[INPUT].version.minor = 0;
    versioned[OUTPUT].version.minor = 999;
    assert_ok(fuseline_swish_forward_versioned(all[INPUT], 1, NULL, all[OUTPUT]));
    assert_deleted(1, 0, 1);
}

static void read_only_flag(void **state)
{
    (void)state;
    void *all[MOST];
    make_all(&kinds[1], all);
    versioned[OUTPUT].flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
    assert_refused(fuseline_swish_backward_versioned(all[INPUT], all[SECOND], 1, NULL, all[OUTPUT]), FUSELINE_ERROR_READ_ONLY,
                   "dx: ", "read-only", "accepted: ");
    assert_deleted(1, 1, 1);
    assert_output_untouched();

    make_all(&kinds[1], all);
    versioned[INPUT].flags = versioned[SECOND].flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    assert_ok(fuseline_swish_backward_versioned(all[INPUT], all[SECOND], 1, NULL, all[OUTPUT]));
    assert_deleted(1, 1, 1);

    make_all(&kinds[1], all); /* in place on a read-only structure */
    versioned[INPUT].flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    assert_refused(fuseline_swish_forward_versioned(all[INPUT], 1, NULL, all[INPUT]), FUSELINE_ERROR_READ_ONLY, "y: ");
    assert_deleted(1, 0, 0);
    assert_true(values[INPUT][1] == 1);
}

static void unknown_flags(void **state)
{
    (void)state;
    void *all[MOST];
    make_all(&kinds[1], all);
    for (int place = 0; place < MOST; place++)
        versioned[place].flags = ~(uint64_t)DLPACK_FLAG_BITMASK_READ_ONLY;
    assert_ok(fuseline_swish_backward_versioned(all[INPUT], all[SECOND], 1, NULL, all[OUTPUT]));
    assert_deleted(1, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_deletes_once),
        cmocka_unit_test(bad_tensor_in_any_place),
        cmocka_unit_test(null_tensor_in_any_place),
        cmocka_unit_test(bad_beta),
        cmocka_unit_test(null_deleter),
        cmocka_unit_test(same_structure_twice),
        cmocka_unit_test(deleters_run_last),
        cmocka_unit_test(other_major_version),
        cmocka_unit_test(other_minor_versions),
        cmocka_unit_test(read_only_flag),
        cmocka_unit_test(unknown_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
