#include "cc/core/gemm/gemm_panels.h"

#include "cc/core/gemm/tiles/amx_tile_kernel.h"
#include "cc/core/gemm/tiles/fip_kernel.h"

namespace bd {
namespace {

// Those of AMX, by blocks - 1; or null.
const TileKernel* AmxTilesOf(Isa isa, TileFamily family) {
  if (isa < Isa::kAvx512Amx) return nullptr;
  const AmxTileKernels& amx = AmxTileKernelsFor(isa);
  switch (family) {
    case TileFamily::kInt8:
      return amx.bytes;
    case TileFamily::kBf16:
      return amx.bfloat16;
    case TileFamily::kBf16Sums:
      return amx.bfloat16_sums;
    default:
      return nullptr;
  }
}

}  // namespace

const TileKernel* TilesOf(Isa isa, TileFamily family, int64_t blocks, int32_t valid_lanes) {
  if (const TileKernel* amx = AmxTilesOf(isa, family)) return amx + blocks - 1;
  const GemmKernels& kernels = GemmKernelsFor(isa);
  const bool half = valid_lanes <= kBlock / 2;
  switch (family) {
    case TileFamily::kBlocked:
      return (half ? kernels.half_tile : kernels.tile)[blocks - 1];
    case TileFamily::kStrided:
      return kernels.strided_tile[blocks - 1];
    case TileFamily::kFip: {
      const FipKernels& fip = FipKernelsFor(isa);
      return (half ? fip.half_tile : fip.tile)[blocks - 1];
    }
    case TileFamily::kBf16:
      return Bf16TileKernelsFor(isa).tile[blocks - 1];
    case TileFamily::kInt8:
      return Int8TileKernelsFor(isa).tile[blocks - 1];
    case TileFamily::kWords:
      return Int8TileKernelsFor(isa).words.tile[blocks - 1];
    case TileFamily::kWordSums:
      return Int8TileKernelsFor(isa).word_sums[blocks - 1];
    case TileFamily::kBf16Sums:
      return Bf16TileKernelsFor(isa).sums[blocks - 1];
  }
  return nullptr;
}

int64_t RowsTogether(Isa isa, TileFamily family, int64_t blocks) {
  return AmxTilesOf(isa, family) ? kAmxRows : TilePixels(isa, family, blocks);
}

int64_t TilePixels(Isa isa, TileFamily family, int64_t blocks) {
  if (AmxTilesOf(isa, family)) return 1;
  if (family == TileFamily::kFip) return FipKernelsFor(isa).tile_pixels;
  if (IsBfloat16(family)) return Bf16TileKernelsFor(isa).tile_pixels;
  if (family == TileFamily::kInt8) return Int8TileKernelsFor(isa).tile_pixels;
  if (family == TileFamily::kWords || family == TileFamily::kWordSums) {
    return Int8TileKernelsFor(isa).words.tile_pixels;
  }
  const GemmKernels& kernels = GemmKernelsFor(isa);
  return blocks > kernels.tile_blocks ? kernels.joined_tile_pixels : kernels.tile_pixels;
}

void FipPanel::Bind(Isa isa, const FipCall& call, int64_t column, int64_t columns, int64_t rows,
                    TileArgs* a) {
  const float* const scale = a->epilogue.scale;
  for (int64_t i = 0; i < columns; ++i) {
    unscale[i] = call.unscale[column + i] * call.of_sums * (scale != nullptr ? scale[i] : 1.f);
    terms[i] = call.column_terms[column + i] * call.of_weights * call.of_weights;
  }
  a->fip = {call.terms, terms};
  a->epilogue.scale = unscale;
  if (call.of_weights == 1.f) return;
  FipKernelsFor(isa).scale(a->weights, call.of_weights, rows * columns, call.scaled);
  a->weights = call.scaled;
}

int64_t RowsInCache(int64_t stride_bytes) {
  constexpr int64_t kWayBytes = 4096, kWays = 7;  // and one for weights
  // Their greatest common divisor is a power of two, since a way is.
  const int64_t bytes = stride_bytes | kWayBytes;
  return kWays * (kWayBytes >> __builtin_ctzll(bytes));
}

}  // namespace bd
