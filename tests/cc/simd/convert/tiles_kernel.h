// The tiles of cc/simd/convert/tiles.h, for the tests.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/cpu/tile_registers.h"

namespace bd {

// Three tiles of a configuration are loaded from 16 rows of 64 bytes each, tile 0 += tile 1 times
// tile 2, and all of them are stored to where they came from, as far as they are there.
struct TilesKernels {
  void (*multiply)(const TileConfig& config, bool bytes, uint8_t (*tiles)[16][64]);
  // What the program must not do: tile 3 is not in `config`.
  void (*load_missing)(const TileConfig& config, const uint8_t* from);
};

BD_KERNEL_TABLE_OF(TilesKernels, generic, avx512_amx)

}  // namespace bd
