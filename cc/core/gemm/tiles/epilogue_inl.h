// TileEpilogue in registers; included by per-ISA kernels only.
#pragma once

#include "cc/core/gemm/tiles/epilogue_kernel.h"
#include "cc/core/gemm/tiles/low_precision_registers_inl.h"
#include "cc/core/post_ops/post_ops_kernel.h"
#include "cc/simd/math/math.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Whether swish is a loop of its own over what tiles have stored. Tails are zeros again after a
// program only.
inline bool SiluFollows(const TileEpilogue& e) {
  return kVecsPerBlock > 1 && e.program != nullptr && e.silu && e.valid_lanes >= kBlock;
}

// Swish out of registers to a C whose rows lie together, a vector a block of it: false where some
// of acc is out of reach; dst holds nothing of use then.
template <typename Dst, int kPx, int kVecs>
BD_INLINE bool StoreSilu(const Vec (&acc)[kPx][kVecs], Dst* dst, int64_t block_stride) {
  constexpr bool kRounds = __is_same(Dst, Bfloat16);
  constexpr int kAll = kPx * kVecs;
  BD_UNROLL
  for (int first = 0; first < kAll; first += 4) {
    Vec x[4];
    BD_UNROLL
    for (int k = 0; k < 4; ++k) {
      const int i = first + k < kAll ? first + k : first;
      x[k] = acc[i / kVecs][i % kVecs];
    }
    if (!SiluWithinReach<kRounds>(x, x)) return false;
    constexpr int kPair = kRounds && kVecs == 1 ? 2 : 1;  // neighbours are rounded together
    BD_UNROLL
    for (int k = 0; k < 4; k += kPair) {
      const int i = first + k;
      Dst* const at = dst + i % kVecs * block_stride + i / kVecs * kBlock;
      if (kPair == 2 && i + 1 < kAll) {
        StoreAs(at, x[k], x[k + 1]);
      } else if (i < kAll) {
        StoreAs(at, x[k]);
      }
    }
  }
  return true;
}

// The last vector of a pixel, as the tile keeps it: a Vec, or a HalfVec where the
// lanes after it are no channels (one 512-bit multiply-add takes as long as two of
// 256 bits: 144->24 at 56x56 in 108 instead of 127 us). It has a broadcast of its own,
// which the multiply-add does as it reads memory; a broadcast into a 512-bit register
// costs Zen 4 a shuffle, and leaves less for 256-bit multiply-adds (108 to 98 us).
inline Vec To(Vec v, Vec) { return v; }
inline Vec To(float x, Vec) { return Set1(x); }
inline Vec From(Vec v) { return v; }
#if defined(BD_AVX512)
inline HalfVec To(Vec v, HalfVec) { return Lower(v); }
inline HalfVec To(float x, HalfVec) { return Set1Half(x); }
inline Vec From(HalfVec v) { return Widen(v); }
#endif

// acc[p][b * kVecsPerBlock + v] for kPx pixels of kBlocks blocks. Fewer vectors are a part of a
// block: for these there are Begin and End, and pointers to where they begin.
template <int kBlocks, int kPx, int kVecs = kBlocks* kVecsPerBlock>
struct Accumulators {
  Vec acc[kPx][kVecs];

