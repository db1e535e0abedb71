/*
 * The operators as tables, for tests of what all of them do: their entries under one signature each, and right values.
 *
 * A new activation is a block of its own here (its value and slope, the textbook's backward, known values) and a row of FOR_EACH_OPERATOR;
 * a new gated unit is a row. Reads as C and as C++.
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

#define TENSORS_MOST 8

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

#define FORM_DOUBLE(T, ...) (T *)t[0], (T *)t[1], (T *)t[2], __VA_ARGS__(T *) t[3], (T *)t[4]
#define FORM_GATED_DOUBLE(T, ...)                                                                                                \
    (T *)t[0], (T *)t[1], (T *)t[2], (T *)t[3], (T *)t[4], __VA_ARGS__(T *) t[5], (T *)t[6], (T *)t[7]

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

/*
 * The backward as PyTorch writes it, in the type it computes in, `real`: what ours is to be no worse than. TEXTBOOK is its body, of dy, x
 * and beta; IN_REAL calls a function of the mathematical library in that type.
 */
typedef double textbook_function(double dy, double x, double beta, int is_double);

#define IN_REAL(function, x) ((real)(sizeof(real) == sizeof(float) ? function##f((float)(x)) : function(x)))
#define TEXTBOOK_IN(real_type, name, ...)                                                                                        \
    static inline real_type name(real_type dy, real_type x, real_type beta)                                                      \
    {                                                                                                                            \
        typedef real_type real;                                                                                                  \
        (void)(real)beta;                                                                                                        \
        __VA_ARGS__                                                                                                              \
    }
