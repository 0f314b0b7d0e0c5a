// Register tiles of bytes. Compiled once per ISA; the contract is low_precision_kernel.h.
#include "cc/core/gemm/tiles/low_precision_tile_inl.h"
#include "cc/simd/convert/int8.h"

namespace bd::BD_ISA {
namespace {

// What sums of both ways to multiply have.
struct WholeSums {
  using Acc = IVec;
  using AccElement = int32_t;
  static constexpr bool kSumsAlone = false;

  static IVec Begin(const TileArgs& a, const TileEpilogue&, int lane) {
    return LoadInt(a.start + lane);
  }
  static void StoreSums(int32_t* p, IVec sums) { StoreInt(p, sums); }
};

struct Int8Type : WholeSums {
  using Weights = SignedQuads;
  using Source = UnsignedQuads;
  // As in bf16_tile_kernel.cc.
#if defined(BD_AVX512) && defined(BD_VNNI)
  static constexpr int kTilePixels = 14;
#elif defined(BD_AVX512)
  static constexpr int kTilePixels = 12;
#elif defined(BD_VNNI)
  static constexpr int kTilePixels = 6;
#elif defined(__AVX2__)
  static constexpr int kTilePixels = 4;
#else
  static constexpr int kTilePixels = 2;
#endif

  static SignedQuads LoadWeights(const float* p) {
    return LoadQuads(reinterpret_cast<const int8_t*>(p));
  }
  static UnsignedQuads SetSource(const float* p) {
    return SetQuad(reinterpret_cast<const uint8_t*>(p));
  }
  static IVec Dot(IVec acc, UnsignedQuads x, SignedQuads weights) {
    return DotQuads(acc, x, weights);
  }
};

// A product, a sum and a broadcast of a dword for all columns are all that is left to do.
struct WordsType : WholeSums {
  using Weights = IVec;
  using Source = IVec;
#if defined(BD_AVX512) && defined(BD_VNNI)
  static constexpr int kTilePixels = 14;
#elif defined(BD_AVX512)
  static constexpr int kTilePixels = 12;
#elif defined(__AVX2__)
  static constexpr int kTilePixels = 6;
#else
  static constexpr int kTilePixels = 2;
#endif

  static IVec LoadWeights(const float* p) { return LoadWords(reinterpret_cast<const int16_t*>(p)); }
  static IVec SetSource(const float* p) { return SetWords(reinterpret_cast<const int16_t*>(p)); }
  static IVec Dot(IVec acc, IVec x, IVec weights) { return DotWords(acc, x, weights); }
};

struct WordSumsType : WordsType {
  static constexpr bool kSumsAlone = true;
  static IVec Begin(const TileArgs&, const TileEpilogue&, int) { return SetInt(0); }
};

// Floats, by the magnitude of the largest, as Keras's quantize("int8") does it: q is rounded from
// x * 127 / (largest + epsilon), ties to even.
template <bool kHasFactors>
void RowOfFloats(const LowPrecisionRow& row, uint8_t* dst) {
  const float* src = static_cast<const float*>(row.src);
  const auto load = [&](int64_t at) {
    return kHasFactors ? Mul(Load(src + at), Load(row.factors + at)) : Load(src + at);
  };
  const auto load_n = [&](int64_t at, int n) {
    return kHasFactors ? Mul(LoadN(src + at, n), LoadN(row.factors + at, n)) : LoadN(src + at, n);
  };
  constexpr int64_t kFour = 4 * kLanes;
  Vec chain[4] = {Zero(), Zero(), Zero(), Zero()};
  int64_t i = 0;
  for (; i + kFour <= row.count; i += kFour) {
    BD_UNROLL
    for (int v = 0; v < 4; ++v) chain[v] = MaxOrNan(chain[v], Abs(load(i + v * kLanes)));
  }
  for (; i < row.count; i += kLanes) {
    chain[0] = MaxOrNan(chain[0], Abs(load_n(i, AtMostLanes(row.count - i))));
  }
  float lanes[kLanes], most = 0;
  Store(lanes, MaxOrNan(MaxOrNan(chain[0], chain[1]), MaxOrNan(chain[2], chain[3])));
  for (float x : lanes) most = x > most || x != x ? x : most;
  // Infinite numbers saturate, and the row's scale is infinite; with a NaN it is one.
  constexpr float kEpsilon = 1e-7f, kMost = 3.40282347e38f;
  const bool finite = most <= kMost;
  const float inverse = 127.f / ((finite ? most : kMost) + kEpsilon);
  *row.scale = finite ? 1.f / inverse : most;
  const Vec low = Set1(-127.f), high = Set1(127.f), factor = Set1(inverse);
  const Quantizer to(Quantization{1.f, 128});
  // A NaN stays one, as the second operand.
  const auto steps = [&](Vec x) { return Max(low, Min(high, Mul(x, factor))); };
  for (i = 0; i + kFour <= row.count; i += kFour) {
    Vec x[4];
    BD_UNROLL
    for (int v = 0; v < 4; ++v) x[v] = steps(load(i + v * kLanes));
    to.StoreFour(dst + i, x);
  }
  for (; i < row.count; i += kLanes) {
    const int n = AtMostLanes(row.count - i);
    to.StoreN(dst + i, steps(load_n(i, n)), n);
  }
}

void Row(const LowPrecisionRow& row) {
  uint8_t* dst = reinterpret_cast<uint8_t*>(row.dst);
  for (int64_t i = row.count; i % 4 != 0; ++i) dst[i] = 0;
  if (row.type == DataType::f32) {
    return row.factors == nullptr ? RowOfFloats<false>(row, dst) : RowOfFloats<true>(row, dst);
  }
  const uint8_t* src = static_cast<const uint8_t*>(row.src);
  if (row.type == DataType::u8) {
    __builtin_memcpy(dst, src, static_cast<size_t>(row.count));
    return;
  }
  for (int64_t i = 0; i < row.count; ++i) dst[i] = src[i] ^ 0x80;
}

void RowOfWords(const LowPrecisionRow& row) {
  const uint8_t* src = static_cast<const uint8_t*>(row.src);
  int16_t* dst = reinterpret_cast<int16_t*>(row.dst);
  int64_t i = 0;
  for (; i + kBlock <= row.count; i += kBlock) WidenBlock(src + i, dst + i);
  for (; i < row.count; ++i) dst[i] = src[i];
  if (row.count % 2 != 0) dst[row.count] = 0;
}

}  // namespace

constexpr Int8TileKernels kInt8TileKernels = {
    {Int8Type::kTilePixels, BD_TYPED_TILES(Int8Type), Row},
    {WordsType::kTilePixels, BD_TYPED_TILES(WordsType), RowOfWords},
    BD_TYPED_TILES(WordSumsType)};

}  // namespace bd::BD_ISA
