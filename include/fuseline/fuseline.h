/*
 * fuseline: fused, memory-bound tensor operators on DLPack tensors. Includes every public header.
 *
 * Thread safety: every function may be called from any thread at any time. No function aborts, prints, or changes the
 * calling thread's current GPU device.
 */
#ifndef FUSELINE_FUSELINE_H
#define FUSELINE_FUSELINE_H

#include <fuseline/info.h>
#include <fuseline/status.h>
#include <fuseline/swish.h>
#include <fuseline/tensor.h>

#endif
