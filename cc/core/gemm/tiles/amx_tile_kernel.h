// Contract of the tiles of low_precision_kernel.h by AMX (cc/simd/convert/tiles.h), over the same
// packed weights: 16 dwords of K of a block of a panel are a tile.
//
// A kernel takes any number of neighbouring rows as TileArgs::tiles of one row each, and multiplies
// 32 of them at a time. It asks for no weights ahead: tiles are loaded long before they are
// multiplied.
#pragma once

#include "cc/core/gemm/tiles/gemm_kernel.h"

namespace bd {

constexpr int kAmxRows = 32;

// By blocks - 1; null without AMX.
struct AmxTileKernels {
  TileKernel bytes[kMaxTileBlocks], bfloat16[kMaxTileBlocks];
  TileKernel bfloat16_sums[kMaxTileBlocks];  // Bf16TileKernels::sums
};

BD_KERNEL_TABLE_OF(AmxTileKernels, generic, avx512_amx)

}  // namespace bd
