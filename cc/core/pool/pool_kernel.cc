#include "cc/core/pool/pool_kernel.h"

#include "cc/simd/convert/convert.h"
#include "cc/simd/convert/int8.h"
#include "cc/simd/fold_plane.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// visit(row) for all of the window's rows but the first.
template <typename T, typename Visit>
inline void ForOtherRows(const T* src, const PoolRow& row, Visit visit) {
  int64_t r = 1;
  for (int64_t slice = 0; slice < row.valid_slices; ++slice, r = 0) {
    const T* s = src + slice * row.slice_stride;
    for (; r < row.valid_rows; ++r) visit(s + r * row.row_stride);
  }
}

// The columns of output o's window that are inside, [*lo, *hi).
inline void ColumnsOf(const PoolRow& row, int64_t o, int64_t* lo, int64_t* hi) {
  const int64_t first = o * row.stride - row.pad, last = first + row.kernel;
  *lo = first < 0 ? 0 : first;
  *hi = last > row.width ? row.width : last;
}

// Elements of a window that has `columns` valid columns.
inline Vec CountOf(const PoolRow& row, int64_t columns) {
  return Set1(static_cast<float>(row.valid_slices * row.valid_rows * columns));
}

// How windows that have been reduced become elements of dst: one vector each, a block apart.
template <typename Op, typename T>
struct Finisher {
  explicit Finisher(const PoolRow&) {}
  template <int n>
  BD_INLINE void Store(T* dst, const Vec (&v)[n], Vec count) const {
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) StoreAs(dst + i * kBlock, Op::Finish(v[i], count));
  }
};

// A row has few elements: what a Quantizer prepares would take as long as they do.
template <>
struct Finisher<AvgOp, uint8_t> {
  explicit Finisher(const PoolRow& row)
      : step(Set1(row.from.scale * (1.f / row.to.scale))),
        zero(Set1(static_cast<float>(row.from.zero_point))),
        least(static_cast<float>(0 - row.to.zero_point)),
        most(static_cast<float>(255 - row.to.zero_point)),
        to_zero(SetInt(row.to.zero_point)) {}
  template <int n>
  BD_INLINE void Store(uint8_t* dst, const Vec (&sums)[n], Vec count) const {
    const Vec zeros = Mul(zero, count), factor = Div(step, count);
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
      const Vec steps = Mul(Sub(sums[i], zeros), factor);
      StoreInt(dst + i * kBlock, AddInt(RoundWithin(steps, least, most), to_zero));
    }
  }
  Vec step, zero;
  float least, most;
  IVec to_zero;
};

// kTile outputs of a window of fixed width and stride. Columns are reduced over
// the rows first and neighbouring windows share them: 3x3 stride 2 loads 6.75
// vectors an output instead of 9, 3x3 stride 1 loads 4.
template <typename Op, int kKernel, int kStride, int kTile, typename T>
inline void SlidingTile(const T* src, const PoolRow& row, const Finisher<Op, T>& finish, Vec count,
                        T* dst) {
  constexpr int kColumns = (kTile - 1) * kStride + kKernel;
  for (int v = 0; v < kBlock; v += kLanes) {
    Vec column[kColumns], result[kTile];
    const T* s = src + v;
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; ++c) column[c] = LoadAs(s + c * kBlock);
    ForOtherRows(
        s, row, [&](const T* other) __attribute__((always_inline)) {
#pragma GCC unroll 16
          for (int c = 0; c < kColumns; ++c) {
            column[c] = Op::Combine(column[c], LoadAs(other + c * kBlock));
          }
        });
#pragma GCC unroll 16
    for (int t = 0; t < kTile; ++t) {
      result[t] = column[t * kStride];
#pragma GCC unroll 4
      for (int k = 1; k < kKernel; ++k) {
        result[t] = Op::Combine(result[t], column[t * kStride + k]);
      }
    }
    finish.Store(dst + v, result, count);
  }
}

template <typename Op, typename T, int kKernel, int kStride, int kTile>
inline void SlidingRow(const PoolRow& row, const Finisher<Op, T>& finish) {
  T* const dst = static_cast<T*>(row.dst);
  const Vec count = CountOf(row, kKernel);
  const T* src = static_cast<const T*>(row.src) - row.pad * kBlock;
  const auto tile = [&](int64_t o) __attribute__((always_inline)) {
    SlidingTile<Op, kKernel, kStride, kTile>(src + o * kStride * kBlock, row, finish, count,
                                             dst + o * kBlock);
  };
  int64_t o = row.inner_begin;
  for (; o + kTile <= row.inner_end; o += kTile) tile(o);
  if (o < row.inner_end && row.inner_end - kTile >= row.inner_begin) {
    return tile(row.inner_end - kTile);  // some of it once more
  }
  for (; o < row.inner_end; ++o) {
    SlidingTile<Op, kKernel, kStride, 1>(src + o * kStride * kBlock, row, finish, count,
                                         dst + o * kBlock);
  }
}

