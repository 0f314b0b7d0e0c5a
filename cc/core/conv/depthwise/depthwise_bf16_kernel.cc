// Depthwise rows of bfloat16: with AVX512_BF16 numbers of two rows of a window are multiplied at
// once. Compiled once per ISA; the contract is depthwise_kernel.h.
#include "cc/core/conv/depthwise/depthwise_kernel.h"
#include "cc/core/conv/depthwise/depthwise_rows_inl.h"
#include "cc/core/gemm/tiles/epilogue_inl.h"
#include "cc/core/gemm/tiles/low_precision_registers_inl.h"
#include "cc/simd/convert/bf16.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512_BF16)

// Numbers of two rows are pairs; those of a last one have zeros beside them.
struct TwoRows {
  OneRow<Bfloat16> first, second;

  void Move(int64_t elements) {
    first.Move(elements);
    second.Move(elements);
  }
  Pairs Weights(int64_t at) const { return PairsOfFloats(first.Weights(at), second.Weights(at)); }
  Pairs Source(int64_t at, bool outside) const {
    const Bfloat16* const zeros = kZeros<Bfloat16>;
    return InterleavePairs(outside ? zeros : first.row + at, outside ? zeros : second.row + at);
  }
  static Vec Dot(Vec acc, Pairs x, Pairs w) { return DotPairs(acc, x, w); }
};
struct LastRow : OneRow<Bfloat16> {
  Pairs Weights(int64_t at) const { return PairsOfFloats(Load(weights + at), Zero()); }
  Pairs Source(int64_t at, bool outside) const {
    return LoadSingles(outside ? kZeros<Bfloat16> : row + at);
  }
  static Vec Dot(Vec acc, Pairs x, Pairs w) { return DotPairs(acc, x, w); }
};

#endif

// Sums that a bound follows, or swish where a block is one vector, go from registers to a dst of
// bfloat16; all others by rows.
struct Bfloat16s {
  using Src = Bfloat16;

  template <int kPx, typename Add>
  static BD_INLINE void Tile(const DepthwiseArgs& a, int64_t p0, void* dst, Add&& add) {
    const TileEpilogue& e = a.epilogue;
    const InRegisters<float, 1> in_registers(e);
    const bool silu = e.silu && !e.clamp && e.acc_in == nullptr && e.valid_lanes == kBlock &&
                      e.tensors.dst.dtype == DataType::bf16;
    alignas(64) float sums[kPx * kBlock];
    for (int v = 0; v < kBlock; v += kLanes) {
      Accumulators<1, kPx, 1> tile;
      tile.Begin(e.bias == nullptr ? nullptr : e.bias + v);
      AddRows(a, v, tile.acc, add);
      Bfloat16* const to = static_cast<Bfloat16*>(dst) + v;
      if (in_registers.applies()) {
        in_registers.Finish(tile.acc, 0, reinterpret_cast<char*>(to));
        continue;
      }
      if constexpr (kVecsPerBlock == 1) {
        if (silu && StoreSilu(tile.acc, to, 0)) return;
      }
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) Store(sums + p * kBlock + v, tile.acc[p][0]);
    }
    if (!in_registers.applies()) Finish(a, p0, kPx, sums, dst);
  }

  static void Run(TileFn tile, const DepthwiseArgs& a, int64_t p0, int64_t) {
    tile(a, p0, reinterpret_cast<char*>(a.dst) + p0 * kBlock * a.epilogue.tensors.dst_bytes);
  }

 private:
#if defined(BD_AVX512_BF16)
  // Two rows at once, whichever of the window's are there, and the last of an odd number.
  template <typename Acc, typename Add>
  static BD_INLINE void AddRows(const DepthwiseArgs& a, int v, Acc& acc, Add&& add) {
    OneRow<Src> waits = {};
    const float* w = a.weights + v;
    for (int64_t h = 0; h < a.kh; ++h, w += a.kw * kBlock) {
      if (a.rows[h] == nullptr) continue;
      const OneRow<Src> row = {reinterpret_cast<const Src*>(a.rows[h]) + v, w};
      if (waits.row == nullptr) {
        waits = row;
      } else {
        add(acc, TwoRows{waits, row});
        waits.row = nullptr;
      }
    }
    if (waits.row != nullptr) add(acc, LastRow{waits});
  }
#else
  template <typename Acc, typename Add>
  static BD_INLINE void AddRows(const DepthwiseArgs& a, int v, Acc& acc, Add&& add) {
    const float* w = a.weights + v;
    for (int64_t h = 0; h < a.kh; ++h, w += a.kw * kBlock) {
      const Src* const row = reinterpret_cast<const Src*>(a.rows[h]);
      if (row != nullptr) add(acc, OneRow<Src>{row + v, w});
    }
  }
#endif

  [[gnu::noinline]] static void Finish(const DepthwiseArgs& a, int64_t p0, int64_t px, float* sums,
                                       void* dst) {
    TileEpilogue e = a.epilogue;
    e.Advance(p0);
    FinishByRows<float>(e, {sums, px, 1}, dst);
  }
};

void Row(const DepthwiseArgs& a) { RunTiles<Bfloat16s>(a); }

}  // namespace

constexpr DepthwiseBf16Kernels kDepthwiseBf16Kernels = {Row};

}  // namespace bd::BD_ISA
