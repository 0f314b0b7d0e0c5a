// What happens to a tile of sums of bfloat16 or of bytes before memory; included by the per-ISA
// kernels only. One function for all tiles of a kernel file: sums come by way of the stack.
#pragma once

#include <type_traits>

#include "cc/core/gemm/tiles/narrow_in_registers_inl.h"
#include "cc/core/gemm/tiles/narrow_kernel.h"
#include "cc/core/post_ops/post_ops_kernel.h"
#include "cc/simd/convert/quantized.h"
#include "cc/simd/math/math.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// No tensor.
struct Nothing {};

// Sums of a tile, [block][row][16], of float or of int32.
struct TileSums {
  float* at;
  int64_t rows, blocks;
};

// The sums of one block as numbers that they stand for; what that needs is in registers.
template <typename Acc>
struct Unscale {
  inline __attribute__((always_inline))
  Unscale(const TileArgs& a, const TileEpilogue& e, int64_t block)
      : rows(a.fip.pixel_terms) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int64_t at = block * kBlock + v * kLanes;
      scale[v] = Load(a.fip.unscale + at);
      bias[v] = e.bias == nullptr ? Zero() : Load(e.bias + at);
    }
  }
  void Row(int64_t row) {
    if (rows != nullptr) of_row = Set1(rows[row]);
  }
  inline __attribute__((always_inline)) Vec OfRow(const float* sums, int v) const {
    Vec x = Mul(ToFloat(LoadInt(reinterpret_cast<const int32_t*>(sums))), scale[v]);
    if (rows != nullptr) x = Mul(x, of_row);
    return Add(x, bias[v]);
  }

  const float* rows;
  Vec scale[kVecsPerBlock], bias[kVecsPerBlock], of_row = Zero();
};

// Others stand for themselves.
template <>
struct Unscale<float> {
  Unscale(const TileArgs&, const TileEpilogue&, int64_t) {}
  void Row(int64_t) {}
  Vec OfRow(const float* sums, int) const { return Load(sums); }
};

inline int64_t LanesOf(const TileEpilogue& e, const TileSums& tile, int64_t block) {
  return block + 1 < tile.blocks ? kBlock : e.valid_lanes;
}
inline int AtMostLanes(int64_t n) { return static_cast<int>(n < 0 ? 0 : n < kLanes ? n : kLanes); }

// Rows of one block of a blocked C, without a program. `valid`: lanes that are there; where all
// are, bytes are clamped as they are rounded. Bytes of sums in int32 are computed in steps.
template <typename Acc, typename Sum, typename Dst, bool kWhole>
inline __attribute__((always_inline)) void FinishBlock(const TileArgs& a, const TileEpilogue& e,
                                                       int64_t block, const float* sums,
                                                       int64_t rows, const Sum* in, Dst* out,
                                                       int valid) {
  constexpr bool kClampsApart = !kWhole || !__is_same(Dst, uint8_t);
  constexpr bool kInSteps = __is_same(Acc, int32_t) && __is_same(Dst, uint8_t);
  const bool clamp = e.clamp != 0;
  const Dequantizer from(a.narrow->sum.quantization);
  const Quantizer to = kClampsApart || !clamp ? Quantizer(a.narrow->dst.quantization)
                                              : Quantizer(a.narrow->dst.quantization, e.lo, e.hi);
  const float of_unit = kInSteps ? 1.f / a.narrow->dst.quantization.scale : 1.f;
  const Vec acc_scale = Set1(e.acc_scale), lo = Set1(e.lo * of_unit), hi = Set1(e.hi * of_unit);
  std::conditional_t<kInSteps, InSteps<1>, Unscale<Acc>> unscale(a, e, block);
  for (int64_t p = 0; p < rows; ++p, sums += kBlock, out += kBlock) {
    unscale.Row(p);
    Vec x[kVecsPerBlock];
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      x[v] = unscale.OfRow(sums + v * kLanes, v);
      if constexpr (!__is_same(Sum, Nothing) && kInSteps) {
        x[v] = unscale.Plus(x[v], in + p * kBlock + v * kLanes);
      } else if constexpr (!__is_same(Sum, Nothing)) {
        x[v] = Add(x[v], Mul(acc_scale, from.Load(in + p * kBlock + v * kLanes)));
      }
      if (kClampsApart && clamp) x[v] = Min(hi, Max(lo, x[v]));
      if (!kWhole) x[v] = KeepFirst(x[v], valid - v * kLanes);
    }
    if constexpr (kInSteps) {
      to.StoreBlockOfSteps(out, x);
    } else {
      to.StoreBlock(out, x);
    }
  }
}

