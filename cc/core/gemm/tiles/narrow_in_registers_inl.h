// Sums of a tile that become bfloat16 or bytes before they leave their registers; included by the
// per-ISA kernels only.
#pragma once

#include "cc/core/gemm/tiles/narrow_kernel.h"
#include "cc/simd/convert/quantized.h"
#include "cc/simd/math/math_pair.h"
#include "cc/simd/vec.h"

#define BD_UNROLL _Pragma("GCC unroll 32")

namespace bd::BD_ISA {
namespace {

// Whether sums of int32 of `blocks` blocks, whatever they are, and as much as `added`, are int32 in
// steps of C.
inline bool SumsAreSmall(const TileArgs& a, const TileEpilogue& e, const Quantizer& to, int blocks,
                         float added) {
  constexpr float kLargestSum = 0x1p31f;
  bool small = true;
  for (int i = 0; i < blocks * kBlock; i += kLanes) {
    const Vec scale = Abs(Load(a.fip.unscale + i));
    const Vec bias = e.bias == nullptr ? Zero() : Abs(Load(e.bias + i));
    const Vec rest = Add(bias, Abs(Set1(added)));
    small = small && to.AreSmall(Add(Mul(scale, Set1(kLargestSum)), rest));
  }
  return small;
}

// Sums that become numbers of a blocked C in registers, without a program.
template <typename Acc, int kBlocks>
class InRegisters;

// Of float32, bfloat16 numbers of whole blocks, with no tensor to add.
template <int kBlocks>
class InRegisters<float, kBlocks> {
 public:
  InRegisters(const TileArgs& a, const TileEpilogue& e)
      : stride_(a.dst_block_stride),
        lo_(Set1(e.lo)),
        hi_(Set1(e.hi)),
        clamp_(e.clamp != 0),
        applies_(a.narrow->dst.dtype == DataType::bf16 && !e.row_major && e.program == nullptr &&
                 e.acc_in == nullptr && e.valid_lanes >= kBlock) {}

  bool applies() const { return applies_; }

  template <int kPx, int kVecs>
  inline __attribute__((always_inline)) void Finish(const Vec (&acc)[kPx][kVecs], int64_t row,
                                                    char* dst) const {
    static_assert(kVecs == kBlocks * kVecsPerBlock);
    Bfloat16* const out = reinterpret_cast<Bfloat16*>(dst) + row * kBlock;
    BD_UNROLL
    for (int i = 0; i < kPx * kVecs; ++i) {
      const int p = i / kVecs, v = i % kVecs;
      const Vec x = clamp_ ? Min(hi_, Max(lo_, acc[p][v])) : acc[p][v];
      const int lane = v % kVecsPerBlock * kLanes;
      StoreAs(out + v / kVecsPerBlock * stride_ + p * kBlock + lane, x);
    }
  }

 private:
  const int64_t stride_;
  const Vec lo_, hi_;
  const bool clamp_, applies_;
};

// Of int32, bytes: no tensor or one of bytes to add, and never beyond int32 in steps of C, whatever
// the sums are. Lanes that are not there have no scale and no bias, and stay zero unless zero is
// clamped.
template <int kBlocks>
class InRegisters<int32_t, kBlocks> {
 public:
  InRegisters(const TileArgs& a, const TileEpilogue& e)
      : a_(a),
        from_(a.narrow->sum.quantization),
        to_(e.clamp ? Quantizer(a.narrow->dst.quantization, e.lo, e.hi)
                    : Quantizer(a.narrow->dst.quantization)),
        acc_scale_(Set1(e.acc_scale)),
        scaled_(e.acc_scale != 1),
        applies_(Applies(a, e, to_)) {}

  bool applies() const { return applies_; }

  // Rows from `row` of the tiles that begin at `dst` and at the epilogue's acc_in, [row][vector].
  template <int kPx, int kVecs>
  inline __attribute__((always_inline)) void Finish(const IVec (&acc)[kPx][kVecs], int64_t row,
                                                    char* dst) const {
    static_assert(kVecs == kBlocks * kVecsPerBlock);
    const TileEpilogue& e = a_.epilogue;
    const uint8_t* const in =
        static_cast<const uint8_t*>(static_cast<const void*>(e.acc_in)) + row * kBlock;
    uint8_t* const out = reinterpret_cast<uint8_t*>(dst) + row * kBlock;
    BD_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      BD_UNROLL
      for (int p = 0; p < kPx; p += kTogether) {
        constexpr int kLast = kPx - 1;
        Vec x[4];
        BD_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int v = b * kVecsPerBlock + i % kVecsPerBlock, q = p + i / kVecsPerBlock;
          x[i] = Mul(ToFloat(acc[q < kPx ? q : kLast][v]), Load(a_.fip.unscale + v * kLanes));
          if (e.bias != nullptr) x[i] = Add(x[i], Load(e.bias + v * kLanes));
        }
        uint8_t* const to = out + b * a_.dst_block_stride + p * kBlock;
        const int rows = kPx - p < kTogether ? kPx - p : kTogether;
        if (e.acc_in != nullptr) AddBytes(in + b * e.acc_block_stride + p * kBlock, rows, x);
        if (rows == kTogether) {
          to_.StoreSmall(to, x);
        } else {
          alignas(64) uint8_t some[4 * kLanes];
          to_.StoreSmall(some, x);
          __builtin_memcpy(to, some, static_cast<size_t>(rows * kBlock));
        }
      }
    }
  }

 private:
  static constexpr int kTogether = 4 / kVecsPerBlock;  // rows

  inline __attribute__((always_inline)) void AddBytes(const uint8_t* in, int rows, Vec* x) const {
    BD_UNROLL
    for (int i = 0; i < rows * kVecsPerBlock; ++i) {
      const Vec added = from_.Load(in + i * kLanes);
      x[i] = Add(x[i], scaled_ ? Mul(acc_scale_, added) : added);
    }
  }

  static bool Applies(const TileArgs& a, const TileEpilogue& e, const Quantizer& to) {
    if (a.narrow->dst.dtype != DataType::u8 || e.row_major || e.program != nullptr ||
        a.fip.pixel_terms != nullptr ||
        (e.valid_lanes < kBlock && e.clamp && (e.lo > 0 || e.hi < 0)) ||
        (e.acc_in != nullptr && a.narrow->sum.dtype != DataType::u8)) {
      return false;
    }
    constexpr float kLargestByte = 255.f;
    const float step = e.acc_in == nullptr ? 0.f : e.acc_scale * a.narrow->sum.quantization.scale;
    return SumsAreSmall(a, e, to, kBlocks, step * kLargestByte);
  }

  const TileArgs& a_;
  const Dequantizer from_;
  const Quantizer to_;
  const Vec acc_scale_;
  const bool scaled_, applies_;
};

}  // namespace
}  // namespace bd::BD_ISA
