// Depthwise rows of bfloat16. Compiled once per ISA; the contract is depthwise_kernel.h.
#include "cc/core/conv/depthwise/depthwise_bf16_kernel.h"

#include "cc/core/conv/depthwise/depthwise_rows_inl.h"
#include "cc/core/gemm/tiles/epilogue_inl.h"
#include "cc/core/gemm/tiles/narrow_epilogue_inl.h"

namespace bd::BD_ISA {
namespace {

// Sums that a bound follows, or swish where a block is one vector, go from registers to a dst of
// bfloat16; all others by way of the stack.
struct Bfloat16s {
  using Src = Bfloat16;

  template <int kPx, typename Add>
  static inline __attribute__((always_inline)) void Tile(const DepthwiseArgs& a, int64_t p0,
                                                         void* dst, Add&& add) {
    const TileEpilogue& e = a.epilogue;
    const bool plain = a.narrow->dst.dtype == DataType::bf16 && e.acc_in == nullptr &&
                       e.valid_lanes == kBlock && e.program == nullptr;
    alignas(64) float sums[kPx * kBlock];
    for (int v = 0; v < kBlock; v += kLanes) {
      Accumulators<1, kPx, 1> tile;
      tile.Begin(e.bias == nullptr ? nullptr : e.bias + v);
      const float* w = a.weights + v;
      for (int64_t h = 0; h < a.kh; ++h, w += a.kw * kBlock) {
        const Src* row = reinterpret_cast<const Src*>(a.rows[h]);
        if (row != nullptr) add(tile.acc, row + v, w);
      }
      if (plain) {
        const Vec lo = Set1(e.clamp ? e.lo : -__builtin_inff());
        const Vec hi = Set1(e.clamp ? e.hi : __builtin_inff());
        BD_UNROLL
        for (int p = 0; p < kPx; ++p) {
          StoreAs(static_cast<Bfloat16*>(dst) + p * kBlock + v, Min(hi, Max(lo, tile.acc[p][0])));
        }
      } else {
        BD_UNROLL
        for (int p = 0; p < kPx; ++p) Store(sums + p * kBlock + v, tile.acc[p][0]);
      }
    }
    if (!plain) Finish(a, p0, kPx, sums, dst);
  }

  static void Run(TileFn tile, const DepthwiseArgs& a, int64_t p0, int64_t) {
    tile(a, p0, reinterpret_cast<char*>(a.dst) + p0 * kBlock * a.narrow->dst_bytes);
  }

 private:
  [[gnu::noinline]] static void Finish(const DepthwiseArgs& a, int64_t p0, int64_t px, float* sums,
                                       void* dst) {
    TileArgs tile = {};
    tile.narrow = a.narrow;
    TileEpilogue e = a.epilogue;
    e.dst_offset += p0 * kBlock;
    if (e.acc_in != nullptr) {
      const char* in = reinterpret_cast<const char*>(e.acc_in);
      e.acc_in = reinterpret_cast<const float*>(in + p0 * kBlock * a.narrow->sum_bytes);
    }
    FinishNarrow<float>(tile, e, {sums, px, 1}, dst);
  }
};

void Row(const DepthwiseArgs& a) { RunTiles<Bfloat16s>(a); }

constexpr DepthwiseBf16Kernels kTable = {Row};

}  // namespace

const DepthwiseBf16Kernels& GetDepthwiseBf16Kernels() { return kTable; }

}  // namespace bd::BD_ISA