#define TEXTBOOK(name, ...)                                                                                                      \
    TEXTBOOK_IN(float, name##_textbook_32, __VA_ARGS__)                                                                          \
    TEXTBOOK_IN(double, name##_textbook_64, __VA_ARGS__)                                                                         \
    static inline double name##_textbook(double dy, double x, double beta, int is_double)                                        \
    {                                                                                                                            \
        return is_double ? name##_textbook_64(dy, x, beta) : (double)name##_textbook_32((float)dy, (float)x, (float)beta);       \
    }

/* A value and a slope at some x, as numbers of their own, since what a formula makes of an infinity is no more than its own doing. */
struct known {
    double x, value, slope;
};

static inline long double swish_value(long double x, double beta)
{
    return x / (1 + exp_minus(exact_product(x, beta)));
}

static inline long double swish_slope(long double x, double beta)
{
    return swish_slope_in_long_double((double)x, beta);
}

/* clang-format off */
TEXTBOOK(swish,
    real sigmoid = 1 / (1 + IN_REAL(exp, -beta * x));
    return dy * sigmoid * (1 + beta * x * (1 - sigmoid));)
/* clang-format on */

static const struct known swish_known[] = {{INFINITY, INFINITY, 1}, {-INFINITY, NAN, 0}, {-0.0, -0.0, 0.5}};

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

/* clang-format off */
TEXTBOOK(gelu,
    real cdf = (real)0.5 * (1 + IN_REAL(erf, x * (real)0.70710678118654752));
    real pdf = IN_REAL(exp, x * x * (real)-0.5) * (real)0.39894228040143268;
    return dy * (cdf + x * pdf);)
/* clang-format on */

static const struct known gelu_known[] = {
    {INFINITY, INFINITY, 1}, /* K13 */
    {-INFINITY, NAN, 0},
    {-0.0, -0.0, 0.5},
    {2, 1.9544997361036416, 1.0852318010781969},            /* K24: erf, and not tanh */
    {-5, -1.4332578593959696e-06, -7.1469460017922946e-06}, /* K16 */
};

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

/* clang-format off */
TEXTBOOK(gelu_tanh,
    const real scale = (real)0.79788456080286536, cubic = (real)0.044715;
    real t = IN_REAL(tanh, scale * (x + cubic * x * x * x));
    return dy * ((real)0.5 * (1 + t) + (real)0.5 * x * (1 - t * t) * (scale * (1 + 3 * cubic * x * x)));)
/* clang-format on */

static const struct known gelu_tanh_known[] = {
    {INFINITY, INFINITY, 1},
    {-INFINITY, NAN, 0},
    {-0.0, -0.0, 0.5},
    {2, 1.954597694087775, 1.0860992566236184},
    {-5, -2.291796196629506e-07, -1.5463619875325946e-06}, /* K17 */
    {11.5, 11.5, 1},                                       /* K19 */
};

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

/* clang-format off */
TEXTBOOK(relu2,
    return dy * (2 * (x > 0 ? x : 0));)
/* clang-format on */

static const struct known relu2_known[] = {
    {INFINITY, INFINITY, INFINITY}, {-INFINITY, 0, 0}, {-0.0, 0, 0}, {3, 9, 6}, {-3, 0, 0}};

/* A unary operator, or a gated unit. */
struct operator_case {
    const char *name;
    int is_gated, has_beta, has_clamp;
    right_function *value, *slope; /* of the activation */
    textbook_function *textbook;   /* NULL for a gated unit, as is */
    const struct known *known;     /* as many as known_count */
    int known_count;
    struct entry forward, backward, double_backward;
};

/* Every operator: UNARY(name, kind) or GATED(name, activation, kind), its scalars being of one of the kinds below. */
#define FOR_EACH_OPERATOR(UNARY, GATED)                                                                                          \
    UNARY(swish, BETA)                                                                                                           \
    UNARY(gelu, NONE)                                                                                                            \
    UNARY(gelu_tanh, NONE)                                                                                                       \
    UNARY(relu2, NONE)                                                                                                           \
    GATED(swiglu, swish, BETA_CLAMP)                                                                                             \
    GATED(geglu, gelu, NONE)                                                                                                     \
    GATED(geglu_tanh, gelu_tanh, NONE)                                                                                           \
    GATED(reglu, relu, NONE)

/* Each kind as arguments, with a comma behind each, and as has_beta and has_clamp. */
#define SCALARS_NONE
#define SCALARS_BETA       s->beta,
#define SCALARS_BETA_CLAMP s->beta, s->limit, s->offset,
#define HAS_NONE           0, 0
#define HAS_BETA           1, 0
#define HAS_BETA_CLAMP     1, 1

#define DEFINE_UNARY(name, kind)                                                                                                 \
    DEFINE_ENTRY(name##_forward, FORM_X_Y, SCALARS_##kind)                                                                       \
    DEFINE_ENTRY(name##_backward, FORM_DY_X_DX, SCALARS_##kind)                                                                  \
    DEFINE_ENTRY(name##_double_backward, FORM_DOUBLE, SCALARS_##kind)
#define DEFINE_GATED(name, activation, kind)                                                                                     \
    DEFINE_ENTRY(name##_forward, FORM_GATED, s->packing, SCALARS_##kind)                                                         \
    DEFINE_ENTRY(name##_backward, FORM_GATED_GRADIENT, s->packing, SCALARS_##kind)                                               \
    DEFINE_ENTRY(name##_double_backward, FORM_GATED_DOUBLE, s->packing, SCALARS_##kind)
FOR_EACH_OPERATOR(DEFINE_UNARY, DEFINE_GATED)

/* clang-format off */
#define UNARY_ROW(name, kind) {                                                                                                  \
        #name, 0, HAS_##kind, name##_value, name##_slope, name##_textbook, name##_known,                                         \
        (int)(sizeof name##_known / sizeof *name##_known),                                                                       \
        ENTRY_OF(name##_forward, 1, NAMES("x", "y"), "xy"),                                                                      \
        ENTRY_OF(name##_backward, 1, NAMES("dy", "x", "dx"), "yxx"),                                                              \
        ENTRY_OF(name##_double_backward, 2, NAMES("ddx", "dy", "x", "ddy", "dx"), "xyxyx")},
#define GATED_ROW(name, activation, kind) {                                                                                      \
        #name, 1, HAS_##kind, activation##_value, activation##_slope, NULL, NULL, 0,                                             \
        ENTRY_OF(name##_forward, 1, NAMES("gate", "up", "bias", "y"), "xuby"),                                                   \
        ENTRY_OF(name##_backward, 2, NAMES("dy", "gate", "up", "bias", "dgate", "dup"), "yxubxu"),                                \
        ENTRY_OF(name##_double_backward, 3, NAMES("ddgate", "ddup", "dy", "gate", "up", "ddy", "dgate", "dup"), "xuyxuyxu")},
/* clang-format on */

static const struct operator_case operators[] = {FOR_EACH_OPERATOR(UNARY_ROW, GATED_ROW)};

/* What a gradient times the activation's derivative should be: with relu 0 where nothing passes, whatever the gradient is. */
static inline long double right_gradient(const struct operator_case *op, long double gradient, double x, double beta)
{
    int is_relu = op->slope == relu_slope || op->slope == relu2_slope;
    return is_relu && x <= 0 ? 0 : gradient * op->slope(x, beta);
}

#define OPERATORS ((int)(sizeof operators / sizeof operators[0]))

#endif
