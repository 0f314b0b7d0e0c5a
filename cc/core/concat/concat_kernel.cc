#include "cc/core/concat/concat_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Unless kExact, whole vectors: lanes beyond `count` are rubbish, in this pixel and the
// first lanes of the next, and whatever is stored after overwrites them.
template <bool kExact>
inline void Copy(const LaneRun& run, int64_t p, float* dst) {
  const float* s = run.src + p * run.stride;
  float* d = dst + p * kBlock + run.dst_lane;
  for (int i = 0; i < run.count; i += kLanes) {
    const int n = kExact ? AtMostLanes(run.count - i) : kLanes;
    StoreUpTo(d + i, LoadUpTo(s + i, n), n);
  }
}

void Assemble(const LaneRun* runs, int num_runs, int64_t pixels, float* dst) {
  for (int64_t p = 0; p + 1 < pixels; ++p) {
    for (int r = 0; r < num_runs; ++r) Copy<false>(runs[r], p, dst);
  }
  for (int r = 0; r < num_runs; ++r) Copy<true>(runs[r], pixels - 1, dst);
}

}  // namespace

constexpr ConcatKernels kConcatKernels = {Assemble};

}  // namespace bd::BD_ISA
