// Rows of narrow types to floats, and sums to narrow types. Compiled once per ISA; the contract is
// depthwise_narrow_kernel.h.
#include "cc/core/conv/depthwise/depthwise_narrow_kernel.h"

#include "cc/core/gemm/tiles/narrow_epilogue_inl.h"

namespace bd::BD_ISA {
namespace {

void Widen(const WidenArgs& a) {
  if (a.type == DataType::bf16) {
    const Bfloat16* src = static_cast<const Bfloat16*>(a.src);
    for (int64_t i = 0; i < a.count; i += kLanes) Store(a.dst + i, LoadAs(src + i));
    return;
  }
  const uint8_t* src = static_cast<const uint8_t*>(a.src);
  const Vec zero_point = Set1(static_cast<float>(a.zero_point));
  for (int64_t i = 0; i < a.count; i += kLanes) {
    Store(a.dst + i, Sub(LoadAs(src + i), zero_point));
  }
}

void Finish(const TileArgs& tile, float* sums, int64_t pixels) {
  const TileSums of_row = {sums, pixels, 1};
  if (tile.fip.unscale == nullptr) {
    return FinishNarrow<float>(tile, tile.epilogue, of_row, tile.dst);
  }
  FinishNarrow<WholeFloat>(tile, tile.epilogue, of_row, tile.dst);
}

constexpr DepthwiseNarrowKernels kTable = {Widen, Finish};

}  // namespace

const DepthwiseNarrowKernels& GetDepthwiseNarrowKernels() { return kTable; }

}  // namespace bd::BD_ISA
