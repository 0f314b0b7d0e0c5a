// The tiles of cc/base/cpu/tile_registers.h as arrays. What the processor faults at stops the
// program: a configuration that is none, a tile that is not there, sizes that do not fit.
#pragma once

#include "cc/base/cpu/tile_registers.h"
#include "cc/simd/convert/bf16.h"
#include "cc/simd/convert/int8.h"

namespace bd::BD_ISA {
namespace {

// Of one row: dwords of a, each times a row of b, to sums.
using RowOfTile = uint8_t[64];
inline void AddBytes(const RowOfTile& a, const RowOfTile* b, int dwords, RowOfTile& sums) {
  auto* const at = reinterpret_cast<int32_t*>(sums);
  IVec sum = LoadInt(at);
  for (int k = 0; k < dwords; ++k) {
    sum = DotQuads(sum, SetQuad(a + 4 * k), LoadQuads(reinterpret_cast<const int8_t*>(b[k])));
  }
  StoreInt(at, sum);
}
inline void AddBfloat16(const RowOfTile& a, const RowOfTile* b, int dwords, RowOfTile& sums) {
  auto* const at = reinterpret_cast<float*>(sums);
  Vec first = Zero(), second = Zero();
  for (int k = 0; k < dwords; ++k) {
    const Pairs x = SetPair(reinterpret_cast<const Bfloat16*>(a + 4 * k));
    const Pairs w = LoadPairs(reinterpret_cast<const Bfloat16*>(b[k]));
    first = FlushedFma(x.first, w.first, first);
    second = FlushedFma(x.second, w.second, second);
  }
  const Vec one = Set1(1.f), sum = FlushedFma(first, one, second);
  Store(at, FlushedFma(sum, one, DenormalsAreZero(Load(at))));
}

class EmulatedTiles {
 public:
  explicit EmulatedTiles(const TileConfig& config) { Configure(config); }

  void Configure(const TileConfig& config) {
    uint8_t reserved = config.start_row;
    for (uint8_t byte : config.reserved) reserved |= byte;
    Require(config.palette == 1 && reserved == 0);
    for (int t = 0; t < 16; ++t) {
      const int rows = config.rows[t], bytes = config.row_bytes[t];
      Require(t < kTiles ? rows <= kRows && bytes <= kRowBytes && (rows == 0) == (bytes == 0)
                         : rows == 0 && bytes == 0);
      if (t < kTiles) tiles_[t] = {rows, bytes};
    }
  }
  template <int t>
  void Zero() {
    Require(tiles_[t].rows > 0);
    __builtin_memset(tiles_[t].row, 0, sizeof(tiles_[t].row));
  }
  template <int t>
  void Load(const void* from, int64_t stride) {
    Zero<t>();
    for (int r = 0; r < tiles_[t].rows; ++r) {
      __builtin_memcpy(tiles_[t].row[r], static_cast<const char*>(from) + r * stride,
                       static_cast<size_t>(tiles_[t].bytes));
    }
  }
  template <int t>
  void Store(void* to, int64_t stride) const {
    Require(tiles_[t].rows > 0);
    for (int r = 0; r < tiles_[t].rows; ++r) {
      __builtin_memcpy(static_cast<char*>(to) + r * stride, tiles_[t].row[r],
                       static_cast<size_t>(tiles_[t].bytes));
    }
  }
  template <int c, int a, int b>
  void DotBytes() {
    ForRows<c, a, b>(AddBytes);
  }
  template <int c, int a, int b>
  void DotBfloat16() {
    ForRows<c, a, b>(AddBfloat16);
  }

 private:
  static constexpr int kTiles = 8, kRows = 16, kRowBytes = sizeof(RowOfTile);

  static void Require(bool holds) {
    if (!holds) __builtin_trap();
  }
  // Sums of columns that are not there are of zeros.
  template <int c, int a, int b>
  void ForRows(void (*add)(const RowOfTile&, const RowOfTile*, int, RowOfTile&)) {
    static_assert(c != a && a != b && b != c);
    const Tile &of_a = tiles_[a], &of_b = tiles_[b];
    Tile& sums = tiles_[c];
    Require(of_a.rows > 0 && of_b.rows > 0 && sums.rows == of_a.rows);
    Require(sums.bytes == of_b.bytes && sums.bytes % 4 == 0);
    Require(of_a.bytes == 4 * of_b.rows);
    for (int r = 0; r < sums.rows; ++r) add(of_a.row[r], of_b.row, of_b.rows, sums.row[r]);
  }

  struct Tile {
    int rows = 0, bytes = 0;
    alignas(64) RowOfTile row[kRows] = {};
  };
  Tile tiles_[kTiles];
};

using TileRegisters = EmulatedTiles;

}  // namespace
}  // namespace bd::BD_ISA
