// Register tiles of kRows rows and kPanels panels. One row keeps all panels in registers:
// four independent streams, and enough chains of sums to cover the latency of a multiply-add.
// Several rows take as many panels as leave room for the sums: a panel's block of k stays in
// L1 from one tile of rows to the next. Compiled once per ISA; the contract is product_kernel.h.
#include "cc/core/gemm/tiles/product_kernel.h"

#include "cc/simd/convert/convert.h"
#include "cc/simd/convert/int4.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

static_assert(kLineFloats == kBlock);

#if defined(BD_AVX512)
constexpr int kTileRows = 6;
constexpr int PanelsOf(int) { return 4; }
#elif defined(__AVX2__)
constexpr int kTileRows = 6;
constexpr int PanelsOf(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
#else
constexpr int kTileRows = 2;
constexpr int PanelsOf(int rows) { return rows == 1 ? 2 : 1; }
#endif

// Eight rows of a line are as much code as four panels of the others, so there are two at most.
template <typename Weights>
constexpr int PanelsFor(int rows) {
  return Weights::kRows == 8 && rows > 1 && PanelsOf(rows) > 2 ? 2 : PanelsOf(rows);
}

// Lines asked for ahead of their use, in floats of a panel: 1 KB covers the latency of L3 at
// the pace of one row. Hardware prefetchers follow four streams with gaps where registers of 256
// bits read them; with 512 bits they keep up, and asking takes turns from loads.
constexpr int kAhead = 256;
#if defined(BD_AVX512)
constexpr bool kRowAsksAhead = false;
#else
constexpr bool kRowAsksAhead = true;
#endif

// What a data type says of a line: vector v of its row j.
struct FloatWeights {
  static constexpr int kRows = 1;
  static Vec Row(const float* line, int, int v) { return Load(line + v * kLanes); }
};
struct Bf16Weights {
  static constexpr int kRows = 2;
  static Vec Row(const float* line, int j, int v) {
    const IVec pairs = LoadInt(reinterpret_cast<const int32_t*>(line + v * kLanes));
    return j == 0 ? FromBits(ShiftLeft<16>(pairs)) : And(FromBits(pairs), FromBits(SetInt(-65536)));
  }
};
struct Int8Weights {
  static constexpr int kRows = 4;
  static Vec Row(const float* line, int j, int v) {
    return LoadAs(reinterpret_cast<const int8_t*>(line) + j * kBlock + v * kLanes);
  }
};

struct Int4Weights {
  static constexpr int kRows = 8;
  static Vec Row(const float* line, int j, int v) {
    return NumbersOf(LoadInt(reinterpret_cast<const int32_t*>(line + v * kLanes)), j);
  }
};

// Where several tiles of rows pass over the same weights, the first of them would wait for all of
// them to come; so each brings a share of those after, one panel or two.
struct Share {
  const float* first;
  const float* second;
  Share(const ProductArgs& a, int first_panel, int panels, int64_t tile, int64_t tiles) {
    first = second = a.panels + first_panel * a.panel_stride;  // here already
    const int64_t of_tile = tiles >= panels ? 1 : 2, begin = tile * of_tile;
    if (a.next == nullptr || begin >= panels) return;
    first = a.next + (first_panel + begin) * a.panel_stride;
    second = of_tile == 2 && begin + 1 < panels ? first + a.panel_stride : first;
  }
};

inline const float* RowAt(const ProductArgs& a, int64_t row) {
  if (row < a.inner_rows) return a.src + row * a.inner_stride;
  return a.src + row / a.inner_rows * a.outer_stride + row % a.inner_rows * a.inner_stride;
}

// Adds the products of row j of a line, and of element k of each row of src.
template <typename Weights, int kRows, int kPanels, int kVecs>
BD_INLINE void AddRow(const float* const (&src)[kRows], int64_t k, const float* line,
                      int64_t stride, int j, Vec (&sum)[kRows][kVecs]) {
  const auto weights = [&](int v) {
    return Weights::Row(line + v / kVecsPerBlock * stride, j, v % kVecsPerBlock);
  };
  if constexpr (kRows <= kVecs) {
    Vec x[kRows];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) x[r] = Set1(src[r][k]);
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
      const Vec w = weights(v);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) sum[r][v] = Fma(x[r], w, sum[r][v]);
    }
  } else {
    Vec w[kVecs];
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) w[v] = weights(v);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const Vec x = Set1(src[r][k]);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sum[r][v] = Fma(x, w[v], sum[r][v]);
    }
  }
}

