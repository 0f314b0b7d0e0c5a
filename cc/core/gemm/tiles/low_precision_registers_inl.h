// Sums of a tile that become bfloat16 or bytes before they leave their registers; included by the
// per-ISA kernels only.
#pragma once

#include "cc/core/gemm/tiles/epilogue_kernel.h"
#include "cc/simd/convert/quantized.h"
#include "cc/simd/math/math_pair.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Sums of float or of int32 through the epilogue by rows.
template <typename Acc>
inline void FinishByRows(const TileEpilogue& e, const TileSums& sums, void* dst) {
  const EpilogueKernels& kernels = kEpilogueKernels;
  (__is_same(Acc, float) ? kernels.of_floats : kernels.of_ints)(e, sums, dst);
}

// Sums of int32 and what is added to them in steps of C, which is uint8. One step is `unit`:
//
//   x = sum (scale / unit) [row_scale] + (bias - zero_point t) / unit + q (t / unit)
//
// where q is of acc_in, and t is acc_scale times a step of it. Each sum is rounded once.
template <int kBlocks>
class InSteps {
 public:
  using Element = int32_t;
  static constexpr int kVecs = kBlocks * kVecsPerBlock;

  // Of the blocks from the tile's `block` on.
  BD_INLINE InSteps(const TileEpilogue& e, int64_t block) : rows_(e.row_scale) {
    const Vec inverse = Set1(1.f / e.tensors.dst.quantization.scale);
    float zero_point = 0.f, step = 0.f;
    if (e.acc_in != nullptr) {
      const bool bytes = e.tensors.sum.dtype == DataType::u8;
      step = bytes ? e.acc_scale * e.tensors.sum.quantization.scale : e.acc_scale;
      zero_point = bytes ? static_cast<float>(e.tensors.sum.quantization.zero_point) : 0.f;
    }
    added_ = Mul(Set1(step), inverse);
    const Vec at_zero = Mul(Set1(zero_point), added_);
    BD_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      const int64_t at = block * kBlock + v * kLanes;
      const Vec bias = e.bias == nullptr ? Zero() : Load(e.bias + at);
      scale_[v] = Mul(Load(e.scale + at), inverse);
      bias_[v] = Sub(Mul(bias, inverse), at_zero);
    }
  }

  // Whether x is an int32 when rounded, whatever the sums and bytes of acc_in are.
  bool AreSmall() const {
    constexpr float kLargestSum = 0x1p31f, kLargestByte = 255.f;
    bool small = rows_ == nullptr;
    for (int v = 0; v < kVecs; ++v) {
      const Vec largest = Add(Abs(bias_[v]), Mul(Abs(added_), Set1(kLargestByte)));
      const Vec x = Add(Mul(Abs(scale_[v]), Set1(kLargestSum)), largest);
      small = small && All(Less(x, Set1(0x1p30f)));
    }
    return small;
  }

  void Row(int64_t row) {
    if (rows_ != nullptr) of_row_ = Set1(rows_[row]);
  }
  BD_INLINE Vec operator()(IVec sum, int v) const {
    return FmaOnce(ToFloat(sum), scale_[v], bias_[v]);
  }
  BD_INLINE Vec OfRow(const int32_t* sums, int v) const {
    const IVec sum = LoadInt(sums);
    if (rows_ == nullptr) return (*this)(sum, v);
    return FmaOnce(Mul(ToFloat(sum), scale_[v]), of_row_, bias_[v]);
  }
  template <typename T>
  BD_INLINE Vec Plus(Vec x, const T* in, int = kLanes) const {
    return FmaOnce(LoadAs(in), added_, x);
  }

 private:
  const float* rows_;
  Vec scale_[kVecs], bias_[kVecs], added_, of_row_ = Zero();
};

// Registers are for sums and weights: what comes after them is read from memory.
BD_INLINE void KeepInMemory(const void* constants) {
  __asm__ volatile("" : : "r"(constants) : "memory");
}

// Sums that become numbers of a blocked C in registers, without a program.
template <typename Acc, int kBlocks>
class InRegisters;