  // What Finish will add is asked for now, to arrive while the sums are made. (Asking for
  // dst as well made ResNet-50 2 % and MobileNetV2 8 % slower.)
  BD_INLINE void AskForSums(const TileEpilogue& e) {
    if (e.acc_in == nullptr || e.row_major) return;
    const float* const in = static_cast<const float*>(e.acc_in);
    BD_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        __builtin_prefetch(in + b * e.acc_block_stride + p * kBlock, 0, 3);
      }
    }
  }

  // `bias` may be null.
  BD_INLINE void Begin(const float* bias) {
    if (bias != nullptr) {
      BD_UNROLL
      for (int v = 0; v < kVecs; ++v) {
        const Vec x = Load(bias + v * kLanes);
        BD_UNROLL
        for (int p = 0; p < kPx; ++p) acc[p][v] = x;
      }
    } else {
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        BD_UNROLL
        for (int v = 0; v < kVecs; ++v) acc[p][v] = Zero();
      }
    }
  }

  // Sums that began at zero.
  BD_INLINE void Scale(const TileEpilogue& e) {
    BD_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      const Vec scale = Load(e.scale + v * kLanes);
      const Vec x = e.bias != nullptr ? Load(e.bias + v * kLanes) : Zero();
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) acc[p][v] = Fma(acc[p][v], scale, x);
    }
  }

  // To a blocked dst, without a program; `in`, if any, is what acc_in has there.
  BD_INLINE void End(const TileEpilogue& e, const float* in, float* dst) {
    if (in != nullptr) AddTo(in, e.acc_scale, e.acc_block_stride);
    StoreResults(e, dst);
  }

  BD_INLINE void Start(const TileEpilogue& e) {
    AskForSums(e);
    Begin(e.bias);
  }

  // To a blocked or a row-major C. Rows with tails call a function that reads `e`, so a copy of it
  // cannot stay in registers: tiles whose C is always blocked call FinishBlocked.
  BD_INLINE void Finish(const TileEpilogue& e, float* dst) {
    if (e.row_major) return FinishRows(e, dst);
    FinishBlocked(e, dst);
  }

  BD_INLINE void FinishBlocked(const TileEpilogue& e, float* dst) {
    if (e.acc_in != nullptr) {
      AddTo(static_cast<const float*>(e.acc_in), e.acc_scale, e.acc_block_stride);
    }
    // Tails are zeros already, but where infinity or NaN met the zeros of weights after a channel.
    if (e.valid_lanes < kBlock) ClearTail(e.valid_lanes);
    if (e.program == nullptr) return StoreResults(e, dst);
    if (SiluFollows(e)) return StoreThenSilu(e, dst);
    if constexpr (kVecsPerBlock == 1) {
      // 17 layers of EfficientNetB0: 2743 us, by a tile in memory 2970.
      if (e.silu && StoreSilu(acc, dst, e.dst_block_stride)) return;
    }
    RunProgram(e, dst);
  }

 private:
  // To a row-major C: out of registers where blocks are whole, else by rows.
  BD_INLINE void FinishRows(const TileEpilogue& e, float* dst) {
    if (e.program != nullptr || e.valid_lanes < kBlock) {
      alignas(64) float sums[kBlocks * kPx * kBlock];
      StoreTo<false>(e, sums, kPx * kBlock);
      return FinishByRows<float>(e, {sums, kPx, kBlocks}, dst);
    }
    const Vec scale = Set1(e.acc_scale), lo = Set1(e.lo), hi = Set1(e.hi);
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) {
      const float* in =
          e.acc_in == nullptr ? nullptr : static_cast<const float*>(e.acc_in) + p * e.acc_step;
      float* out = dst + p * e.dst_step;
      BD_UNROLL
      for (int v = 0; v < kVecs; ++v) {
        Vec x = acc[p][v];
        const int64_t at = v / kVecsPerBlock * e.acc_block_stride + v % kVecsPerBlock * kLanes;
        if (in != nullptr) x = Fma(scale, Load(in + at), x);
        if (e.clamp) x = Min(hi, Max(lo, x));
        StoreInOrder(out + v * kLanes, x);
      }
    }
  }

  // Of the last block.
  BD_INLINE void ClearTail(int valid_lanes) {
    constexpr int kBegin = kVecs - kVecsPerBlock;
    BD_UNROLL
    for (int v = kBegin < 0 ? 0 : kBegin; v < kVecs; ++v) {
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        acc[p][v] = KeepFirst(acc[p][v], valid_lanes - (v - kBegin) * kLanes);
      }
    }
  }

  BD_INLINE void AddTo(const float* sums, float acc_scale, int64_t block_stride) {
    const Vec scale = Set1(acc_scale);
    BD_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      const float* in = sums + (v / kVecsPerBlock) * block_stride + v % kVecsPerBlock * kLanes;
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) acc[p][v] = Fma(scale, Load(in + p * kBlock), acc[p][v]);
    }
  }

  // Vectors go on their way one by one: were all of them clamped first, the multiply-adds
  // of the next tile would wait for it (a tile of 756 multiply-adds took 850 cycles, and
  // takes 830).
  template <bool kClamp>
  BD_INLINE void StoreTo(const TileEpilogue& e, float* dst, int64_t block_stride) {
    const Vec lo = Set1(e.lo), hi = Set1(e.hi);
    BD_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      float* out = dst + (v / kVecsPerBlock) * block_stride + v % kVecsPerBlock * kLanes;
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const Vec x = acc[p][v];
        StoreInOrder(out + p * kBlock, kClamp ? Min(hi, Max(lo, x)) : x);
      }
    }
  }

  BD_INLINE void StoreResults(const TileEpilogue& e, float* dst) {
    if (e.clamp) return StoreTo<true>(e, dst, e.dst_block_stride);
    StoreTo<false>(e, dst, e.dst_block_stride);
  }

  // Where sums and weights take all registers, swish is a loop of its own over what is in L1.
  BD_INLINE void StoreThenSilu(const TileEpilogue& e, float* dst) {
    StoreTo<false>(e, dst, e.dst_block_stride);
    for (int b = 0; b < kBlocks; ++b) {
      e.program->kernels->silu(dst + b * e.dst_block_stride, kPx * kBlock);
    }
  }

  BD_INLINE void RunProgram(const TileEpilogue& e, float* dst) {
    const int64_t block_stride = e.dst_block_stride;
    alignas(64) float tile[kBlocks * kPx * kBlock];
    StoreTo<false>(e, tile, kPx * kBlock);
    for (int b = 0; b < kBlocks; ++b) {
      e.program->kernels->blocked(*e.program, tile + b * kPx * kBlock, dst + b * block_stride, kPx,
                                  e.dst_offset + b * block_stride, e.channel + b * kBlock,
                                  e.sample_channel + b * kBlock,
                                  b == kBlocks - 1 ? e.valid_lanes : kBlock);
    }
  }
};

}  // namespace
}  // namespace bd::BD_ISA
