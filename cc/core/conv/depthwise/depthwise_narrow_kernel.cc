// Rows of narrow types to floats, and sums to narrow types. Compiled once per ISA; the contract is
// depthwise_narrow_kernel.h.
#include "cc/core/conv/depthwise/depthwise_narrow_kernel.h"

#include "cc/core/gemm/tiles/narrow_epilogue_inl.h"

namespace bd::BD_ISA {
namespace {

template <typename T>
void WidenAs(const WidenArgs& a) {
  const Dequantizer from({1.f, a.zero_point});
  const T* src = static_cast<const T*>(a.src);
  for (int64_t i = 0; i < a.count; i += kLanes) Store(a.dst + i, from.Load(src + i));
}

void Widen(const WidenArgs& a) {
  a.type == DataType::bf16 ? WidenAs<Bfloat16>(a) : WidenAs<uint8_t>(a);
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
