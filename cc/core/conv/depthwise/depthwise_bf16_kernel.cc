// Rows of bfloat16 to floats, and sums back. Compiled once per ISA; the contract is
// depthwise_bf16_kernel.h.
#include "cc/core/conv/depthwise/depthwise_bf16_kernel.h"

#include "cc/core/gemm/tiles/narrow_epilogue_inl.h"

namespace bd::BD_ISA {
namespace {

void Widen(const WidenArgs& a) {
  for (int64_t i = 0; i < a.count; i += kLanes) Store(a.dst + i, LoadAs(a.src + i));
}

void Finish(const TileArgs& tile, float* sums, int64_t pixels) {
  FinishNarrow<float>(tile, tile.epilogue, {sums, pixels, 1}, tile.dst);
}

constexpr DepthwiseBf16Kernels kTable = {Widen, Finish};

}  // namespace

const DepthwiseBf16Kernels& GetDepthwiseBf16Kernels() { return kTable; }

}  // namespace bd::BD_ISA
