// Concatenation of blocked tensors, or of some channels of each, along the channels.
//
//   ConcatDesc -> MakeConcatPlan -> ConcatPlan (immutable) -> RunConcat
//
// All are of one type in blocks of 16; every src has a zero tail, and that of dst is written as
// zeros. Integers may stand for other numbers in each of them. A dst block that is one src block is
// copied; where channels come to lie in other lanes, blocks are assembled from runs of lanes. One
// value of which some channels are taken is a slice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/quantization.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/concat/concat_kernel.h"
#include "cc/layout/tensor_view.h"

namespace bd {

// Channels [first, first + count) of a src, from any channel on.
struct ChannelRange {
  int64_t first, count;
};

// Each may be some channels of a wider tensor.
struct ConcatDesc {
  std::vector<TensorView> srcs;
  std::vector<ChannelRange> ranges;  // one a src; all channels of all where there are none
  TensorView dst;
  std::vector<Quantization> src_quantizations;  // none: those of floats
  Quantization dst_quantization;

  ElementType src_type(int i) const {
    return {dst.dtype(), src_quantizations.empty() ? Quantization() : src_quantizations[i]};
  }
  ElementType dst_type() const { return {dst.dtype(), dst_quantization}; }
  ChannelRange range(size_t i) const {
    return ranges.empty() ? ChannelRange{0, srcs[i].c()} : ranges[i];
  }
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
  std::vector<ConcatRun> runs;     // of all dst blocks, in order;
  std::vector<int64_t> first_run;  // those of block b: [first_run[b], first_run[b + 1])
  int64_t chunk = 0;               // pixels of one block copied at a time
  int64_t chunks = 0;              // of a plane
  int64_t tasks = 0;
  const ConcatKernels* kernels = nullptr;
  Isa isa = Isa::kGeneric;
};

// Returns an empty string, or one line that names what is wrong: no input, several data types,
// another layout, sizes that do not match.
std::string MakeConcatPlan(const ConcatDesc& desc, Isa isa, ConcatPlan* plan);

// srcs[i] is the address of input i's first block, of whatever type, and may be null without
// channels.
void RunConcat(const ConcatPlan& plan, const float* const* srcs, void* dst, ThreadPool& pool);

}  // namespace bd
