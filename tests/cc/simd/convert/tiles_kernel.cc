#include "tests/cc/simd/convert/tiles_kernel.h"

#if defined(BD_AMX)
#include "cc/simd/convert/tiles.h"
#endif

namespace bd::BD_ISA {

#if defined(BD_AMX)

namespace {

void Multiply(const TileConfig& config, bool bytes, uint8_t (*tiles)[16][64]) {
  TileRegisters registers(config);
  registers.Load<0>(tiles[0], 64);
  registers.Load<1>(tiles[1], 64);
  registers.Load<2>(tiles[2], 64);
  if (bytes) {
    registers.DotBytes<0, 1, 2>();
  } else {
    registers.DotBfloat16<0, 1, 2>();
  }
  registers.Store<0>(tiles[0], 64);
  registers.Store<1>(tiles[1], 64);
  registers.Store<2>(tiles[2], 64);
}

void LoadMissing(const TileConfig& config, const uint8_t* from) {
  TileRegisters registers(config);
  registers.Load<3>(from, 64);
}

}  // namespace

constexpr TilesKernels kTilesKernels = {Multiply, LoadMissing};

#else

constexpr TilesKernels kTilesKernels = {};

#endif

}  // namespace bd::BD_ISA
