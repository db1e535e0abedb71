/*
 * The operators as tables, for tests of what all of them do: their entries under one signature each, and right values.
 *
 * A new activation is its value and its slope here, and a row of `operators`; so is a new gated unit. Reads as C and as C++.
 */
#ifndef OPERATORS_H
#define OPERATORS_H

#include <fuseline/fuseline.h>

#include "numbers.h"

/* What entries take beside tensors; each takes what it has of it. */
struct scalars {
    double beta, limit, offset;
    fuseline_packing packing;
    void *stream;
};

static const struct scalars plain_scalars = {1, INFINITY, 0, FUSELINE_HALVES, NULL};

#define TENSORS_MOST 6

/* A kernel's four entries. The tensors are those of the entry's parameters, in their order. */
struct entry {
    const char *name;
    int tensors, outputs; /* the outputs are the last ones */
    const char *names[TENSORS_MOST];
    /* A letter for each tensor: x of the operands' dtype, y of the result's, u as x, but may be NULL if all u are; b a bias of gate
     * and up, which may be NULL; s a value per column. */
    const char *roles;
    fuseline_status (*borrow)(void *const *t, const struct scalars *s);
    fuseline_status (*managed)(void *const *t, const struct scalars *s);
    fuseline_status (*versioned)(void *const *t, const struct scalars *s);
    fuseline_status (*objects)(const struct DLPackExchangeAPI *api, void *const *t, const struct scalars *s);
};

/* Defines them; form(T, scalars) lists an entry's arguments. */
#define DEFINE_ENTRY(kernel, form, ...)                                                                                          \
    static fuseline_status kernel##_borrow(void *const *t, const struct scalars *s)                                              \
    {                                                                                                                            \
        return fuseline_##kernel(form(DLTensor, __VA_ARGS__ s->stream, ));                                                       \
    }                                                                                                                            \
    static fuseline_status kernel##_managed(void *const *t, const struct scalars *s)                                             \
    {                                                                                                                            \
        return fuseline_##kernel##_managed(form(DLManagedTensor, __VA_ARGS__ s->stream, ));                                      \
    }                                                                                                                            \
    static fuseline_status kernel##_versioned(void *const *t, const struct scalars *s)                                           \
    {                                                                                                                            \
        return fuseline_##kernel##_versioned(form(DLManagedTensorVersioned, __VA_ARGS__ s->stream, ));                           \
    }                                                                                                                            \
    static fuseline_status kernel##_objects(const struct DLPackExchangeAPI *api, void *const *t, const struct scalars *s)        \
    {                                                                                                                            \
        (void)s;                                                                                                                 \
        return fuseline_##kernel##_objects(api, form(void, __VA_ARGS__));                                                        \
    }
