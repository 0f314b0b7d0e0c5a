#include "cc/core/gemm/fip.h"

#include <algorithm>
#include <cmath>

#include "cc/core/gemm/gemm_panels.h"

namespace bd {
namespace {

// Sums in pairs round at most (r + 1 / r) / 2 times as much where the source's root mean
// square is r times the weights', so within a step, r <= 4, by a factor of about 2.
constexpr int kExponentStep = 4;
constexpr int kMaxExponent = 48;  // its square, twice, is still a float

float TwoTo(int exponent) { return std::ldexp(1.f, exponent); }

}  // namespace

// Of `count` numbers. Where all are zeros, what rounding leaves of the weights must vanish
// against the channels that have no pair.
int FipExponentOf(double squares, int64_t count) {
  if (count == 0 || !std::isfinite(squares)) return 0;
  if (squares == 0) return -kMaxExponent;
  constexpr double kMost = kMaxExponent / kExponentStep;
  const double steps = std::round(0.5 * std::log2(squares / count) / kExponentStep);
  return kExponentStep * static_cast<int>(std::clamp(steps, -kMost, kMost));
}

// The channel terms of `blocks` whole source blocks from `weights`, a row of `lanes` floats
// a source channel, added to `terms`.
void AddFipChannelTerms(const float* weights, int64_t lanes, int64_t taps, float* terms) {
  for (int64_t t = 0; t < taps; ++t, weights += kBlock * lanes) {
    for (const ChannelPair& pair : kChannelPairs) {
      const float* y = weights + pair.c * lanes;
      for (int64_t i = 0; i < lanes; ++i) terms[i] -= pair.sign * y[i] * y[lanes + i];
    }
  }
}

// Columns of [rows][lanes] times the power of two that brings each one's root mean square to
// about 2^exponent.
void ScaleFipColumns(int64_t rows, int64_t lanes, int exponent, float* weights, float* unscale) {
  for (int64_t i = 0; i < lanes; ++i) {
    double squares = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const double y = weights[r * lanes + i];
      squares += y * y;
    }
    if (squares == 0) {
      unscale[i] = 0.f;
      continue;
    }
    const double to_one = std::isfinite(squares) ? std::round(-0.5 * std::log2(squares / rows)) : 0;
    const int e = exponent + static_cast<int>(std::clamp(to_one, -60., 60.));
    unscale[i] = TwoTo(-e);
    for (int64_t r = 0; r < rows; ++r) weights[r * lanes + i] *= TwoTo(e);
  }
}

void PackFipPlane(int64_t channels, int64_t lanes, float* weights, float* unscale,
                  float* channel_terms) {
  ScaleFipColumns(channels, lanes, 0, weights, unscale);
  std::fill(channel_terms, channel_terms + lanes, 0.f);
  AddFipChannelTerms(weights, lanes, channels / kBlock, channel_terms);
}

float PrepareFipPlane(Isa isa, const FipSourceArgs& a, int64_t blocks) {
  const float squares = FipKernelsFor(isa).source_terms(a);
  if (squares == 0 && a.taps == blocks) return 0;
  const int exponent = FipExponentOf(squares, a.px * a.taps * kBlock);
  if (exponent == 0) return 1;
  const float down = TwoTo(-exponent);
  for (int64_t b = 0; b < blocks; ++b) {
    float* block = const_cast<float*>(a.src) + a.tap_offsets[b];
    FipKernelsFor(isa).scale({block, down, a.px * kBlock, block});
  }
  for (int64_t p = 0; p < a.px; ++p) a.terms[p] *= down * down;
  return TwoTo(exponent);
}

}  // namespace bd
