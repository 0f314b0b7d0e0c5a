// Inner products of few rows: their share of packing and running. kRows reads the matrix as it is,
// kCompressedRows a copy of 7/8 its size (the format is conv_compressed_rows_kernel.h), or, where
// many elements of the source are zero, of the matrix itself what meets others.
#ifndef CC_CORE_CONV_CONV_ROWS_H_
#define CC_CORE_CONV_CONV_ROWS_H_

#include <cstdint>

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_compressed_rows_kernel.h"
#include "cc/core/conv/conv_run.h"

namespace bd {

// Floats of a compressed group of `panels` panels of 16 columns.
int64_t CompressedGroupFloats(int64_t ic, int64_t panels);

// Floats for all weights left out, behind the groups.
int64_t LeftOutFloats(const ConvDesc& d, int64_t groups);

// The weights left out of a group, by column, k ascending.
struct LeftOutRange {
  const LeftOut* first;
  int64_t count;
};
LeftOutRange LeftOutOf(const ConvPlan& plan, const float* packed, int64_t group);

// False where the weights are no numbers, or 2^15 and more, or more than one of 512
// would have to be left out; `packed` is undefined then.
bool CompressRows(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool);

// Compressed weights are finite, so those that meet only zeros may be skipped.
void RunRows(const ConvRun& run, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_ROWS_H_
