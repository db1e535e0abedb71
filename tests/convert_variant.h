/* The conversions between the 16-bit types and float, of every instruction set; indexed by IN_FLOAT16 and IN_BFLOAT16. */
#ifndef CONVERT_VARIANT_H
#define CONVERT_VARIANT_H

struct conversions {
    void (*up[2])(const char *from, float *to, int count);
    void (*down[2])(const float *from, char *to, int count);
};

extern const struct conversions conversions_base, conversions_avx2, conversions_avx512;

#endif
