// The epilogue by rows: sums that lie in L1, of any types, through any chain. Compiled once per
// ISA; the contract is epilogue_kernel.h.
#include "cc/core/gemm/tiles/epilogue_kernel.h"

#include <type_traits>

#include "cc/core/gemm/tiles/narrow_in_registers_inl.h"
#include "cc/core/post_ops/post_ops_kernel.h"
#include "cc/simd/convert/quantized.h"
#include "cc/simd/math/math.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// No tensor to add.
struct Nothing {};

// Of one block: what sums stand for, and what is added to them. Registers hold all that takes.
class Reals {
 public:
  explicit Reals(const TileEpilogue& e)
      : added_(e.tensors.sum.quantization), scale_(Set1(e.acc_scale)) {}

  // Of lanes that are no columns nothing is read. Operations round one by one, as the chain's do.
  template <typename T>
  inline __attribute__((always_inline)) Vec Plus(Vec x, const T* in, int lanes) const {
    return Add(x, Mul(scale_, added_.LoadN(in, lanes)));
  }

 private:
  const Dequantizer added_;
  const Vec scale_;
};

struct RealsOfFloats : Reals {
  using Element = float;

  RealsOfFloats(const TileEpilogue& e, int64_t) : Reals(e) {}
  void Row(int64_t) {}
  Vec OfRow(const float* sums, int) const { return Load(sums); }
};

class RealsOfInts : public Reals {
 public:
  using Element = int32_t;

  RealsOfInts(const TileEpilogue& e, int64_t block) : Reals(e), rows_(e.row_scale) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int64_t at = block * kBlock + v * kLanes;
      scale_[v] = Load(e.scale + at);
      bias_[v] = e.bias == nullptr ? Zero() : Load(e.bias + at);
    }
  }
  void Row(int64_t row) {
    if (rows_ != nullptr) of_row_ = Set1(rows_[row]);
  }
  inline __attribute__((always_inline)) Vec OfRow(const int32_t* sums, int v) const {
    Vec x = Mul(ToFloat(LoadInt(sums)), scale_[v]);
    if (rows_ != nullptr) x = Mul(x, of_row_);
    return Add(x, bias_[v]);
  }

 private:
  const float* const rows_;
  Vec scale_[kVecsPerBlock], bias_[kVecsPerBlock], of_row_ = Zero();
};

using StepsOfInts = InSteps<1>;

inline int ValidLanes(const TileEpilogue& e, const TileSums& tile, int64_t block) {
  return block + 1 < tile.blocks ? kBlock : e.valid_lanes;
}

// The rows of a block, without the program. Of `valid` lanes that are there others become zero or,
// in C by rows, are not stored; where all are, bytes are clamped as they are rounded.
template <bool kWhole, typename Sums, typename Sum, typename Dst>
inline __attribute__((always_inline)) void PassBlock(const TileEpilogue& e, int64_t block,
                                                     const typename Sums::Element* sums,
                                                     int64_t rows, int valid, bool by_lanes,
                                                     Dst* out) {
  constexpr bool kSteps = std::is_same_v<Sums, StepsOfInts>;
  constexpr bool kClampsApart = !kWhole || !std::is_same_v<Dst, uint8_t>;
  const Quantization quantization = e.tensors.dst.quantization;
  const bool clamp = e.clamp != 0;
  const Quantizer to =
      kClampsApart || !clamp ? Quantizer(quantization) : Quantizer(quantization, e.lo, e.hi);
  const float of_unit = kSteps ? 1.f / quantization.scale : 1.f;
  const Vec lo = Set1(e.lo * of_unit), hi = Set1(e.hi * of_unit);
  const int64_t in_step = e.acc_step, out_step = e.dst_step;
  const auto* in =
      static_cast<const Sum*>(static_cast<const void*>(e.acc_in)) + block * e.acc_block_stride;
  Sums stands_for(e, block);
  for (int64_t p = 0; p < rows; ++p, sums += kBlock, out += out_step) {
    stands_for.Row(p);
    Vec x[kVecsPerBlock];
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int lanes = kWhole ? kLanes : AtMostLanes(valid - v * kLanes);
      x[v] = stands_for.OfRow(sums + v * kLanes, v);
      if constexpr (!std::is_same_v<Sum, Nothing>) {
        x[v] = stands_for.Plus(x[v], in + p * in_step + v * kLanes, lanes);
      }
      if (kClampsApart && clamp) x[v] = Min(hi, Max(lo, x[v]));
      if (!kWhole) x[v] = KeepFirst(x[v], lanes);
      if (!kWhole && by_lanes) to.StoreN(out + v * kLanes, x[v], lanes);
    }
    if (!kWhole && by_lanes) continue;
    if constexpr (kSteps) {
      to.StoreBlockOfSteps(out, x);
    } else {
      to.StoreBlock(out, x);
    }
  }
}

template <typename Sums, typename Sum, typename Dst>
[[gnu::noinline]] void Pass(const TileEpilogue& e, const TileSums& tile, Dst* dst) {
  const bool by_lanes = e.row_major && static_cast<const void*>(dst) != tile.at;
  const auto* sums = static_cast<const typename Sums::Element*>(tile.at);
  for (int64_t b = 0; b < tile.blocks; ++b) {
    const int valid = ValidLanes(e, tile, b);
    const auto* of_block = sums + b * tile.rows * kBlock;
    Dst* const out = dst + b * e.dst_block_stride;
    if (valid < kBlock) {
      PassBlock<false, Sums, Sum>(e, b, of_block, tile.rows, valid, by_lanes, out);
    } else {
      PassBlock<true, Sums, Sum>(e, b, of_block, tile.rows, valid, by_lanes, out);
    }
  }
}

