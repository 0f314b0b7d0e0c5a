// Runs of tiles; included by the per-ISA kernels only.
#pragma once

#include "cc/core/gemm/tiles/gemm_kernel.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Neighbouring tiles by a kernel that makes one, of pixels 16 floats apart.
template <void (*kTile)(const TileArgs&), int kPx>
void EachTile(const TileArgs& all) {
  TileArgs a = all;
  for (; a.tiles > 0; --a.tiles) {
    kTile(a);
    a.src += kPx * kBlock;
    a.dst += kPx * a.epilogue.dst_step;
    a.prefetch += (a.taps * kBlock + a.tail_taps * a.tail_length) * a.prefetch_step;
    if (a.fip.pixel_terms != nullptr) a.fip.pixel_terms += kPx;
    a.epilogue.Advance(kPx);
  }
}

}  // namespace
}  // namespace bd::BD_ISA
