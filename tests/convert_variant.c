/* The conversions of lib/cpu/convert.h as one instruction set compiles them: built once for each, with VARIANT as its name. */
#include "convert_variant.h"

#include "cpu/convert.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

const struct conversions PASTE(conversions_, VARIANT) = {
    {fl_float16_to_float, fl_bfloat16_to_float},
    {fl_float_to_float16, fl_float_to_bfloat16},
};
