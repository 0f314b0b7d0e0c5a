// The epilogue by rows: sums that lie in L1, of any types, through any chain. Compiled once per
// ISA; the contract is epilogue_kernel.h.
#include "cc/core/gemm/tiles/epilogue_kernel.h"

#include <type_traits>

#include "cc/core/gemm/tiles/low_precision_registers_inl.h"
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

  // Of lanes beyond `lanes` nothing is read. Operations round one by one, as the chain's do.
  template <typename T>
  BD_INLINE Vec Plus(Vec x, const T* in) const {
    return Add(x, Mul(scale_, added_.Load(in)));
  }
  template <typename T>
  BD_INLINE Vec Plus(Vec x, const T* in, int lanes) const {
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
  BD_INLINE Vec OfRow(const int32_t* sums, int v) const {
    Vec x = Mul(ToFloat(LoadInt(sums)), scale_[v]);
    if (rows_ != nullptr) x = Mul(x, of_row_);
    return Add(x, bias_[v]);
  }

 private:
  const float* const rows_;
  Vec scale_[kVecsPerBlock], bias_[kVecsPerBlock], of_row_ = Zero();
};

using StepsOfInts = InSteps<1>;

// The rows of sums of a block, of which `valid` lanes are columns.
template <typename Element>
struct BlockSums {
  Element* at;
  int64_t rows, block;
  int valid;
};

