/* The forms of a gated unit: two tensors, one packed as two halves, one interleaved. */
#include <float.h>

#include "entries.h"
#include "gated.h"

/* The parts of a packed tensor that hold gate and up. */
static fuseline_status parts_of(fuseline_packing packing, enum fl_part parts[2])
{
    if (packing != FUSELINE_HALVES && packing != FUSELINE_INTERLEAVED)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "packing: is %d; accepted: FUSELINE_HALVES, FUSELINE_INTERLEAVED", (int)packing);
    parts[0] = packing == FUSELINE_HALVES ? FL_FIRST_HALF : FL_EVEN_HALF;
    parts[1] = packing == FUSELINE_HALVES ? FL_SECOND_HALF : FL_ODD_HALF;
    return FUSELINE_OK;
}

/* Sets two sources: one tensor's parts, or two whole tensors that follow each other. */
static void set_pair(struct fl_source *sources, int tensor, int is_packed, const enum fl_part parts[2])
{
    sources[0] = (struct fl_source){tensor, is_packed ? parts[0] : FL_WHOLE};
    sources[1] = (struct fl_source){is_packed ? tensor : tensor + 1, is_packed ? parts[1] : FL_WHOLE};
}

static fuseline_status set_inputs(struct fl_source *sources, int gate, int has_up, int has_bias, fuseline_packing packing)
{
    /* The bias of two tensors lies in halves; that of a packed one as the packed one does. */
    enum fl_part parts[2] = {FL_WHOLE, FL_WHOLE}, bias_parts[2] = {FL_WHOLE, FL_WHOLE};
    FL_TRY(parts_of(packing, parts));
    FL_TRY(parts_of(has_up ? FUSELINE_HALVES : packing, bias_parts));
    set_pair(&sources[0], gate, !has_up, parts);
    if (has_bias)
        set_pair(&sources[2], gate + 2, 1, bias_parts);
    return FUSELINE_OK;
}

fuseline_status fl_gated_forward(struct fl_call *call, int is_plain, int has_up, int has_bias, fuseline_packing packing)
{
    call->plain = is_plain && !has_bias;
    FL_TRY(set_inputs(&call->sources[0], 0, has_up, has_bias, packing));
    call->sources[4] = (struct fl_source){3, FL_WHOLE};
    return FUSELINE_OK;
}

/* A pair's second tensor has to be there where up is. */
static fuseline_status check_second(const char *name, int is_there, int has_up, const char *first)
{
    if (is_there == has_up)
        return FUSELINE_OK;
    return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: is %s, but up is %s; accepted: both, or neither where gate and %s are packed",
                   name, is_there ? "given" : "NULL", has_up ? "given" : "NULL", first);
}

fuseline_status fl_gated_backward(struct fl_call *call, int is_plain, int has_up, int has_bias, int has_dup,
                                  fuseline_packing packing)
{
    enum fl_part parts[2] = {FL_WHOLE, FL_WHOLE};
    FL_TRY(check_second("dup", has_dup, has_up, "dgate"));
    call->plain = is_plain && !has_bias;
    call->sources[0] = (struct fl_source){0, FL_WHOLE};
    FL_TRY(set_inputs(&call->sources[1], 1, has_up, has_bias, packing));
    FL_TRY(parts_of(packing, parts));
    set_pair(&call->sources[5], 4, !has_up, parts);
    return FUSELINE_OK;
}

fuseline_status fl_gated_double_backward(struct fl_call *call, int has_up, int has_ddup, int has_dup, fuseline_packing packing)
{
    enum fl_part parts[2] = {FL_WHOLE, FL_WHOLE};
    FL_TRY(check_second("ddup", has_ddup, has_up, "ddgate"));
    FL_TRY(check_second("dup", has_dup, has_up, "dgate"));
    FL_TRY(parts_of(packing, parts));
    set_pair(&call->sources[0], 0, !has_up, parts);
    call->sources[2] = (struct fl_source){2, FL_WHOLE};
    set_pair(&call->sources[3], 3, !has_up, parts);
    call->sources[5] = (struct fl_source){5, FL_WHOLE};
    set_pair(&call->sources[6], 6, !has_up, parts);
    return FUSELINE_OK;
}

/* In float a smaller one would be 0. */
#define FL_LIMIT_LEAST 0x1p-149

float fl_gated_limit_in_float(double limit)
{
    return limit > FLT_MAX ? INFINITY : (float)limit;
}

fuseline_status fl_gated_check(double limit, double offset)
{
    if (!(limit >= FL_LIMIT_LEAST))
        return fl_fail(FUSELINE_ERROR_ARGUMENT,
                       "limit: is %g; accepted: a positive number, %g (float's least) or more, or infinity for none", limit,
                       FL_LIMIT_LEAST);
    if (!(fabs(offset) <= FLT_MAX))
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "offset: is %g; accepted: a finite number of float's range", offset);
    return FUSELINE_OK;
}