// Of float32, bfloat16 numbers of whole blocks, with no tensor to add.
template <int kBlocks>
class InRegisters<float, kBlocks> {
 public:
  explicit InRegisters(const TileEpilogue& e)
      : stride_(e.dst_block_stride),
        lo_(Set1(e.lo)),
        hi_(Set1(e.hi)),
        clamp_(e.clamp != 0),
        applies_(e.tensors.dst.dtype == DataType::bf16 && !e.row_major && e.program == nullptr &&
                 e.acc_in == nullptr && e.valid_lanes >= kBlock) {
    KeepInMemory(this);
  }

  bool applies() const { return applies_; }

  // Rows from `row` of the tiles that begin at `dst`, [row][vector]; or of a block some vectors.
  template <int kPx, int kVecs>
  BD_INLINE void Finish(const Vec (&acc)[kPx][kVecs], int64_t row, char* dst) const {
    // Copies: what is written might be this object, as far as the compiler knows.
    const Vec lo = lo_, hi = hi_;
    const int64_t stride = stride_;
    const bool clamp = clamp_;
    Bfloat16* const out = reinterpret_cast<Bfloat16*>(dst) + row * kBlock;
    BD_UNROLL
    for (int i = 0; i < kPx * kVecs; ++i) {
      const int p = i / kVecs, v = i % kVecs;
      const Vec x = clamp ? Min(hi, Max(lo, acc[p][v])) : acc[p][v];
      const int lane = v % kVecsPerBlock * kLanes;
      StoreAs(out + v / kVecsPerBlock * stride + p * kBlock + lane, x);
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
  explicit InRegisters(const TileEpilogue& e)
      : e_(e),
        steps_(e, 0),
        to_(e.clamp ? Quantizer(e.tensors.dst.quantization, e.lo, e.hi)
                    : Quantizer(e.tensors.dst.quantization)),
        applies_(Applies(e) && steps_.AreSmall()) {
    KeepInMemory(this);
  }

  bool applies() const { return applies_; }

  // Rows from `row` of the tiles that begin at `dst` and at the epilogue's acc_in, [row][vector].
  template <int kPx, int kVecs>
  BD_INLINE void Finish(const IVec (&acc)[kPx][kVecs], int64_t row, char* dst) const {
    static_assert(kVecs == kBlocks * kVecsPerBlock);
    const uint8_t* const in = static_cast<const uint8_t*>(e_.acc_in) + row * kBlock;
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
          x[i] = steps_(acc[q < kPx ? q : kLast][v], v);
        }
        uint8_t* const to = out + b * e_.dst_block_stride + p * kBlock;
        const int rows = kPx - p < kTogether ? kPx - p : kTogether;
        if (e_.acc_in != nullptr) {
          const uint8_t* const added = in + b * e_.acc_block_stride + p * kBlock;
          BD_UNROLL
          for (int i = 0; i < rows * kVecsPerBlock; ++i) {
            x[i] = steps_.Plus(x[i], added + i * kLanes);
          }
        }
        if (rows == kTogether) {
          to_.StoreSteps(to, x);
        } else {
          alignas(64) uint8_t some[4 * kLanes];
          to_.StoreSteps(some, x);
          __builtin_memcpy(to, some, static_cast<size_t>(rows * kBlock));
        }
      }
    }
  }

 private:
  static constexpr int kTogether = 4 / kVecsPerBlock;  // rows

  static bool Applies(const TileEpilogue& e) {
    return e.tensors.dst.dtype == DataType::u8 && !e.row_major && e.program == nullptr &&
           (e.valid_lanes >= kBlock || !e.clamp || (e.lo <= 0 && e.hi >= 0)) &&
           (e.acc_in == nullptr || e.tensors.sum.dtype == DataType::u8);
  }

  const TileEpilogue& e_;
  const InSteps<kBlocks> steps_;
  const Quantizer to_;
  const bool applies_;
};

}  // namespace
}  // namespace bd::BD_ISA
