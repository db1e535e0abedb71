/*
 * fuseline: fused, memory-bound tensor operators on DLPack tensors. Includes every public header.
 *
 * Thread safety: every function may be called from any thread at any time. No function aborts, prints, or changes the
 * calling thread's current GPU device.
 */
#ifndef FUSELINE_FUSELINE_H
#define FUSELINE_FUSELINE_H

#include <fuseline/column_sum.h>
#include <fuseline/copy.h>
#include <fuseline/geglu.h>
#include <fuseline/geglu_tanh.h>
#include <fuseline/gelu.h>
#include <fuseline/gelu_tanh.h>
#include <fuseline/info.h>
#include <fuseline/python.h>
#include <fuseline/reglu.h>
#include <fuseline/relu2.h>
#include <fuseline/status.h>
#include <fuseline/swiglu.h>
#include <fuseline/swish.h>
#include <fuseline/tensor.h>

#endif
