// Contract of the register tiles of bfloat16 and of bytes, whose A and B lie in dwords: two numbers
// of 16 bits or four of 8, neighbours along K.
//
// They are tiles of gemm_kernel.h that read a dword wherever those of float32 read a float: tap
// lengths count dwords of A, tap_offsets bytes, px_stride units of as many bytes as the caller
// says, and a panel is [dword of K][block][16 columns]. K is whole in a tile; sums stay in
// registers.
//
//   bfloat16   sums in float32: VDPBF16PS, or two multiply-adds of widened numbers
//   bytes      unsigned A by signed B, sums in int32, exact on every ISA: VPDPBUSD, or VPMADDWD of
//              widened numbers: the tile widens them, or reads what was widened before, in words of
//              16 bits (`words`). They begin at - zero_point * (the column's sum).
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/core/gemm/tiles/gemm_kernel.h"

namespace bd {

// A row of A as it is multiplied: `count` numbers at src, zeros after them up to a whole dword.
// bfloat16 may lie where its floats did.
//   bfloat16   from bf16 or f32
//   bytes      from u8, or s8, which become q + 128; or from f32, which become
//              round(x / *scale) + 128 where *scale = (max |x| + 1e-7) / 127; `factors`, if not
//              null, are what x is multiplied by before
struct LowPrecisionRow {
  DataType type;
  const void* src;
  int64_t count;
  float* dst;
  float* scale;
  const float* factors;
};

struct LowPrecisionKernels {
  int tile_pixels;  // rows the widest tile has; panels are those of GemmKernels
  TileKernel tile[kMaxTileBlocks][kMaxTilePixels];
  void (*row)(const LowPrecisionRow&);
};

struct Bf16TileKernels : LowPrecisionKernels {
  // With C the sums from 0 on: float32, [block][row][16]. Null without AVX512_BF16.
  TileKernel sums[kMaxTileBlocks][kMaxTilePixels];
};
struct Int8TileKernels : LowPrecisionKernels {
  LowPrecisionKernels words;  // their rows are from u8
  // Of words, with C the sums from 0 on: int32, modulo 2^32, [block][row][16].
  TileKernel word_sums[kMaxTileBlocks][kMaxTilePixels];
};

BD_KERNEL_TABLE_OF(Bf16TileKernels, generic, avx2, avx512, avx512_bf16)
BD_KERNEL_TABLE_OF(Int8TileKernels, generic, avx2, avx2_vnni, avx512, avx512_vnni)

}  // namespace bd