inline Vec SumOf(const float* x, int64_t count) {
  Vec sum = Zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum = Add(sum, Load(x + i));
  return Set1(ReduceAdd(Add(sum, LoadN(x + i, static_cast<int>(count - i)))));
}

// What is added to dst of the sums of a tile's row, and the row's sum, at a vector of a panel.
template <typename Weights>
BD_INLINE Vec Scaled(const ProductArgs& a, int panel, int lane, Vec sum, Vec row_sum, Vec before) {
  const int64_t at = panel * kBlock + lane;
  if constexpr (__is_same(Weights, Int4Weights)) {
    const int n = AtMostLanes(a.columns - at);
    const Vec step = LoadN(a.unscale + at, n);
    const Vec offset = NegFma(step, Set1(kInt4Base), LoadN(a.offsets + at, n));
    return Fma(sum, step, Fma(row_sum, offset, before));
  } else {
    return a.unscale == nullptr ? Add(before, sum) : Fma(sum, Load(a.unscale + at), before);
  }
}

template <typename Weights, int kRows, int kPanels>
void Tile(const ProductArgs& a, int64_t row, int first_panel, int64_t tile, int64_t tiles) {
  constexpr int kVecs = kPanels * kVecsPerBlock, kLineRows = Weights::kRows;
  const float* src[kRows];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) src[r] = RowAt(a, row + r);
  Vec sum[kRows][kVecs];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) sum[r][v] = Zero();
  }
  const float* line = a.panels + first_panel * a.panel_stride;
  const int64_t stride = a.panel_stride;
  const Share share(a, first_panel, kPanels, tile, tiles);
  int64_t ahead = 0;
  int64_t k = 0;
#pragma GCC unroll 2
  for (; k + kLineRows <= a.k; k += kLineRows, line += kLineFloats, ahead += kLineFloats) {
    if (kRows == 1 && kRowAsksAhead) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) __builtin_prefetch(line + p * stride + kAhead);
    }
    if (kRows > 1) {
      __builtin_prefetch(share.first + ahead, 0, 2);
      if (kPanels > 1) __builtin_prefetch(share.second + ahead, 0, 2);
    }
#pragma GCC unroll 8
    for (int j = 0; j < kLineRows; ++j) {
      AddRow<Weights, kRows, kPanels>(src, k + j, line, stride, j, sum);
    }
  }
  for (int j = 0; k < a.k; ++j, ++k) {
    AddRow<Weights, kRows, kPanels>(src, k, line, stride, j, sum);
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const float* init = a.init + (row + r) * a.init_stride;
    float* dst = a.dst + (row + r) * a.dst_stride;
    const Vec row_sum = __is_same(Weights, Int4Weights) ? SumOf(src[r], a.k) : Zero();
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
      const int lane = v % kVecsPerBlock * kLanes, at = a.column[first_panel + v / kVecsPerBlock];
      Store(dst + at + lane, Scaled<Weights>(a, first_panel + v / kVecsPerBlock, lane, sum[r][v],
                                             row_sum, Load(init + at + lane)));
    }
  }
}

using TileFn = void (*)(const ProductArgs&, int64_t row, int panel, int64_t tile, int64_t tiles);