#define ENTRY_OF(kernel, outputs, names, roles)                                                                                  \
    {#kernel,          (int)sizeof(roles) - 1, outputs,         names, roles, kernel##_borrow,                                   \
     kernel##_managed, kernel##_versioned,     kernel##_objects}
#define NAMES(...) {__VA_ARGS__}

/* The forms; scalars, each with a comma behind it, stand before the outputs. */
#define FORM_X_Y(T, ...)            (T *)t[0], __VA_ARGS__(T *) t[1]
#define FORM_DY_X_DX(T, ...)        (T *)t[0], (T *)t[1], __VA_ARGS__(T *) t[2]
#define FORM_GATED(T, ...)          (T *)t[0], (T *)t[1], (T *)t[2], __VA_ARGS__(T *) t[3]
#define FORM_GATED_GRADIENT(T, ...) (T *)t[0], (T *)t[1], (T *)t[2], (T *)t[3], __VA_ARGS__(T *) t[4], (T *)t[5]

#define DEFINE_UNARY(name, ...)                                                                                                  \
    DEFINE_ENTRY(name##_forward, FORM_X_Y, __VA_ARGS__)                                                                          \
    DEFINE_ENTRY(name##_backward, FORM_DY_X_DX, __VA_ARGS__)
#define DEFINE_GATED(name, ...)                                                                                                  \
    DEFINE_ENTRY(name##_forward, FORM_GATED, s->packing, __VA_ARGS__)                                                            \
    DEFINE_ENTRY(name##_backward, FORM_GATED_GRADIENT, s->packing, __VA_ARGS__)

DEFINE_UNARY(swish, s->beta, )
DEFINE_UNARY(gelu)
DEFINE_UNARY(gelu_tanh)
DEFINE_UNARY(relu2)
DEFINE_GATED(swiglu, s->beta, s->limit, s->offset, )
DEFINE_GATED(geglu)
DEFINE_GATED(geglu_tanh)
DEFINE_GATED(reglu)
DEFINE_ENTRY(column_sum, FORM_X_Y)

/* An unevaluated sum of two numbers, where rounding an argument would cost the result digits. */
struct exact {
    long double value, error;
};

static inline struct exact exact_product(long double a, long double b)
{
    struct exact product;
    product.value = a * b;
    product.error = fmal(a, b, -product.value);
    return product;
}

/* exp(-z). */
static inline long double exp_minus(struct exact z)
{
    long double power = expl(-z.value);
    return fabsl(z.error) < 0.5L ? power * (1 - z.error) : power; /* not where the product lies beyond all numbers */
}

/* Activations and their derivatives, in long double: the products with 0 that are nan (-inf * 0) are left as they are; the slope at an
 * infinite x is the limit. */
typedef long double right_function(long double x, double beta);

static inline long double swish_value(long double x, double beta)
{
    return x / (1 + exp_minus(exact_product(x, beta)));
}

static inline long double swish_slope(long double x, double beta)
{
    return swish_slope_in_long_double((double)x, beta);
}

/* The normal distribution function, by erfc of -x / sqrt(2), the argument's rounding put right. Far from 0 there is nothing to put
 * right, and the parts of the product may lie beyond all numbers where long double is computed in double. */
static inline long double normal_distribution(long double x)
{
    if (fabsl(x) > 1000)
        return x > 0;
    struct exact z = exact_product(x, -0x1.6a09e667f3bcdp-1L);
    z.error += x * 0x1.bdd3413b26456p-55L;
    return (erfcl(z.value) - 1.128379167095512573896L * expl(-z.value * z.value) * z.error) / 2;
}

static inline long double gelu_value(long double x, double beta)
{
    (void)beta;
    return is_infinite(x) ? (x > 0 ? x : NAN) : x * normal_distribution(x);
}

static inline long double gelu_slope(long double x, double beta)
{
    (void)beta;
    if (is_infinite(x))
        return x > 0;
    return normal_distribution(x) + x * expl(-x * x / 2) * 0.3989422804014326779399L;
}

/* 2 * sqrt(2 / pi) * (x + 0.044715 * x^3). */
static inline struct exact tanh_argument(long double x)
{
    const long double a = 0x1.9884533d43651p+0L, a_error = -0x1.cbc0d30ebfd15p-54L;
    const long double b = 0x1.2444f2a4d8b4bp-4L, b_error = -0x1.6c843a29d1c70p-61L;
    struct exact square = exact_product(x, x), cubic = exact_product(square.value, b), argument;
    long double rate = a + cubic.value, error = cubic.value - (rate - a); /* exact for small x, and small for large */
    if (cubic.value > a)
        error = a - (rate - cubic.value);
    error += cubic.error + square.error * b + square.value * b_error + a_error;
    argument = exact_product(x, rate);
    argument.error += x * error;
    return argument;
}

/* Beyond this, either way, double has nothing but x and 0. */
#define TANH_FORM_MOST 50

static inline long double gelu_tanh_value(long double x, double beta)
{
    (void)beta;
    if (is_infinite(x))
        return x > 0 ? x : NAN;
    if (fabsl(x) > TANH_FORM_MOST)
        return x > 0 ? x : -0.0L;
    return x / (1 + exp_minus(tanh_argument(x)));
}

static inline long double gelu_tanh_slope(long double x, double beta)
{
    (void)beta;
    if (fabsl(x) > TANH_FORM_MOST)
        return x > 0;
    struct exact z = tanh_argument(x), minus_z = {-z.value, -z.error};
    long double s = 1 / (1 + exp_minus(z)), rest = 1 / (1 + exp_minus(minus_z));
    return s * (1 + x * (1.5957691216057307117598L + 0.214064448817800746329L * x * x) * rest);
}

static inline long double relu_value(long double x, double beta)
{
    (void)beta;
    return x <= 0 ? 0 : x;
}

static inline long double relu_slope(long double x, double beta)
{
    (void)beta;
    return x <= 0 ? 0 : 1; /* of nan too, as torch.relu has it */
}

static inline long double relu2_value(long double x, double beta)
{
    (void)beta;
    return x <= 0 ? 0 : x * x;
}

static inline long double relu2_slope(long double x, double beta)
{
    (void)beta;
    return x <= 0 ? 0 : 2 * x;
}

/* The backward as PyTorch writes it, in the type it computes in: what ours is to be no worse than. */
typedef double textbook_function(double dy, double x, double beta, int is_double);

#define TEXTBOOK_IN(type, is, exp, erf, tanh)                                                                                    \
    static inline type swish_textbook_##is(type dy, type x, type beta)                                                           \
    {                                                                                                                            \
        type sigmoid = 1 / (1 + exp(-beta * x));                                                                                 \
        return dy * sigmoid * (1 + beta * x * (1 - sigmoid));                                                                    \
    }                                                                                                                            \
    static inline type gelu_textbook_##is(type dy, type x, type beta)                                                            \
    {                                                                                                                            \
        type cdf = (type)0.5 * (1 + erf(x * (type)0.70710678118654752)),                                                         \
             pdf = exp(x * x * (type) - 0.5) * (type)0.39894228040143268;                                                        \
        (void)beta;                                                                                                              \
        return dy * (cdf + x * pdf);                                                                                             \
    }                                                                                                                            \
    static inline type gelu_tanh_textbook_##is(type dy, type x, type beta)                                                       \
    {                                                                                                                            \
        const type scale = (type)0.79788456080286536, cubic = (type)0.044715;                                                    \
        type t = tanh(scale * (x + cubic * x * x * x));                                                                          \
        (void)beta;                                                                                                              \
        return dy * ((type)0.5 * (1 + t) + (type)0.5 * x * (1 - t * t) * (scale * (1 + 3 * cubic * x * x)));                     \
    }                                                                                                                            \
    static inline type relu2_textbook_##is(type dy, type x, type beta)                                                           \
    {                                                                                                                            \
        (void)beta;                                                                                                              \
        return dy * (2 * (x > 0 ? x : 0));                                                                                       \
    }
TEXTBOOK_IN(float, 32, expf, erff, tanhf)
TEXTBOOK_IN(double, 64, exp, erf, tanh)

#define TEXTBOOK(name)                                                                                                           \
    static inline double name##_textbook(double dy, double x, double beta, int is_double)                                        \
    {                                                                                                                            \
        return is_double ? name##_textbook_64(dy, x, beta) : (double)name##_textbook_32((float)dy, (float)x, (float)beta);       \
    }
TEXTBOOK(swish)
TEXTBOOK(gelu)
TEXTBOOK(gelu_tanh)
TEXTBOOK(relu2)

/* A unary operator, or a gated unit. */
struct operator_case {
    const char *name;
    int is_gated, has_beta, has_clamp;
    right_function *value, *slope; /* of the activation */
    textbook_function *textbook;   /* NULL for a gated unit */
    struct entry forward, backward;
};

/* clang-format off */
#define UNARY_ROW(name, has_beta) {                                                                                              \
        #name, 0, has_beta, 0, name##_value, name##_slope, name##_textbook,                                                      \
        ENTRY_OF(name##_forward, 1, NAMES("x", "y"), "xy"),                                                                      \
        ENTRY_OF(name##_backward, 1, NAMES("dy", "x", "dx"), "yxx")}
#define GATED_ROW(name, activation, has_scalars) {                                                                               \
        #name, 1, has_scalars, has_scalars, activation##_value, activation##_slope, NULL,                                        \
        ENTRY_OF(name##_forward, 1, NAMES("gate", "up", "bias", "y"), "xuby"),                                                   \
        ENTRY_OF(name##_backward, 2, NAMES("dy", "gate", "up", "bias", "dgate", "dup"), "yxubxu")}
/* clang-format on */

static const struct operator_case operators[] = {
    UNARY_ROW(swish, 1),
    UNARY_ROW(gelu, 0),
    UNARY_ROW(gelu_tanh, 0),
    UNARY_ROW(relu2, 0),
    GATED_ROW(swiglu, swish, 1),
    GATED_ROW(geglu, gelu, 0),
    GATED_ROW(geglu_tanh, gelu_tanh, 0),
    GATED_ROW(reglu, relu, 0),
};

#define OPERATORS ((int)(sizeof operators / sizeof operators[0]))

static const struct entry column_sum_entry = ENTRY_OF(column_sum, 1, NAMES("x", "sum"), "xs");

#define ENTRIES (2 * OPERATORS + 1)

/* Every entry, by number; those of swish are the first two. */
static inline const struct entry *entry_number(int k)
{
    return k == 2 * OPERATORS ? &column_sum_entry : k % 2 == 0 ? &operators[k / 2].forward : &operators[k / 2].backward;
}

#endif
