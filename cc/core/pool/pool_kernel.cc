#include "cc/core/pool/pool_kernel.h"

#include "cc/simd/convert/convert.h"
#include "cc/simd/convert/int8.h"
#include "cc/simd/convert/quantized.h"
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

// Elements of a window that has `columns` valid columns.
inline Vec CountOf(const PoolRow& row, int64_t columns) {
  return Set1(static_cast<float>(row.valid_slices * row.valid_rows * columns));
}

// kTile outputs of a window of fixed width and stride. Columns are reduced over
// the rows first and neighbouring windows share them: 3x3 stride 2 loads 6.75
// vectors an output instead of 9, 3x3 stride 1 loads 4.
template <typename Op, int kKernel, int kStride, int kTile, typename T>
inline void SlidingTile(const T* src, const PoolRow& row, Vec count, T* dst) {
  constexpr int kColumns = (kTile - 1) * kStride + kKernel;
  for (int v = 0; v < kBlock; v += kLanes) {
    Vec column[kColumns];
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
      Vec result = column[t * kStride];
#pragma GCC unroll 4
      for (int k = 1; k < kKernel; ++k) {
        result = Op::Combine(result, column[t * kStride + k]);
      }
      StoreAs(dst + t * kBlock + v, Op::Finish(result, count));
    }
  }
}

template <typename Op, typename T, int kKernel, int kStride, int kTile>
inline void SlidingRow(const PoolRow& row) {
  T* const dst = static_cast<T*>(row.dst);
  const Vec count = CountOf(row, kKernel);
  const T* src = static_cast<const T*>(row.src) - row.pad * kBlock;
  int64_t o = row.inner_begin;
  for (; o + kTile <= row.inner_end; o += kTile) {
    SlidingTile<Op, kKernel, kStride, kTile>(src + o * kStride * kBlock, row, count,
                                             dst + o * kBlock);
  }
  for (; o < row.inner_end; ++o) {
    SlidingTile<Op, kKernel, kStride, 1>(src + o * kStride * kBlock, row, count, dst + o * kBlock);
  }
}

// kTile outputs of a window of any stride that has `taps` valid columns.
template <typename Op, int kTile, typename T>
inline void AnyTile(const T* src, const PoolRow& row, int64_t taps, T* dst) {
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
#pragma GCC unroll 8
    for (int t = 0; t < kTile; ++t) StoreAs(dst + t * kBlock + v, Op::Finish(result[t], count));
  }
}

template <typename Op, typename T>
inline void AnyRow(const PoolRow& row) {
  T* const dst = static_cast<T*>(row.dst);
  constexpr int kTile = 8;
  const T* src = static_cast<const T*>(row.src) - row.pad * kBlock;
  int64_t o = row.inner_begin;
  for (; o + kTile <= row.inner_end; o += kTile) {
    AnyTile<Op, kTile>(src + o * row.stride * kBlock, row, row.kernel, dst + o * kBlock);
  }
  for (; o < row.inner_end; ++o) {
    AnyTile<Op, 1>(src + o * row.stride * kBlock, row, row.kernel, dst + o * kBlock);
  }
}

// Outputs whose window reaches beyond the row.
template <typename Op, typename T>
inline void EdgeColumns(const PoolRow& row, int64_t begin, int64_t end) {
  const T* const src = static_cast<const T*>(row.src);
  T* const dst = static_cast<T*>(row.dst);
  for (int64_t o = begin; o < end; ++o) {
    const int64_t first = o * row.stride - row.pad, last = first + row.kernel;
    const int64_t lo = first < 0 ? 0 : first, hi = last > row.width ? row.width : last;
    AnyTile<Op, 1>(src + lo * kBlock, row, hi - lo, dst + o * kBlock);
  }
}

template <typename Op, typename T>
void PoolOneRow(const PoolRow& row) {
  EdgeColumns<Op, T>(row, 0, row.inner_begin);
  if (row.kernel == 2 && row.stride == 2) {
    SlidingRow<Op, T, 2, 2, 4>(row);
  } else if (row.kernel == 3 && row.stride == 2) {
    SlidingRow<Op, T, 3, 2, 4>(row);
  } else if (row.kernel == 3 && row.stride == 1) {
    SlidingRow<Op, T, 3, 1, 6>(row);
  } else {
    AnyRow<Op, T>(row);
  }
  EdgeColumns<Op, T>(row, row.inner_end, row.out);
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
    const int left = lanes - v * kLanes;
    const Vec steps = ToFloat(SubInt(sum[v], zeros));
    StoreN(dst + v * kLanes, Div(Mul(scale, steps), count), left < kLanes ? left : kLanes);
  }
}