// kTile outputs of a window of any stride that has `taps` valid columns.
template <typename Op, int kTile, typename T>
inline void AnyTile(const T* src, const PoolRow& row, const Finisher<Op, T>& finish, int64_t taps,
                    T* dst) {
  const Vec count = CountOf(row, taps);
  for (int v = 0; v < kBlock; v += kLanes) {
    Vec result[kTile];
#pragma GCC unroll 8
    for (int t = 0; t < kTile; ++t) result[t] = Op::Identity();
    const auto add_row = [&](const T* s) __attribute__((always_inline)) {
      for (int64_t k = 0; k < taps; ++k, s += kBlock) {
#pragma GCC unroll 8
        for (int t = 0; t < kTile; ++t) {
          result[t] = Op::Combine(result[t], LoadAs(s + t * row.stride * kBlock));
        }
      }
    };
    add_row(src + v);
    ForOtherRows(src + v, row, add_row);
    finish.Store(dst + v, result, count);
  }
}

template <typename Op, typename T>
inline void AnyRow(const PoolRow& row, const Finisher<Op, T>& finish) {
  T* const dst = static_cast<T*>(row.dst);
  constexpr int kTile = 8;
  const T* src = static_cast<const T*>(row.src) - row.pad * kBlock;
  int64_t o = row.inner_begin;
  for (; o + kTile <= row.inner_end; o += kTile) {
    AnyTile<Op, kTile>(src + o * row.stride * kBlock, row, finish, row.kernel, dst + o * kBlock);
  }
  for (; o < row.inner_end; ++o) {
    AnyTile<Op, 1>(src + o * row.stride * kBlock, row, finish, row.kernel, dst + o * kBlock);
  }
}

// Outputs whose window reaches beyond the row.
template <typename Op, typename T>
inline void EdgeColumns(const PoolRow& row, const Finisher<Op, T>& finish, int64_t begin,
                        int64_t end) {
  const T* const src = static_cast<const T*>(row.src);
  T* const dst = static_cast<T*>(row.dst);
  for (int64_t o = begin; o < end; ++o) {
    int64_t lo, hi;
    ColumnsOf(row, o, &lo, &hi);
    AnyTile<Op, 1>(src + lo * kBlock, row, finish, hi - lo, dst + o * kBlock);
  }
}

template <typename Op, typename T>
void PoolOneRow(const PoolRow& row) {
  const Finisher<Op, T> finish(row);
  EdgeColumns<Op, T>(row, finish, 0, row.inner_begin);
  if (row.kernel == 2 && row.stride == 2) {
    SlidingRow<Op, T, 2, 2, 4>(row, finish);
  } else if (row.kernel == 3 && row.stride == 2) {
    SlidingRow<Op, T, 3, 2, 4>(row, finish);
  } else if (row.kernel == 3 && row.stride == 1) {
    SlidingRow<Op, T, 3, 1, 6>(row, finish);
  } else {
    AnyRow<Op, T>(row, finish);
  }
  EdgeColumns<Op, T>(row, finish, row.inner_end, row.out);
}

void AverageBytes(const uint8_t* src, const Quantization& from, int64_t pixels, float* dst,
                  int lanes) {
  IVec sum[kVecsPerBlock];
#pragma GCC unroll 4
  for (int v = 0; v < kVecsPerBlock; ++v) sum[v] = SetInt(0);
#pragma GCC unroll 4
  for (int64_t p = 0; p < pixels; ++p, src += kBlock) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecsPerBlock; ++v) sum[v] = AddInt(sum[v], LoadInt(src + v * kLanes));
  }
  const IVec zeros = SetInt(static_cast<int32_t>(from.zero_point * pixels));
  const Vec scale = Set1(from.scale), count = Set1(static_cast<float>(pixels));
  for (int v = 0; v < kVecsPerBlock && v * kLanes < lanes; ++v) {
    const Vec steps = ToFloat(SubInt(sum[v], zeros));
    StoreN(dst + v * kLanes, Div(Mul(scale, steps), count), AtMostLanes(lanes - v * kLanes));
  }
}

// Each column over the rows first: neighbouring windows share them.
void MaxByteRow(const PoolRow& row) {
  uint8_t* const columns = row.columns;
  const uint8_t* const src = static_cast<const uint8_t*>(row.src);
  const int64_t bytes = row.width * kBlock;
  __builtin_memcpy(columns, src, static_cast<size_t>(bytes));
  ForOtherRows(src, row, [&](const uint8_t* other) {
    for (int64_t i = 0; i < bytes; ++i) columns[i] = other[i] > columns[i] ? other[i] : columns[i];
  });
  uint8_t* dst = static_cast<uint8_t*>(row.dst);
  for (int64_t o = 0; o < row.out; ++o, dst += kBlock) {
    int64_t lo, hi;
    ColumnsOf(row, o, &lo, &hi);
    __m128i most = LoadBytes(columns + lo * kBlock);
    for (int64_t c = lo + 1; c < hi; ++c) most = MaxBytes(most, LoadBytes(columns + c * kBlock));
    StoreBlockOfBytes(dst, most);
  }
}

}  // namespace

constexpr PoolKernels kPoolKernels = {{PoolOneRow<MaxOp, float>, PoolOneRow<AvgOp, float>},
                                      {MaxByteRow, PoolOneRow<AvgOp, uint8_t>},
                                      {FoldPlane<MaxOp, float>, FoldPlane<AvgOp, float>},
                                      {PoolOneRow<MaxOp, Bfloat16>, PoolOneRow<AvgOp, Bfloat16>},
                                      {FoldPlane<MaxOp, Bfloat16>, FoldPlane<AvgOp, Bfloat16>},
                                      AverageBytes};

}  // namespace bd::BD_ISA