template <typename Sums, typename Dst>
void PassOf(const TileEpilogue& e, const TileSums& tile, Dst* dst) {
  if (e.acc_in == nullptr) return Pass<Sums, Nothing>(e, tile, dst);
  switch (e.tensors.sum.dtype) {
    case DataType::bf16:
      return Pass<Sums, Bfloat16>(e, tile, dst);
    case DataType::u8:
      return Pass<Sums, uint8_t>(e, tile, dst);
    default:
      return Pass<Sums, float>(e, tile, dst);
  }
}

// Sums whose program is swish, in one pass. Swish makes no number larger: of int32, all are small.
template <typename Sums, typename Dst>
[[gnu::noinline]] void FinishSilu(const TileEpilogue& e, const TileSums& tile, Dst* dst) {
  constexpr int64_t kTogether = 4 / kVecsPerBlock;  // rows
  const Quantizer to(e.tensors.dst.quantization);
  const float step = e.tensors.dst.quantization.scale;
  const auto finish = [&](Vec(&x)[4], Dst* at) {
    if constexpr (std::is_same_v<Sums, StepsOfInts>) {
      SiluOfSteps(step, x);
      to.StoreSteps(at, x);
    } else {
      Silu<true>(x);
      to.StoreFour(at, x);
    }
  };
  for (int64_t b = 0; b < tile.blocks; ++b, dst += e.dst_block_stride) {
    const Sums stands_for(e, b);
    const auto* sums = static_cast<const typename Sums::Element*>(tile.at) + b * tile.rows * kBlock;
    for (int64_t p = 0; p < tile.rows; p += kTogether) {
      Vec x[4];
      BD_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int64_t row = p + i / kVecsPerBlock;
        const int v = i % kVecsPerBlock;
        x[i] = stands_for.OfRow(sums + (row < tile.rows ? row : p) * kBlock + v * kLanes, v);
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
template <typename Sums>
bool IsSiluAlone(const TileEpilogue& e, const TileSums& tile) {
  if (!e.silu || e.row_major || e.acc_in != nullptr || e.clamp || e.row_scale != nullptr) {
    return false;
  }
  if constexpr (std::is_same_v<Sums, StepsOfInts>) {
    for (int64_t b = 0; b < tile.blocks; ++b) {
      if (!StepsOfInts(e, b).AreSmall()) return false;
    }
    return true;
  }
  return e.valid_lanes >= kBlock;
}

void RunProgram(const TileEpilogue& e, const TileSums& tile) {
  const PostOpProgram& program = *e.program;
  for (int64_t b = 0; b < tile.blocks; ++b) {
    float* const block = static_cast<float*>(tile.at) + b * tile.rows * kBlock;
    const int64_t at = e.dst_offset + b * e.dst_block_stride, channel = e.channel + b * kBlock;
    const int valid = ValidLanes(e, tile, b);
    if (e.row_major) {
      program.kernels->rows(
          program, block,
          {tile.rows, kBlock, valid, at, e.operand_step, channel, e.channels, e.sample_channel});
    } else {
      program.kernels->blocked(program, block, block, static_cast<int>(tile.rows), at, channel,
                               e.sample_channel + b * kBlock, valid);
    }
  }
}

// With a program sums become the numbers that they stand for where they lie, then these go to dst.
template <typename Sums, typename Dst>
void FinishTo(const TileEpilogue& e, const TileSums& tile, void* to) {
  Dst* const dst = static_cast<Dst*>(to);
  constexpr bool kBytesOfInts = std::is_same_v<Sums, RealsOfInts> && std::is_same_v<Dst, uint8_t>;
  using Blocked = std::conditional_t<kBytesOfInts, StepsOfInts, Sums>;
  if (e.program == nullptr) {
    if (kBytesOfInts && !e.row_major) return PassOf<Blocked>(e, tile, dst);
    return PassOf<Sums>(e, tile, dst);
  }
  if constexpr (kBytesOfInts ||
                (std::is_same_v<Sums, RealsOfFloats> && std::is_same_v<Dst, Bfloat16>)) {
    if (IsSiluAlone<Blocked>(e, tile)) return FinishSilu<Blocked>(e, tile, dst);
  }
  TileEpilogue numbers = e;
  numbers.clamp = 0;
  numbers.dst_step = kBlock;
  numbers.dst_block_stride = tile.rows * kBlock;
  PassOf<Sums>(numbers, tile, static_cast<float*>(tile.at));
  RunProgram(e, tile);
  Pass<RealsOfFloats, Nothing>(e, tile, dst);
}

template <typename Sums>
void Finish(const TileEpilogue& e, const TileSums& tile, void* dst) {
  switch (e.tensors.dst.dtype) {
    case DataType::bf16:
      return FinishTo<Sums, Bfloat16>(e, tile, dst);
    case DataType::u8:
      return FinishTo<Sums, uint8_t>(e, tile, dst);
    default:
      return FinishTo<Sums, float>(e, tile, dst);
  }
}

constexpr EpilogueKernels kTable = {Finish<RealsOfFloats>, Finish<RealsOfInts>};

}  // namespace

const EpilogueKernels& GetEpilogueKernels() { return kTable; }

}  // namespace bd::BD_ISA