template <typename Acc, typename Sum, typename Dst>
void FinishBlocks(const TileArgs& a, const TileEpilogue& e, const TileSums& tile, Dst* dst,
                  int64_t block_stride) {
  for (int64_t b = 0; b < tile.blocks; ++b) {
    const int valid = static_cast<int>(LanesOf(e, tile, b));
    const float* sums = tile.at + b * tile.rows * kBlock;
    const Sum* in =
        static_cast<const Sum*>(static_cast<const void*>(e.acc_in)) + b * e.acc_block_stride;
    Dst* out = dst + b * block_stride;
    if (valid < kBlock) {
      FinishBlock<Acc, Sum, Dst, false>(a, e, b, sums, tile.rows, in, out, valid);
    } else {
      FinishBlock<Acc, Sum, Dst, true>(a, e, b, sums, tile.rows, in, out, valid);
    }
  }
}

template <typename Acc, typename Dst>
void FinishBlocksTo(const TileArgs& a, const TileEpilogue& e, const TileSums& tile, Dst* dst,
                    int64_t block_stride) {
  if (e.acc_in == nullptr) return FinishBlocks<Acc, Nothing>(a, e, tile, dst, block_stride);
  switch (a.narrow->sum.dtype) {
    case DataType::bf16:
      return FinishBlocks<Acc, Bfloat16>(a, e, tile, dst, block_stride);
    case DataType::u8:
      return FinishBlocks<Acc, uint8_t>(a, e, tile, dst, block_stride);
    default:
      return FinishBlocks<Acc, float>(a, e, tile, dst, block_stride);
  }
}

// Floats [block][row][16] to a blocked C.
template <typename Dst>
void StoreBlocks(const Quantization& quantization, const TileSums& tile, Dst* dst,
                 int64_t block_stride) {
  const Quantizer to(quantization);
  for (int64_t b = 0; b < tile.blocks; ++b) {
    const float* const from = tile.at + b * tile.rows * kBlock;
    Dst* const out = dst + b * block_stride;
    int64_t i = 0;
    for (; i <= tile.rows * kBlock - 4 * kLanes; i += 4 * kLanes) {
      Vec x[4];
      BD_UNROLL
      for (int v = 0; v < 4; ++v) x[v] = Load(from + i + v * kLanes);
      to.StoreFour(out + i, x);
    }
    for (; i < tile.rows * kBlock; i += kLanes) to.Store(out + i, Load(from + i));
  }
}

// Sums whose program is swish, in one pass. Swish makes no number larger: of int32, all are small.
template <typename Acc, typename Dst>
[[gnu::noinline]] void FinishSilu(const TileArgs& a, const TileEpilogue& e, const TileSums& tile,
                                  Dst* dst) {
  constexpr int64_t kTogether = 4 / kVecsPerBlock;  // rows
  constexpr bool kInSteps = __is_same(Dst, uint8_t);
  const Quantizer to(a.narrow->dst.quantization);
  const float step = a.narrow->dst.quantization.scale;
  const auto finish = [&](Vec(&x)[4], Dst* at) {
    if constexpr (kInSteps) {
      SiluOfSteps(step, x);
      to.StoreSteps(at, x);
    } else {
      Silu<true>(x);
      to.StoreFour(at, x);
    }
  };
  for (int64_t b = 0; b < tile.blocks; ++b, dst += a.dst_block_stride) {
    const std::conditional_t<kInSteps, InSteps<1>, Unscale<Acc>> unscale(a, e, b);
    const float* const sums = tile.at + b * tile.rows * kBlock;
    for (int64_t p = 0; p < tile.rows; p += kTogether) {
      Vec x[4];
      BD_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int64_t row = p + i / kVecsPerBlock;
        const int v = i % kVecsPerBlock;
        const float* const from = sums + (row < tile.rows ? row : p) * kBlock + v * kLanes;
        if constexpr (kInSteps) {
          x[i] = unscale(LoadInt(reinterpret_cast<const int32_t*>(from)), v);
        } else {
          x[i] = unscale.OfRow(from, v);
        }
      }
      if (p + kTogether <= tile.rows) {
        finish(x, dst + p * kBlock);
      } else {
        alignas(64) Dst some[4 * kLanes];
        finish(x, some);
        __builtin_memcpy(dst + p * kBlock, some,
                         static_cast<size_t>((tile.rows - p) * kBlock) * sizeof(Dst));
      }
    }
  }
}

// Whether FinishSilu may be: what is no int32 keeps its lanes that are not there from NaN.
template <typename Acc>
inline bool IsSiluAlone(const TileArgs& a, const TileEpilogue& e, const TileSums& tile) {
  if (!e.silu || e.acc_in != nullptr || e.clamp || a.fip.pixel_terms != nullptr) return false;
  if constexpr (__is_same(Acc, int32_t)) {
    for (int64_t b = 0; b < tile.blocks; ++b) {
      if (!InSteps<1>(a, e, b).AreSmall()) return false;
    }
    return true;
  }
  return e.valid_lanes >= kBlock;
}

