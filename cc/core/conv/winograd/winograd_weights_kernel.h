// Contract between packing and the kernels that take weights into Winograd's domain.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

constexpr int kMaxAlpha = 9, kMaxTaps = 7;  // of an axis of kWinogradTransforms

// G of one axis, alpha x taps; the last row is the point at infinity.
struct WinogradAxis {
  int taps, alpha;
  double g[kMaxAlpha][kMaxTaps];
};

// U[xi] = (G_h w G_w^T)[xi] for one source channel and `lanes` (at most 16) output channels, in
// double, rounded once; lanes behind them are zero.
struct WinogradWeightsArgs {
  const WinogradAxis *h, *w;
  const float* const* taps;  // [h->taps][w->taps] the first lane of each, or null: zeros
  int64_t lanes;
  float* out;  // [xi][plane_stride]: 16 floats of each plane
  int64_t plane_stride;
};

struct WinogradWeightsKernels {
  void (*transform)(const WinogradWeightsArgs&);
};

BD_KERNEL_TABLE(WinogradWeightsKernels)

}  // namespace bd
