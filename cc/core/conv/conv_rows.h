// Inner products of few rows: weights are read as they are, and where many elements of the source
// are zero, those that meet only zeros are not read at all.
#ifndef CC_CORE_CONV_CONV_ROWS_H_
#define CC_CORE_CONV_CONV_ROWS_H_

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_run.h"

namespace bd {

// What is packed: *packed = 1 where all weights are finite, so that those that meet only zeros
// may be skipped, else 0.
void PackFiniteNote(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool);

void RunRows(const ConvRun& run, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_ROWS_H_
