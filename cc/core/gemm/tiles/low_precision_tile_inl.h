// The register tiles of low_precision_kernel.h, over what a data type says of itself; included by
// the per-ISA kernels only. `Type` has
//
//   Acc, AccElement      a register of sums, and what it holds: float or int32_t
//   Weights, Source      registers of dwords of B, and of one dword of A
//   LoadWeights(p), SetSource(p), Dot(acc, source, weights)
//   Begin(args, lane), LoadSums, StoreSums
//   kTilePixels          rows of the widest tile
//   kSumsAlone           C has the sums themselves
#pragma once

#include "cc/core/gemm/tiles/low_precision_kernel.h"
#include "cc/core/gemm/tiles/low_precision_registers_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512)
constexpr int kPanelBlocks = 2;
#else
constexpr int kPanelBlocks = 1;
#endif

// Rows of neighbouring tiles that go through the epilogue together, which sets out once for them.
constexpr int kRowsTogether = 28;

// Sums of kPx rows of A and a panel, which finish(acc) takes. Bases, each with a scaled index of 0,
// 1 or 2 strides, reach all rows without a spilled pointer.
template <typename Type, int kBlocks, int kPx, typename Finish>
BD_INLINE void SumsOf(const TileArgs& a, const TileEpilogue& e, const char* src,
                      const float* prefetch, const Finish& finish) {
  constexpr int kVecs = kBlocks * kVecsPerBlock;
  constexpr int kPxPerBase = 3;
  constexpr int kBases = (kPx + kPxPerBase - 1) / kPxPerBase;
  const int64_t stride = a.px_stride * a.unit;
  typename Type::Acc acc[kPx][kVecs];
  BD_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    const typename Type::Acc first = Type::Begin(a, e, v * kLanes);
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) acc[p][v] = first;
  }
  const float* w = a.weights;
  for (int64_t t = 0; t < a.taps + a.tail_taps; ++t) {
    const int64_t length = t < a.taps ? a.tap_length : a.tail_length;
    const char* base[kBases];
    BD_UNROLL
    for (int j = 0; j < kBases; ++j) {
      base[j] = src + a.tap_offsets[t] + kPxPerBase * j * stride;
    }
    for (int64_t i = 0; i < length; ++i) {
      typename Type::Weights weights[kVecs];
      BD_UNROLL
      for (int v = 0; v < kVecs; ++v) weights[v] = Type::LoadWeights(w + v * kLanes);
      BD_UNROLL
      for (int b = 0; b < kBlocks; ++b) __builtin_prefetch(prefetch + b * kBlock, 0, 2);
      prefetch += a.prefetch_step;
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const typename Type::Source x = Type::SetSource(
            reinterpret_cast<const float*>(base[p / kPxPerBase] + p % kPxPerBase * stride));
        BD_UNROLL
        for (int v = 0; v < kVecs; ++v) acc[p][v] = Type::Dot(acc[p][v], x, weights[v]);
      }
      BD_UNROLL
      for (int j = 0; j < kBases; ++j) base[j] += sizeof(float);
      w += kBlocks * kBlock;
    }
  }
  finish(acc);
}

// As they are to [block][row][16], blocks `block_stride` elements apart.
template <typename Type, int kPx, int kVecs>
BD_INLINE void StoreSums(const typename Type::Acc (&acc)[kPx][kVecs], int64_t block_stride,
                         typename Type::AccElement* to) {
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    BD_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      const int b = v / kVecsPerBlock, lane = v % kVecsPerBlock * kLanes;
      Type::StoreSums(to + b * block_stride + p * kBlock + lane, acc[p][v]);
    }
  }
}

template <typename Type, int kBlocks, int kPx>
void LowPrecisionTile(const TileArgs& all) {
  TileArgs a = all;
  TileEpilogue& e = a.epilogue;
  const int64_t dst_bytes = e.tensors.dst_bytes;
  const char* src = reinterpret_cast<const char*>(a.src);
  char* dst = reinterpret_cast<char*>(a.dst);
  constexpr int64_t kTogether = kRowsTogether / kPx;
  alignas(64) typename Type::AccElement sums[kBlocks * kTogether * kPx * kBlock];
  const InRegisters<typename Type::AccElement, kBlocks> in_registers(e);
  for (int64_t tiles; a.tiles > 0; a.tiles -= tiles) {
    tiles = a.tiles < kTogether ? a.tiles : kTogether;
    const int64_t rows = tiles * kPx;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t row = t * kPx;
      SumsOf<Type, kBlocks, kPx>(a, e, src, a.prefetch, [&](const auto& acc) {
        if (in_registers.applies()) return in_registers.Finish(acc, row, dst);
        StoreSums<Type>(acc, rows * kBlock, sums + row * kBlock);
      });
      src += kPx * a.px_stride * a.unit;
      a.prefetch += (a.taps * a.tap_length + a.tail_taps * a.tail_length) * a.prefetch_step;
    }
    if (!in_registers.applies()) {
      FinishByRows<typename Type::AccElement>(e, {sums, rows, kBlocks}, dst);
    }
    dst += rows * e.dst_step * dst_bytes;
    e.Advance(rows);
  }
}

// Sums that go to a blocked C as they are.
template <typename Type, int kBlocks, int kPx>
void SumsTile(const TileArgs& all) {
  TileArgs a = all;
  const char* src = reinterpret_cast<const char*>(a.src);
  auto* dst = reinterpret_cast<typename Type::AccElement*>(a.dst);
  for (; a.tiles > 0; --a.tiles) {
    SumsOf<Type, kBlocks, kPx>(a, a.epilogue, src, a.prefetch, [&](const auto& acc) {
      StoreSums<Type>(acc, a.epilogue.dst_block_stride, dst);
    });
    src += kPx * a.px_stride * a.unit;
    dst += kPx * kBlock;
    a.prefetch += (a.taps * a.tap_length + a.tail_taps * a.tail_length) * a.prefetch_step;
  }
}

// Rows beyond the widest tile are null: the loop over panels never asks for them.
template <typename Type, int kBlocks, int kPx>
constexpr TileKernel LowPrecisionTileOrNull() {
  if constexpr (kBlocks <= kPanelBlocks && kPx <= Type::kTilePixels) {
    if constexpr (Type::kSumsAlone) return SumsTile<Type, kBlocks, kPx>;
    return LowPrecisionTile<Type, kBlocks, kPx>;
  }
  return nullptr;
}

#define BD_TYPED_TILE(px, Type, b) LowPrecisionTileOrNull<Type, b, px>()
#define BD_TYPED_TILES(Type)                                                     \
  {                                                                              \
    {BD_1_TO_14(BD_TYPED_TILE, Type, 1)}, { BD_1_TO_14(BD_TYPED_TILE, Type, 2) } \
  }

}  // namespace
}  // namespace bd::BD_ISA
