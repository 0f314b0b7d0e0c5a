// AMX: eight registers, "tiles", of up to 16 rows of 64 bytes, and products of them.
//
// Own assembly, since the macros of GCC 12 take no template arguments, and do not tell the compiler
// of the memory that they read and write. Only kernels for avx512_amx, and what looks whether they
// may run, include this; cc/simd/convert/tiles.h has what stands for it in tests.
#pragma once

#include <cstdint>

namespace bd {

// What LDTILECFG reads. A tile without rows is not there.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr void Set(int tile, int of_rows, int of_row_bytes) {
    rows[tile] = static_cast<uint8_t>(of_rows);
    row_bytes[tile] = static_cast<uint16_t>(of_row_bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

namespace {

// The registers of this core, from when they are configured until the object goes. Released, they
// are nothing that a switch of threads has to save.
class TileRegisters {
#define BD_TILES inline __attribute__((always_inline))
 public:
  explicit BD_TILES TileRegisters(const TileConfig& config) { Configure(config); }
  BD_TILES ~TileRegisters() { asm volatile("tilerelease"); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

  // All tiles are zero then.
  BD_TILES void Configure(const TileConfig& config) {
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  template <int t>
  BD_TILES void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(t));
  }
  // Rows are `stride` bytes apart.
  template <int t>
  BD_TILES void Load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(t) : "memory");
  }
  template <int t>
  BD_TILES void Store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(t) : "memory");
  }
  // Tile c += a b in int32, where a row of a has dwords of unsigned bytes, and row k of b what
  // dword k meets in each column, signed bytes.
  template <int c, int a, int b>
  BD_TILES void DotBytes() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
  // The same of pairs of bfloat16, in float32: those of first numbers are added up, those of second
  // ones too, then both sums, then that and c. Denormal numbers are zero.
  template <int c, int a, int b>
  BD_TILES void DotBfloat16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
#undef BD_TILES
};

}  // namespace
}  // namespace bd
