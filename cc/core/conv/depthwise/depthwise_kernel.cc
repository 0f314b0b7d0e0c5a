// Depthwise rows of floats. Compiled once per ISA; the contract is depthwise_kernel.h.
#include "cc/core/conv/depthwise/depthwise_kernel.h"

#include "cc/core/conv/depthwise/depthwise_rows_inl.h"
#include "cc/core/gemm/tiles/epilogue_inl.h"

namespace bd::BD_ISA {
namespace {

struct Floats {
  using Src = float;

  // All of it, where a block is one vector; of others one vector after the other, without a
  // program.
  template <int kPx, typename Add>
  static BD_INLINE void Tile(const DepthwiseArgs& a, int64_t p0, void* to, Add&& add) {
    float* const dst = static_cast<float*>(to);
    const auto add_rows = [&](auto& acc, int v) {
      const float* w = a.weights + v;
      for (int64_t h = 0; h < a.kh; ++h, w += a.kw * kBlock) {
        if (a.rows[h] != nullptr) add(acc, OneRow<float>{a.rows[h] + v, w});
      }
    };
    if constexpr (kVecsPerBlock == 1) {
      Accumulators<1, kPx> tile;
      TileEpilogue e = a.epilogue;
      e.Advance(p0);
      tile.Start(e);
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) PrefetchToWrite(dst + (kAhead + p) * kBlock);
      add_rows(tile.acc, 0);
      tile.FinishBlocked(e, dst);
    } else {
      const TileEpilogue& e = a.epilogue;
      for (int v = 0; v < kBlock; v += kLanes) {
        Accumulators<1, kPx, 1> tile;
        tile.Begin(e.bias == nullptr ? nullptr : e.bias + v);
        add_rows(tile.acc, v);
        const float* const in = static_cast<const float*>(e.acc_in);
        tile.End(e, in == nullptr ? nullptr : in + p0 * kBlock + v, dst + v);
      }
    }
  }

  // A tile, and the program that it leaves alone; swish follows for the whole row.
  static void Run(TileFn tile, const DepthwiseArgs& a, int64_t p0, int64_t px) {
    const TileEpilogue& e = a.epilogue;
    float* dst = a.dst + p0 * kBlock;
    if (kVecsPerBlock == 1 || e.program == nullptr || SiluFollows(e)) return tile(a, p0, dst);
    alignas(64) float sums[kPixels * kBlock];
    tile(a, p0, sums);
    e.program->kernels->blocked(*e.program, sums, dst, static_cast<int>(px),
                                e.dst_offset + p0 * kBlock, e.channel, e.sample_channel,
                                e.valid_lanes);
  }
};

void Row(const DepthwiseArgs& a) {
  RunTiles<Floats>(a);
  if (SiluFollows(a.epilogue)) a.epilogue.program->kernels->silu(a.dst, a.ow * kBlock);
}

}  // namespace

constexpr DepthwiseKernels kDepthwiseKernels = {Row};

}  // namespace bd::BD_ISA
