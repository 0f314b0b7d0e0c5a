// Concatenation of blocked tensors along the channels.
//
//   ConcatDesc -> MakeConcatPlan -> ConcatPlan (immutable) -> RunConcat
//
// Every src is [N, ceil(channels[i]/16), pixels, 16] with a zero tail, dst is
// [N, ceil(sum/16), pixels, 16] and its tail is written as zeros. A dst block
// that is one src block is copied; where channels[i] % 16 != 0 the inputs after
// it shift, and blocks are assembled from runs of lanes.
#ifndef CC_CORE_CONCAT_CONCAT_H_
#define CC_CORE_CONCAT_CONCAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/isa.h"
#include "cc/base/thread_pool.h"
#include "cc/core/concat/concat_kernel.h"

namespace bd {

struct ConcatDesc {
  int64_t n = 0, pixels = 0;      // pixels: the product of the spatial sizes
  std::vector<int64_t> channels;  // one an input
  // If dst is part of a wider tensor: the channel blocks of an image of the latter. 0: it
  // is a tensor of its own.
  int64_t dst_image_blocks = 0;
};

// Lanes [dst_lane, dst_lane + count) of a dst block are lanes [src_lane, ...) of
// block `src_block` of input `input`; input -1 gives zeros.
struct ConcatRun {
  int input;
  int64_t src_block;
  int32_t src_lane, dst_lane, count;
};

// Immutable once made; safe to run on many threads.
struct ConcatPlan {
  ConcatDesc desc;
  int64_t dst_channels = 0;
  int64_t blocks = 0;              // ceil(dst_channels / 16)
  std::vector<ConcatRun> runs;     // of all dst blocks, in order;
  std::vector<int64_t> first_run;  // those of block b: [first_run[b], first_run[b + 1])
  int64_t chunk = 0;               // pixels of one block copied at a time
  int64_t chunks = 0;              // of a plane
  int64_t units_per_task = 0;      // (n, block, chunk) triples a task
  int64_t tasks = 0;
  const ConcatKernels* kernels = nullptr;
};

// Returns an empty string, or one line that names what is wrong.
std::string MakeConcatPlan(const ConcatDesc& desc, Isa isa, ConcatPlan* plan);

// srcs[i] is input i; inputs without channels may be null. dst is the first block of a
// tensor or of a part.
void RunConcat(const ConcatPlan& plan, const float* const* srcs, float* dst, ThreadPool& pool);

// The same result, element by element.
void ConcatRef(const ConcatDesc& desc, const float* const* srcs, float* dst);

}  // namespace bd

#endif  // CC_CORE_CONCAT_CONCAT_H_
