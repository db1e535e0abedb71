/*
 * 16-bit operands: brought to float, computed and rounded a vector at a time, so that nothing but operands goes through memory. A part of
 * body.h, whose loops these are; it does what is left over, and operands that lie apart, in blocks.
 */

/* By pieces of FL_PIECE elements, each operand `advances` bytes after the last; returns how many elements it did. */
typedef int64_t short_loop(const char *const *in, char *const *out, const int *advances, int64_t count, const void *parameters);

/*
 * The short way through exponentials ends at 2^-143.5, with which an x below 2^9 leaves nothing even of bfloat16's subnormal numbers. Where
 * a small factor keeps the exponentials of larger ones in range, it is the long way.
 */
#define FL_SHORT_SUFFICES(family, p) (family##_near_32(p) < 0x1p9f)

#define FL_SHORT_BLOCK(name, family, loop)                                                                                       \
    static void name##_block_16(const float *const *in, float *const *out, int count, const void *parameters)                    \
    {                                                                                                                            \
        const struct family##_parameters_32 local = *(const struct family##_parameters_32 *)parameters, *p = &local;             \
        if (FL_SHORT_SUFFICES(family, p))                                                                                        \
            loop(FL_LOOP, name##_16) else name##_block_32(in, out, count, parameters);                                           \
    }

#if FL_PIECE > 0
#define FL_SHORT_LOOP(name, family, inputs, outputs, loop, type)                                                                 \
    static int64_t name##_##type(const char *const *whole_in, char *const *whole_out, const int *advances, int64_t whole,        \
                                 const void *parameters)                                                                         \
    {                                                                                                                            \
        const struct family##_parameters_32 local = *(const struct family##_parameters_32 *)parameters, *p = &local;             \
        const char *from[inputs];                                                                                                \
        char *to[outputs];                                                                                                       \
        int64_t done = 0;                                                                                                        \
        if (!FL_SHORT_SUFFICES(family, p))                                                                                       \
            return 0;                                                                                                            \
        memcpy(from, whole_in, sizeof from);                                                                                     \
        memcpy(to, whole_out, sizeof to);                                                                                        \
        while (done + FL_PIECE <= whole) {                                                                                       \
            _Alignas(64) float results[outputs][FL_BLOCK];                                                                       \
            int block = whole - done < FL_BLOCK ? (int)(whole - done) / FL_PIECE * FL_PIECE : FL_BLOCK;                          \
            for (int first = 0; first < block; first += FL_PIECE) {                                                              \
                _Alignas(64) float values[inputs][FL_PIECE];                                                                     \
                const float *in[inputs];                                                                                         \
                float *out[outputs];                                                                                             \
                const int count = FL_PIECE;                                                                                      \
                for (int k = 0; k < (inputs); k++) {                                                                             \
                    fl_##type##_piece(from[k], values[k]);                                                                       \
                    in[k] = values[k];                                                                                           \
                    from[k] += advances[k];                                                                                      \
                }                                                                                                                \
                for (int k = 0; k < (outputs); k++)                                                                              \
                    out[k] = results[k] + first;                                                                                 \
                loop(FL_LOOP, name##_16)                                                                                         \
            }                                                                                                                    \
            for (int k = 0; k < (outputs); k++)                                                                                  \
                for (int first = 0; first < block; first += FL_PIECE, to[k] += FL_PIECE * 2)                                     \
                    fl_piece_to_##type(results[k] + first, to[k]);                                                               \
            done += block;                                                                                                       \
        }                                                                                                                        \
        return done;                                                                                                             \
    }

#define FL_SHORT(name) {name##_block_16, name##_float16, name##_bfloat16}
#else
#define FL_SHORT_LOOP(...)
#define FL_SHORT(name) {name##_block_16, NULL, NULL}
#endif

/* The ruler takes blocks alone, where signalling nans become quiet: it computes nothing that would make them so. */
#define FL_RULER(kernel, family, inputs, outputs, roles) FL_SHORT_BLOCK(kernel, family, FL_LOOP_##inputs##_##outputs)
#define FL_SHORT_FUNCTIONS(name, family, inputs, outputs, loop)                                                                  \
    FL_SHORT_BLOCK(name, family, loop)                                                                                           \
    FL_SHORT_LOOP(name, family, inputs, outputs, loop, float16)                                                                  \
    FL_SHORT_LOOP(name, family, inputs, outputs, loop, bfloat16)
#define FL_OPERATOR(kernel, family, inputs, outputs, roles)                                                                      \
    FL_SHORT_FUNCTIONS(kernel, family, inputs, outputs, FL_LOOP_##inputs##_##outputs)
#define FL_GATED_OPERATOR(kernel, family, inputs, outputs, roles)                                                                \
    FL_SHORT_FUNCTIONS(kernel, family, inputs, outputs, FL_LOOP_##inputs##_##outputs)                                            \
    FL_SHORT_FUNCTIONS(kernel##_plain, family, (inputs) - 2, outputs, FL_PLAIN_##inputs##_##outputs)
#include "../operators.def"

/* By operator; its plain form, where there is one; and dtype. */
static const struct short_functions {
    block_16 *block;
    short_loop *float16, *bfloat16;
} short_functions[FL_OPERATORS][2] = {
#define FL_RULER(kernel, ...)          [FL_INDEX_##kernel] = {{kernel##_block_16, NULL, NULL}, {kernel##_block_16, NULL, NULL}},
#define FL_OPERATOR(kernel, ...)       [FL_INDEX_##kernel] = {FL_SHORT(kernel), FL_SHORT(kernel)},
#define FL_GATED_OPERATOR(kernel, ...) [FL_INDEX_##kernel] = {FL_SHORT(kernel), FL_SHORT(kernel##_plain)},
#include "../operators.def"
};

/* Runs as much of a span as there are whole pieces of, all operands of which are dense or one value; returns how much. */
static int64_t run_pieces(const struct fl_operator *op, struct fl_types types, const struct fl_span *span, const void *parameters)
{
#if FL_PIECE > 0
    const struct short_functions *functions = &short_functions[op->index][span->plain];
    char *data[FL_OPERANDS_MOST];
    int advances[FL_OPERANDS_MOST];
    uint16_t repeated[FL_OPERANDS_MOST][FL_PIECE];
    short_loop *loop = types.operand == FL_FLOAT16 ? functions->float16 : functions->bfloat16;

    if (loop == NULL || types.operand != types.result || span->count < FL_PIECE)
        return 0;
    for (int k = 0; k < op->inputs + op->outputs; k++) {
        if (span->steps[k] > 1)
            return 0;
        data[k] = span->data[k];
        advances[k] = span->steps[k] * FL_PIECE * 2;
        if (span->steps[k] == 0) {
            repeated[k][0] = 0x8000; /* -0, of an absent one, which leaves what it is added to */
            if (data[k] != NULL)
                memcpy(repeated[k], data[k], sizeof repeated[k][0]);
            for (int i = 1; i < FL_PIECE; i++)
                repeated[k][i] = repeated[k][0];
            data[k] = (char *)repeated[k];
        }
    }
    return loop((const char *const *)data, data + op->inputs, advances, span->count, parameters);
#else
    (void)op, (void)types, (void)span, (void)parameters;
    return 0;
#endif
}