// The tile of `rows` rows on `panels` panels.
template <typename Weights, int kRows = kTileRows, int kPanels = PanelsFor<Weights>(kRows)>
TileFn TileFor(int rows, int panels) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return TileFor<Weights, kRows - 1>(rows, panels);
  }
  if constexpr (kPanels > 1) {
    if (panels < kPanels) return TileFor<Weights, kRows, kPanels - 1>(rows, panels);
  }
  return Tile<Weights, kRows, kPanels>;
}

template <typename Weights>
void MultiplyBy(const ProductArgs& a) {
  // Tiles of even height: 16 rows are 6, 5 and 5.
  const int64_t tiles = (a.rows + kTileRows - 1) / kTileRows;
  if (tiles == 0) return;
  const int most = static_cast<int>((a.rows + tiles - 1) / tiles);
  const int at_a_time = PanelsFor<Weights>(most);
  for (int panel = 0; panel < a.num_panels; panel += at_a_time) {
    const int panels = a.num_panels - panel < at_a_time ? a.num_panels - panel : at_a_time;
    for (int64_t row = 0, left = tiles; left > 0; --left) {
      const int rows = static_cast<int>((a.rows - row + left - 1) / left);
      for (int done = 0, now; done < panels; done += now) {
        now = panels - done < PanelsFor<Weights>(rows) ? panels - done : PanelsFor<Weights>(rows);
        TileFor<Weights>(rows, now)(a, row, panel + done, tiles - left, tiles);
      }
      row += rows;
    }
  }
}

// A group of rows after the other, each on top of those before it.
void MultiplyGroups(ProductArgs a) {
  int64_t left = a.k;
  do {
    a.k = left < a.group ? left : a.group;
    MultiplyBy<Int4Weights>(a);
    left -= a.k;
    a.src += a.k;
    a.panels += PanelFloats(a.weights, a.k);
    if (a.next != nullptr) a.next += PanelFloats(a.weights, a.k);
    a.unscale += a.group_stride;
    a.offsets += a.group_stride;
    a.init = a.dst;
    a.init_stride = a.dst_stride;
  } while (left > 0);
}

void Multiply(const ProductArgs& a) {
  switch (a.weights) {
    case DataType::bf16:
      return MultiplyBy<Bf16Weights>(a);
    case DataType::s8:
      return MultiplyBy<Int8Weights>(a);
    case DataType::u8:
      return MultiplyGroups(a);
    default:
      return MultiplyBy<FloatWeights>(a);
  }
}

template <typename Weights>
void WidenFrom(const WidenPanelArgs& a) {
  constexpr bool kIsInt4 = __is_same(Weights, Int4Weights);
  Vec scale[kVecsPerBlock], offset[kVecsPerBlock] = {};
  for (int v = 0; v < kVecsPerBlock; ++v) {
    scale[v] = a.scales == nullptr ? Set1(1.f) : Load(a.scales + v * kLanes);
    if constexpr (kIsInt4) {
      offset[v] = NegFma(scale[v], Set1(kInt4Base), Load(a.offsets + v * kLanes));
    }
  }
  const float* line = a.panel;
  for (int64_t k = 0; k < a.k; k += Weights::kRows, line += kLineFloats) {
#pragma GCC unroll 8
    for (int j = 0; j < Weights::kRows; ++j) {
      if (k + j >= a.k) return;
      float* dst = a.dst + (k + j) * a.row_floats;
#pragma GCC unroll 4
      for (int v = 0; v < kVecsPerBlock; ++v) {
        const Vec number = Weights::Row(line, j, v);
        Store(dst + v * kLanes, kIsInt4 ? Fma(number, scale[v], offset[v]) : Mul(number, scale[v]));
      }
    }
  }
}

void Widen(const WidenPanelArgs& a) {
  if (a.weights == DataType::bf16) return WidenFrom<Bf16Weights>(a);
  if (a.weights == DataType::u8) return WidenFrom<Int4Weights>(a);
  WidenFrom<Int8Weights>(a);
}

}  // namespace

constexpr ProductKernels kProductKernels = {kTileRows, Multiply, Widen};

}  // namespace bd::BD_ISA
