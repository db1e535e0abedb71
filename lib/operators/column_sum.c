#include "../entries.h"

struct column_sum_parameters_32 {
    char unused; /* C has no empty structures */
};
struct column_sum_parameters_64 {
    char unused;
};

FL_PARAMETERS(column_sum);

static fuseline_status column_sum_prepare(struct column_sum_parameters *prepared)
{
    prepared->in_float.unused = prepared->in_double.unused = 0;
    return FUSELINE_OK;
}

#define FL_DECLARE_SUM(T) T *sum
FL_ENTRIES(column_sum, column_sum, (), (), FL_DECLARE_X, FL_DECLARE_SUM, (x, sum), FUSELINE_OK, .tensors = 2, .outputs = 1,
           .names = {"x", "sum"}, .sources = {{0, FL_WHOLE}, {1, FL_WHOLE}})
FL_ARRAY_ENTRY(column_sum, (tensors[0], stream, (DLTensor *)tensors[1]))
