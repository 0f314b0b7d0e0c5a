// Register tiles of bfloat16. Compiled once per ISA; the contract is low_precision_kernel.h.
#include "cc/core/gemm/tiles/low_precision_tile_inl.h"
#include "cc/simd/convert/bf16.h"

namespace bd::BD_ISA {
namespace {

struct Bf16Type {
  using Acc = Vec;
  using AccElement = float;
  using Weights = Pairs;
  using Source = Pairs;
  // Beside the sums: weights, which without an instruction for pairs are two vectors each, and a
  // dword of A.
#if defined(BD_AVX512_BF16)
  static constexpr int kTilePixels = 14;
#elif defined(BD_AVX512)
  static constexpr int kTilePixels = 12;
#elif defined(__AVX2__)
  static constexpr int kTilePixels = 4;
#else
  static constexpr int kTilePixels = 2;
#endif

  static constexpr bool kSumsAlone = false;

  static Pairs LoadWeights(const float* p) {
    return LoadPairs(reinterpret_cast<const Bfloat16*>(p));
  }
  static Pairs SetSource(const float* p) { return SetPair(reinterpret_cast<const Bfloat16*>(p)); }
  static Vec Dot(Vec acc, Pairs x, Pairs weights) { return DotPairs(acc, x, weights); }
  static Vec Begin(const TileArgs&, const TileEpilogue& e, int lane) {
    return e.bias == nullptr ? Zero() : Load(e.bias + lane);
  }
  static void StoreSums(float* p, Vec sums) { Store(p, sums); }
};

#if defined(BD_AVX512_BF16)
struct Bf16SumsType : Bf16Type {
  static constexpr bool kSumsAlone = true;
  static Vec Begin(const TileArgs&, const TileEpilogue&, int) { return Zero(); }
};
#define BD_SUMS_ROWS BD_TYPED_TILES(Bf16SumsType)
#else
#define BD_SUMS_ROWS \
  {}
#endif

void Row(const LowPrecisionRow& row) {
  Bfloat16* dst = reinterpret_cast<Bfloat16*>(row.dst);
  if (row.type == DataType::bf16) {
    if (row.count % 2 != 0) dst[row.count] = Bfloat16{0};
    __builtin_memcpy(dst, row.src, static_cast<size_t>(row.count) * sizeof(Bfloat16));
    return;
  }
  const float* src = static_cast<const float*>(row.src);
  const Quantizer to{Quantization()};
  constexpr int64_t kFour = 4 * kLanes;
  int64_t i = 0;
  for (; i + kFour <= row.count; i += kFour) {
    const Vec x[4] = {Load(src + i), Load(src + i + kLanes), Load(src + i + 2 * kLanes),
                      Load(src + i + 3 * kLanes)};
    to.StoreFour(dst + i, x);
  }
  for (; i < row.count; i += kLanes) {
    const int n = AtMostLanes(row.count - i);
    to.StoreN(dst + i, LoadN(src + i, n), n);
  }
  if (row.count % 2 != 0) dst[row.count] = Bfloat16{0};
}

}  // namespace

constexpr Bf16TileKernels kBf16TileKernels = {
    {Bf16Type::kTilePixels, BD_TYPED_TILES(Bf16Type), Row}, BD_SUMS_ROWS};

}  // namespace bd::BD_ISA
