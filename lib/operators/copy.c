#include "../formulas/copy.h"
#include "../entries.h"

FL_PARAMETERS(copy);

static fuseline_status copy_prepare(struct copy_parameters *prepared)
{
    prepared->in_float.unused = prepared->in_double.unused = 0;
    return FUSELINE_OK;
}

#define FL_DECLARE_A(T)     T *a
#define FL_DECLARE_A_B(T)   T *a, T *b
#define FL_DECLARE_A_B_C(T) T *a, T *b, T *c
#define FL_DECLARE_Y_Z(T)   T *y, T *z

FL_ENTRIES(copy_1_1, copy, (), (), FL_DECLARE_A, FL_DECLARE_Y, (a, y), FUSELINE_OK, .tensors = 2, .outputs = 1,
           .names = {"a", "y"}, .sources = {{0, FL_WHOLE}, {1, FL_WHOLE}})
FL_ENTRIES(copy_2_1, copy, (), (), FL_DECLARE_A_B, FL_DECLARE_Y, (a, b, y), FUSELINE_OK, .tensors = 3, .outputs = 1,
           .names = {"a", "b", "y"}, .sources = {{0, FL_WHOLE}, {1, FL_WHOLE}, {2, FL_WHOLE}})
FL_ENTRIES(copy_3_2, copy, (), (), FL_DECLARE_A_B_C, FL_DECLARE_Y_Z, (a, b, c, y, z), FUSELINE_OK, .tensors = 5, .outputs = 2,
           .names = {"a", "b", "c", "y", "z"},
           .sources = {{0, FL_WHOLE}, {1, FL_WHOLE}, {2, FL_WHOLE}, {3, FL_WHOLE}, {4, FL_WHOLE}})
FL_ARRAY_ENTRY(copy_1_1, (tensors[0], stream, (DLTensor *)tensors[1]))
FL_ARRAY_ENTRY(copy_2_1, (tensors[0], tensors[1], stream, (DLTensor *)tensors[2]))
FL_ARRAY_ENTRY(copy_3_2, (tensors[0], tensors[1], tensors[2], stream, (DLTensor *)tensors[3], (DLTensor *)tensors[4]))