// To `out`, where the rows of C are, or to where the sums were, for the program. Of lanes that are
// no columns a blocked C gets zeros, and one by rows nothing. Whole blocks of bytes are clamped as
// they are rounded.
template <bool kWhole, typename Sums, typename Sum, typename Dst>
BD_INLINE void PassRows(const TileEpilogue& e, const BlockSums<typename Sums::Element>& of,
                        Dst* out) {
  constexpr bool kSteps = std::is_same_v<Sums, StepsOfInts>;
  constexpr bool kClampsFirst = !kWhole || !std::is_same_v<Dst, uint8_t>;
  const bool in_place = static_cast<const void*>(out) == of.at;
  const bool clamp = e.clamp != 0 && !in_place, by_lanes = e.row_major != 0 && !in_place;
  const int64_t in_step = e.acc_step, out_step = in_place ? kBlock : e.dst_step, rows = of.rows;
  const Quantization quantization = e.tensors.dst.quantization;
  const Quantizer to =
      kClampsFirst || !clamp ? Quantizer(quantization) : Quantizer(quantization, e.lo, e.hi);
  const float of_unit = kSteps ? 1.f / quantization.scale : 1.f;
  const Vec lo = Set1(e.lo * of_unit), hi = Set1(e.hi * of_unit);
  const auto* in = static_cast<const Sum*>(e.acc_in) + of.block * e.acc_block_stride;
  const auto* sums = of.at;
  Sums stands_for(e, of.block);
  for (int64_t p = 0; p < rows; ++p, sums += kBlock, out += out_step) {
    stands_for.Row(p);
    Vec x[kVecsPerBlock];
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int lanes = kWhole ? kLanes : AtMostLanes(of.valid - v * kLanes);
      x[v] = stands_for.OfRow(sums + v * kLanes, v);
      if constexpr (!std::is_same_v<Sum, Nothing>) {  // whose blocks are whole where C's are
        const auto* added = in + p * in_step + v * kLanes;
        x[v] = kWhole || e.row_major == 0 ? stands_for.Plus(x[v], added)
                                          : stands_for.Plus(x[v], added, lanes);
      }
      if (kClampsFirst && clamp) x[v] = Min(hi, Max(lo, x[v]));
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
[[gnu::noinline]] void Pass(const TileEpilogue& e, const BlockSums<typename Sums::Element>& of,
                            Dst* out) {
  if (of.valid < kBlock) return PassRows<false, Sums, Sum>(e, of, out);
  PassRows<true, Sums, Sum>(e, of, out);
}

template <typename Sums, typename Dst>
void PassOf(const TileEpilogue& e, const BlockSums<typename Sums::Element>& of, Dst* out) {
  if (e.acc_in == nullptr) return Pass<Sums, Nothing>(e, of, out);
  switch (e.tensors.sum.dtype) {
    case DataType::bf16:
      return Pass<Sums, Bfloat16>(e, of, out);
    case DataType::u8:
      return Pass<Sums, uint8_t>(e, of, out);
    default:
      return Pass<Sums, float>(e, of, out);
  }
}

// Sums whose program is swish, in one pass. Swish makes no number larger: of int32, all are small.
template <typename Sums, typename Dst>
[[gnu::noinline]] void FinishSilu(const TileEpilogue& e,
                                  const BlockSums<typename Sums::Element>& of, Dst* out) {
  constexpr int64_t kTogether = 4 / kVecsPerBlock;  // rows
  const Quantizer to(e.tensors.dst.quantization);
  const float step = e.tensors.dst.quantization.scale;
  const Sums stands_for(e, of.block);
  const auto finish = [&](Vec(&x)[4], Dst* at) {
    if constexpr (std::is_same_v<Sums, StepsOfInts>) {
      SiluOfSteps(step, x);
      to.StoreSteps(at, x);
    } else {
      Silu<true>(x);
      to.StoreFour(at, x);
    }
  };
  for (int64_t p = 0; p < of.rows; p += kTogether) {
    Vec x[4];
    BD_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t row = p + i / kVecsPerBlock;
      const int v = i % kVecsPerBlock;
      x[i] = stands_for.OfRow(of.at + (row < of.rows ? row : p) * kBlock + v * kLanes, v);
    }
    if (p + kTogether <= of.rows) {
      finish(x, out + p * kBlock);
    } else {
      alignas(64) Dst some[4 * kLanes];
      finish(x, some);
      __builtin_memcpy(out + p * kBlock, some,
                       static_cast<size_t>((of.rows - p) * kBlock) * sizeof(Dst));
    }
  }
}

// Whether FinishSilu may be: what is no int32 keeps its lanes that are not there from NaN.
template <typename Sums>
bool IsSiluAlone(const TileEpilogue& e, const BlockSums<typename Sums::Element>& of) {
  if (!e.silu || e.row_major || e.acc_in != nullptr || e.clamp || e.row_scale != nullptr) {
    return false;
  }
  if constexpr (std::is_same_v<Sums, StepsOfInts>) {
    return StepsOfInts(e, of.block).AreSmall();
  } else {
    return of.valid >= kBlock;
  }
}

// Of a blocked C to `out`, which may be `numbers`; of one by rows in place.
void RunProgram(const TileEpilogue& e, const BlockSums<float>& numbers, float* out) {
  const PostOpProgram& program = *e.program;
  const int64_t at = e.dst_offset + numbers.block * e.dst_block_stride;
  const int64_t of_block = numbers.block * kBlock, channel = e.channel + of_block;
  if (e.row_major) {
    program.kernels->rows(program, numbers.at,
                          {numbers.rows, kBlock, numbers.valid, at, e.operand_step, channel,
                           e.channels, e.sample_channel});
  } else {
    program.kernels->blocked(program, numbers.at, out, static_cast<int>(numbers.rows), at, channel,
                             e.sample_channel + of_block, numbers.valid);
  }
}

// With a program sums become the numbers that they stand for where they lie, then these go to C.
template <typename Sums, typename Dst>
void FinishBlock(const TileEpilogue& e, const BlockSums<typename Sums::Element>& of, Dst* out) {
  constexpr bool kFloats = std::is_same_v<Sums, RealsOfFloats>;
  constexpr bool kBytesOfInts = !kFloats && std::is_same_v<Dst, uint8_t>;
  using Blocked = std::conditional_t<kBytesOfInts, StepsOfInts, Sums>;
  if (e.program == nullptr) {
    return e.row_major ? PassOf<Sums>(e, of, out) : PassOf<Blocked>(e, of, out);
  }
  if constexpr (kBytesOfInts || (kFloats && std::is_same_v<Dst, Bfloat16>)) {
    if (IsSiluAlone<Blocked>(e, of)) return FinishSilu<Blocked>(e, of, out);
  }
  const BlockSums<float> numbers = {static_cast<float*>(static_cast<void*>(of.at)), of.rows,
                                    of.block, of.valid};
  if (!kFloats || e.acc_in != nullptr) PassOf<Sums>(e, of, numbers.at);
  if constexpr (std::is_same_v<Dst, float>) {
    if (!e.row_major) return RunProgram(e, numbers, out);
  }
  RunProgram(e, numbers, numbers.at);
  Pass<RealsOfFloats, Nothing>(e, numbers, out);
}

template <typename Sums, typename Dst>
void FinishTo(const TileEpilogue& e, const TileSums& tile, void* dst) {
  auto* const sums = static_cast<typename Sums::Element*>(tile.at);
  for (int64_t b = 0; b < tile.blocks; ++b) {
    const int valid = b + 1 < tile.blocks ? kBlock : e.valid_lanes;
    FinishBlock<Sums>(e, {sums + b * tile.rows * kBlock, tile.rows, b, valid},
                      static_cast<Dst*>(dst) + b * e.dst_block_stride);
  }
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

}  // namespace

constexpr EpilogueKernels kEpilogueKernels = {Finish<RealsOfFloats>, Finish<RealsOfInts>};

}  // namespace bd::BD_ISA
