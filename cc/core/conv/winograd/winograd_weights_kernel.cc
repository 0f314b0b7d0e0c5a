// Weights into Winograd's domain, 16 output channels side by side. The lanes are loops over arrays
// of double that the compiler makes vectors of: 16 of them are 4 to 8 registers.
#include "cc/core/conv/winograd/winograd_kernel.h"

namespace bd::BD_ISA {
namespace {

constexpr int kWidth = 16;

// acc += factor * x, lane by lane.
inline void AddScaled(double factor, const double* x, double* acc) {
  for (int i = 0; i < kWidth; ++i) acc[i] += factor * x[i];
}

void Transform(const WinogradWeightsArgs& a) {
  const WinogradAxis &h = *a.h, &w = *a.w;
  alignas(64) double taps[kMaxTaps][kMaxTaps][kWidth];
  for (int k = 0; k < h.taps; ++k) {
    for (int j = 0; j < w.taps; ++j) {
      const float* from = a.taps[k * w.taps + j];
      double* to = taps[k][j];
      if (from != nullptr && a.lanes == kWidth) {
        for (int i = 0; i < kWidth; ++i) to[i] = from[i];
        continue;
      }
      for (int i = 0; i < kWidth; ++i) to[i] = from != nullptr && i < a.lanes ? from[i] : 0.;
    }
  }
  for (int r = 0; r < h.alpha; ++r) {
    alignas(64) double row[kMaxTaps][kWidth];  // of G_h w
    for (int j = 0; j < w.taps; ++j) {
      for (int i = 0; i < kWidth; ++i) row[j][i] = 0.;
      for (int k = 0; k < h.taps; ++k) AddScaled(h.g[r][k], taps[k][j], row[j]);
    }
    for (int c = 0; c < w.alpha; ++c) {
      alignas(64) double sum[kWidth] = {};
      for (int k = 0; k < w.taps; ++k) AddScaled(w.g[c][k], row[k], sum);
      float* out = a.out + (r * w.alpha + c) * a.plane_stride;
      for (int i = 0; i < kWidth; ++i) out[i] = static_cast<float>(sum[i]);
    }
  }
}

}  // namespace

constexpr WinogradWeightsKernels kWinogradWeightsKernels = {Transform};

}  // namespace bd::BD_ISA
