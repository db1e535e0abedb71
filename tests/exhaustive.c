/*
 * By hand, not part of "make check": swish on every one of the 2^32 float32 inputs, on the instruction set that FUSELINE_CPU names,
 * against the formula in double.
 *
 *     make exhaustive && FUSELINE_CPU=avx2 tests/exhaustive [beta]
 *
 * Prints, for the forward, the largest error in units of the last place where the result is a normal number, and the mean; for the
 * backward (dy = 1) the largest absolute error beside that of the textbook's formula in float.
 */
#include <fuseline/fuseline.h>
#include <stdio.h>
#include <stdlib.h>

#include "numbers.h"
#include "tensors.h"

enum { BATCH = 1 << 14 }; /* few enough to run on the calling thread: the threads are this program's */

struct tally {
    double worst, worst_x, sum;
    long long count, bad; /* bad: nan or inf out of a finite input */
    double backward, backward_x, textbook;
};

static float textbook(float dy, float x, float beta)
{
    float z = beta * x, sigmoid = 1 / (1 + expf(-z));
    return dy * sigmoid * (1 + z * (1 - sigmoid));
}

static double float_ulp(double value)
{
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, exponent - 24);
}

static void run_batch(uint32_t first, double beta, struct tally *tally)
{
    static _Thread_local float x[BATCH], y[BATCH], dx[BATCH];
    float dy = 1;
    int64_t shape[] = {BATCH}, zero[] = {0};
    DLTensor tx = tensor_of(x, FLOAT32, 1, shape, NULL), ty = tensor_of(y, FLOAT32, 1, shape, NULL),
             tdy = tensor_of(&dy, FLOAT32, 1, shape, zero), tdx = tensor_of(dx, FLOAT32, 1, shape, NULL);
    for (uint32_t i = 0; i < BATCH; i++) {
        uint32_t bits = first + i;
        memcpy(&x[i], &bits, sizeof bits);
    }
    if (fuseline_swish_forward(&tx, beta, NULL, &ty) != FUSELINE_OK ||
        fuseline_swish_backward(&tdy, &tx, beta, NULL, &tdx) != FUSELINE_OK) {
        fprintf(stderr, "%s\n", fuseline_last_error());
        exit(1);
    }
    for (int i = 0; i < BATCH; i++) {
        if (!isfinite(x[i]))
            continue;
        double right = swish_in_double(x[i], beta), slope = swish_slope_in_double(x[i], beta);
        tally->bad += !isfinite(y[i]) + !isfinite(dx[i]);
        if (fabs(right) >= FLT_MIN) {
            double error = fabs(y[i] - right) / float_ulp(right);
            tally->sum += error;
            tally->count++;
            if (error > tally->worst) {
                tally->worst = error;
                tally->worst_x = x[i];
            }
        }
        if (fabs(dx[i] - slope) > tally->backward) {
            tally->backward = fabs(dx[i] - slope);
            tally->backward_x = x[i];
        }
        tally->textbook = fmax(tally->textbook, fabs(textbook(1, x[i], (float)beta) - slope));
    }
}

int main(int argc, char **argv)
{
    double beta = argc > 1 ? atof(argv[1]) : 1;
    struct tally total = {0};
    char info[4096];

#pragma omp parallel
    {
        struct tally own = {0};
#pragma omp for schedule(dynamic, 64)
        for (int64_t batch = 0; batch < ((int64_t)1 << 32) / BATCH; batch++)
            run_batch((uint32_t)(batch * BATCH), beta, &own);
#pragma omp critical
        {
            if (own.worst > total.worst) {
                total.worst = own.worst;
                total.worst_x = own.worst_x;
            }
            if (own.backward > total.backward) {
                total.backward = own.backward;
                total.backward_x = own.backward_x;
            }
            total.textbook = fmax(total.textbook, own.textbook);
            total.sum += own.sum;
            total.count += own.count;
            total.bad += own.bad;
        }
    }
    fuseline_info(info, sizeof info);
    const char *variant = strstr(info, "\"variant\": ");
    printf("%.25s beta %g: forward at most %.4f ulp, at x = %.9g (%a); mean %.4f over %lld inputs; nan or inf %lld\n",
           variant != NULL ? variant : "", beta, total.worst, total.worst_x, total.worst_x, total.sum / (double)total.count,
           total.count, total.bad);
    printf("  backward at most %.4g, at x = %.9g; the textbook's formula %.4g\n", total.backward, total.backward_x,
           total.textbook);
    return total.bad != 0 || total.worst > 2 || total.backward > total.textbook;
}
