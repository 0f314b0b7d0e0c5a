// A tile is some rows and one panel: each pair of rows of weights is loaded once a tile, so that
// several rows share what it costs to bring it from memory and, where there is no instruction for
// pairs, to widen it.
#include "cc/core/inner_product/inner_product_bf16_kernel.h"

#include "cc/simd/convert/bf16.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

static_assert(kBf16PanelOutputs == kBlock);

// Sums of 12 rows with 512 bits and of 3 with 256 are enough chains to hide the latency of an
// addition and leave registers for the weights; SSE2 has room for 1.
#if defined(BD_AVX512)
constexpr int kRows = 12;
#elif defined(__AVX2__)
constexpr int kRows = 3;
#else
constexpr int kRows = 1;
#endif

template <int kCount>
inline void Tile(const InnerProductBf16Args& a, int64_t row) {
  Vec sum[kCount][kVecsPerBlock];
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecsPerBlock; ++v) sum[r][v] = Zero();
  }
  const Bfloat16* src = a.src + row * a.src_stride;
  const Bfloat16* panel = a.panel;
  const auto add = [&](auto pair_of, int64_t k) __attribute__((always_inline)) {
    Pairs weights[kVecsPerBlock];
#pragma GCC unroll 4
    for (int v = 0; v < kVecsPerBlock; ++v) weights[v] = LoadPairs(panel + v * 2 * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kCount; ++r) {
      const Pairs pair = pair_of(src + r * a.src_stride + k);
#pragma GCC unroll 4
      for (int v = 0; v < kVecsPerBlock; ++v) sum[r][v] = DotPairs(sum[r][v], pair, weights[v]);
    }
    panel += 2 * kBlock;
  };
  int64_t k = 0;
  for (; k + 2 <= a.inputs; k += 2) add([](const Bfloat16* p) { return SetPair(p); }, k);
  if (k < a.inputs) add([](const Bfloat16* p) { return SetSingle(p); }, k);
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
    float* dst = a.dst + (row + r) * a.dst_stride;
#pragma GCC unroll 4
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int64_t left = a.outputs - v * kLanes;
      StoreN(dst + v * kLanes, sum[r][v],
             static_cast<int>(left < 0        ? 0
                              : left < kLanes ? left
                                              : kLanes));
    }
  }
}

void Panel(const InnerProductBf16Args& a) {
  int64_t row = 0;
  for (; row + kRows <= a.rows; row += kRows) Tile<kRows>(a, row);
  for (; row < a.rows; ++row) Tile<1>(a, row);
}

constexpr InnerProductBf16Kernels kKernels = {Panel};

}  // namespace

const InnerProductBf16Kernels& GetInnerProductBf16Kernels() { return kKernels; }

}  // namespace bd::BD_ISA
