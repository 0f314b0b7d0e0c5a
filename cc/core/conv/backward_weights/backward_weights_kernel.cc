// Register tiles over pixels. Compiled once per ISA; the contract is the header.
//
// A tile's rows x vectors accumulators, the vectors of ddst and a broadcast fit the registers, and
// its multiply-adds outlast their latency of 4 cycles:
//   avx512   32 registers   16 rows x 1 vector
//   avx2     16 registers    6 rows x 2 vectors
//   generic  16 registers    2 rows x 4 vectors
#include "cc/core/conv/backward_weights/backward_weights_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512)
constexpr int kRows = 16;
#elif defined(__AVX2__)
constexpr int kRows = 6;
#else
constexpr int kRows = 2;
#endif

BD_INLINE void Put(const Vec (&sums)[kVecsPerBlock], int32_t lanes, bool add, float* to) {
  if (lanes == kBlock) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      Store(to + v * kLanes, add ? Add(Load(to + v * kLanes), sums[v]) : sums[v]);
    }
    return;
  }
  BD_UNROLL
  for (int v = 0; v < kVecsPerBlock; ++v) {
    const int n = AtMostLanes(lanes - v * kLanes);
    if (n == 0) break;
    float* at = to + v * kLanes;
    StoreN(at, add ? Add(LoadN(at, n), sums[v]) : sums[v], n);
  }
}

// The sums of a call start at zero and are added once: many short sums round less than a long one.
template <int kTileRows, bool kNarrow>
void Tile(const BackwardWeightsTile& a) {
  Vec acc[kTileRows][kVecsPerBlock];
  BD_UNROLL
  for (int r = 0; r < kTileRows; ++r) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) acc[r][v] = Zero();
  }
  for (int64_t n = 0; n < a.images; ++n) {
    for (int64_t y = 0; y < a.rows; ++y) {
      const float* src = a.src + n * a.src_step.image + y * a.src_step.row;
      const float* ddst = a.ddst + n * a.ddst_step.image + y * a.ddst_step.row;
      for (int64_t x = 0; x < a.px; ++x, src += a.src_step.px, ddst += a.ddst_step.px) {
        Vec d[kVecsPerBlock];
        BD_UNROLL
        for (int v = 0; v < kVecsPerBlock; ++v) {
          const int lanes = kNarrow ? AtMostLanes(a.lanes - v * kLanes) : kLanes;
          d[v] = kNarrow ? LoadN(ddst + v * kLanes, lanes) : Load(ddst + v * kLanes);
        }
        BD_UNROLL
        for (int r = 0; r < kTileRows; ++r) {
          if constexpr (kVecsPerBlock == 1) {
            acc[r][0] = FmaAt(src + r, d[0], acc[r][0]);
          } else {
            const Vec s = Set1InOrder(src + r);
            BD_UNROLL
            for (int v = 0; v < kVecsPerBlock; ++v) FmaInto(d[v], s, &acc[r][v]);
          }
        }
      }
    }
  }
  BD_UNROLL
  for (int r = 0; r < kTileRows; ++r) {
    Put(acc[r], a.lanes, a.add != 0, a.dweights + r * a.dweights_row);
  }
}

// Four sums at a time outlast the latency of a multiply-add.
void Depthwise(const BackwardWeightsTile& a) {
  constexpr int kSums = 4;
  Vec acc[kSums][kVecsPerBlock];
  for (auto& sums : acc) {
    for (Vec& sum : sums) sum = Zero();
  }
  const auto add = [&](const float* src, const float* ddst, Vec(&sums)[kVecsPerBlock]) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      sums[v] = Fma(Load(src + v * kLanes), Load(ddst + v * kLanes), sums[v]);
    }
  };
  const int64_t src_px = a.src_step.px, ddst_px = a.ddst_step.px;
  for (int64_t n = 0; n < a.images; ++n) {
    for (int64_t y = 0; y < a.rows; ++y) {
      const float* src = a.src + n * a.src_step.image + y * a.src_step.row;
      const float* ddst = a.ddst + n * a.ddst_step.image + y * a.ddst_step.row;
      int64_t x = 0;
      for (; x + kSums <= a.px; x += kSums, src += kSums * src_px, ddst += kSums * ddst_px) {
        BD_UNROLL
        for (int i = 0; i < kSums; ++i) add(src + i * src_px, ddst + i * ddst_px, acc[i]);
      }
      for (; x < a.px; ++x, src += src_px, ddst += ddst_px) add(src, ddst, acc[0]);
    }
  }
  for (int v = 0; v < kVecsPerBlock; ++v) {
    acc[0][v] = Add(Add(acc[0][v], acc[1][v]), Add(acc[2][v], acc[3][v]));
  }
  Put(acc[0], a.lanes, a.add != 0, a.dweights);
}

void AddTo(const float* from, int64_t floats, float* to) {
  Map(
      to, floats, [](Vec sum, Vec x) { return Add(sum, x); }, to, from);
}

template <int kTileRows, bool kNarrow>
constexpr auto TileOrNull() -> void (*)(const BackwardWeightsTile&) {
  if constexpr (kTileRows <= kRows) return Tile<kTileRows, kNarrow>;
  return nullptr;
}

#define BD_TILE(rows, narrow) TileOrNull<rows, narrow>()
#define BD_TILES(narrow) \
  { BD_1_TO_14(BD_TILE, narrow), BD_TILE(15, narrow), BD_TILE(16, narrow) }

}  // namespace

constexpr BackwardWeightsKernels kBackwardWeightsKernels = {kRows, BD_TILES(false), BD_TILES(true),
                                                            Depthwise, AddTo};

}  // namespace bd::BD_ISA
