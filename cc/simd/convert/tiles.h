// Tiles of AMX, and what stands for them where the processor has none; included by kernels for
// avx512_amx only.
//
//   TileRegisters        configure, load, multiply, store: cc/base/cpu/tile_registers.h
//   JoinDwords(pieces, n, offset, to)  16 dwords at `to`, of n pieces that lie `offset` bytes
//                        after their places; zeros where there is no piece
#pragma once

#include "cc/base/cpu/tile_registers.h"
#include "cc/simd/vec.h"

#if defined(BD_EMULATED)
#include "cc/simd/convert/tiles_emulated.h"
#endif

namespace bd::BD_ISA {
namespace {

// `count` dwords at `at`, which are dwords from `lane` on of a row of a tile.
struct DwordPiece {
  const char* at;
  int lane, count;
};

#if defined(BD_EMULATED)

inline void JoinDwords(const DwordPiece* pieces, int n, int64_t offset, float* to) {
  __builtin_memset(to, 0, 64);
  for (int i = 0; i < n; ++i) {
    const size_t bytes = static_cast<size_t>(pieces[i].count) * sizeof(float);
    __builtin_memcpy(to + pieces[i].lane, pieces[i].at + offset, bytes);
  }
}

#else

// Lanes of a masked load that are not loaded may lie anywhere.
inline void JoinDwords(const DwordPiece* pieces, int n, int64_t offset, float* to) {
  __m512 row = _mm512_setzero_ps();
  for (int i = 0; i < n; ++i) {
    const auto lanes = static_cast<__mmask16>(((1u << pieces[i].count) - 1) << pieces[i].lane);
    const char* const first = pieces[i].at + offset - pieces[i].lane * 4;
    row = _mm512_mask_loadu_ps(row, lanes, first);
  }
  _mm512_store_ps(to, row);
}

#endif

}  // namespace
}  // namespace bd::BD_ISA