template <typename Acc, typename Dst>
void FinishBlockedAs(const TileArgs& a, const TileEpilogue& e, const TileSums& tile, Dst* dst) {
  if (e.program == nullptr) {
    return FinishBlocksTo<Acc>(a, e, tile, dst, a.dst_block_stride);
  }
  if constexpr (__is_same(Dst, std::conditional_t<__is_same(Acc, int32_t), uint8_t, Bfloat16>)) {
    if (IsSiluAlone<Acc>(a, e, tile)) return FinishSilu<Acc>(a, e, tile, dst);
  }
  const int64_t stride = tile.rows * kBlock;
  TileEpilogue bare = e;
  bare.clamp = 0;
  FinishBlocksTo<Acc>(a, bare, tile, tile.at, stride);
  for (int64_t b = 0; b < tile.blocks; ++b) {
    float* block = tile.at + b * stride;
    e.program->kernels->blocked(*e.program, block, block, static_cast<int>(tile.rows),
                                e.dst_offset + b * a.dst_block_stride, e.channel + b * kBlock,
                                e.sample_channel + b * kBlock,
                                static_cast<int>(LanesOf(e, tile, b)));
  }
  StoreBlocks(a.narrow->dst.quantization, tile, dst, a.dst_block_stride);
}

// Columns of a row of a row-major C, whose last block may be partial: nothing beyond it is read or
// written.
template <typename Sum>
void AddSumToRow(const TileArgs& a, const TileEpilogue& e, const Sum* in, int64_t columns,
                 float* row) {
  const Dequantizer from(a.narrow->sum.quantization);
  const Vec scale = Set1(e.acc_scale);
  for (int64_t c = 0; c < columns; c += kLanes) {
    const Vec x = from.LoadN(in + c, AtMostLanes(columns - c));
    Store(row + c, Add(Load(row + c), Mul(scale, x)));
  }
}

template <typename Acc, typename Dst>
void FinishRowsAs(const TileArgs& a, const TileEpilogue& e, const TileSums& tile, Dst* dst) {
  const Quantizer to(a.narrow->dst.quantization);
  const Vec lo = Set1(e.lo), hi = Set1(e.hi);
  const int64_t columns = (tile.blocks - 1) * kBlock + e.valid_lanes;
  alignas(64) float row[kMaxTileBlocks * kBlock];
  for (int64_t p = 0; p < tile.rows; ++p) {
    for (int64_t b = 0; b < tile.blocks; ++b) {
      Unscale<Acc> unscale(a, e, b);
      unscale.Row(p);
      const float* sums = tile.at + (b * tile.rows + p) * kBlock;
      for (int v = 0; v < kVecsPerBlock; ++v) {
        Store(row + b * kBlock + v * kLanes, unscale.OfRow(sums + v * kLanes, v));
      }
    }
    if (e.acc_in != nullptr) {
      const void* in =
          reinterpret_cast<const char*>(e.acc_in) + p * e.acc_step * a.narrow->sum_bytes;
      switch (a.narrow->sum.dtype) {
        case DataType::bf16:
          AddSumToRow(a, e, static_cast<const Bfloat16*>(in), columns, row);
          break;
        case DataType::u8:
          AddSumToRow(a, e, static_cast<const uint8_t*>(in), columns, row);
          break;
        default:
          AddSumToRow(a, e, static_cast<const float*>(in), columns, row);
      }
    }
    if (e.program != nullptr) {
      e.program->kernels->rows(*e.program, row,
                               {1, columns, columns, e.dst_offset + p * e.operand_step, 0,
                                e.channel, e.channels, e.sample_channel});
    }
    for (int64_t c = 0; c < columns; c += kLanes) {
      Vec x = Load(row + c);
      if (e.clamp) x = Min(hi, Max(lo, x));
      to.StoreN(dst + p * e.dst_step + c, x, AtMostLanes(columns - c));
    }
  }
}

template <typename Acc, typename Dst>
void FinishAs(const TileArgs& a, const TileEpilogue& e, const TileSums& tile, void* dst) {
  if (e.row_major) return FinishRowsAs<Acc>(a, e, tile, static_cast<Dst*>(dst));
  FinishBlockedAs<Acc>(a, e, tile, static_cast<Dst*>(dst));
}

// `tile` is left with anything.
template <typename Acc>
[[gnu::noinline]] void FinishNarrow(const TileArgs& a, const TileEpilogue& e, const TileSums& tile,
                                    void* dst) {
  switch (a.narrow->dst.dtype) {
    case DataType::bf16:
      return FinishAs<Acc, Bfloat16>(a, e, tile, dst);
    case DataType::u8:
      return FinishAs<Acc, uint8_t>(a, e, tile, dst);
    default:
      return FinishAs<Acc, float>(a, e, tile, dst);
  }
}

}  // namespace
}  // namespace bd::BD_ISA