// visit(row) for all of the window's rows.
template <typename Visit>
inline void ForByteRows(const BytePoolRow& row, Visit visit) {
  for (int64_t slice = 0; slice < row.valid_slices; ++slice) {
    for (int64_t r = 0; r < row.valid_rows; ++r) {
      visit(row.src + slice * row.slice_stride + r * row.row_stride);
    }
  }
}

// The columns of output o's window that are inside, [*lo, *hi).
inline void ColumnsOf(const BytePoolRow& row, int64_t o, int64_t* lo, int64_t* hi) {
  const int64_t first = o * row.stride - row.pad, last = first + row.kernel;
  *lo = first < 0 ? 0 : first;
  *hi = last > row.width ? row.width : last;
}

// Each column over the rows first: neighbouring windows share them.
void MaxByteRow(const BytePoolRow& row) {
  uint8_t* const columns = reinterpret_cast<uint8_t*>(row.columns);
  const int64_t bytes = row.width * kBlock;
  __builtin_memset(columns, 0, static_cast<size_t>(bytes));
  ForByteRows(row, [&](const uint8_t* src) {
    for (int64_t i = 0; i < bytes; i += kBlock) {
      StoreBlockOfBytes(columns + i, MaxBytes(LoadBytes(columns + i), LoadBytes(src + i)));
    }
  });
  for (int64_t o = 0; o < row.out; ++o) {
    int64_t lo, hi;
    ColumnsOf(row, o, &lo, &hi);
    __m128i most = LoadBytes(columns + lo * kBlock);
    for (int64_t c = lo + 1; c < hi; ++c) most = MaxBytes(most, LoadBytes(columns + c * kBlock));
    StoreBlockOfBytes(row.dst + o * kBlock, most);
  }
}

void AvgByteRow(const BytePoolRow& row) {
  const int64_t numbers = row.width * kBlock;
  ForByteRows(row, [&, first = true](const uint8_t* src) mutable {
    for (int64_t i = 0; i < numbers; i += kLanes) {
      const IVec x = LoadInt(src + i);
      StoreInt(row.columns + i, first ? x : AddInt(x, LoadInt(row.columns + i)));
    }
    first = false;
  });
  const Quantizer to(row.to);
  const Vec scale = Set1(row.from.scale);
  for (int64_t o = 0; o < row.out; ++o) {
    int64_t lo, hi;
    ColumnsOf(row, o, &lo, &hi);
    const int64_t count = (hi - lo) * row.valid_slices * row.valid_rows;
    const IVec zeros = SetInt(static_cast<int32_t>(row.from.zero_point * count));
    const Vec divisor = Set1(static_cast<float>(count));
    Vec average[kVecsPerBlock];
    for (int v = 0; v < kVecsPerBlock; ++v) {
      IVec sum = SetInt(0);
      for (int64_t c = lo; c < hi; ++c) {
        sum = AddInt(sum, LoadInt(row.columns + c * kBlock + v * kLanes));
      }
      average[v] = Div(Mul(scale, ToFloat(SubInt(sum, zeros))), divisor);
    }
    to.StoreBlock(row.dst + o * kBlock, average);
  }
}

constexpr PoolKernels kKernels = {{PoolOneRow<MaxOp, float>, PoolOneRow<AvgOp, float>},
                                  {MaxByteRow, AvgByteRow},
                                  {FoldPlane<MaxOp, float>, FoldPlane<AvgOp, float>},
                                  {PoolOneRow<MaxOp, Bfloat16>, PoolOneRow<AvgOp, Bfloat16>},
                                  {FoldPlane<MaxOp, Bfloat16>, FoldPlane<AvgOp, Bfloat16>},
                                  AverageBytes};

}  // namespace

const PoolKernels& GetPoolKernels() { return kKernels; }

}  // namespace bd::BD_ISA
