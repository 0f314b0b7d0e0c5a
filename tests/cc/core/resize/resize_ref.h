// The definition of resizing, for tests.
#pragma once

#include <algorithm>
#include <cmath>

#include "cc/core/resize/resize.h"

namespace bd {
namespace {

float Coordinate(const ResizeDesc& d, int64_t o, int64_t in, int64_t out) {
  const float i = static_cast<float>(in), n = static_cast<float>(out), x = static_cast<float>(o);
  const bool nearest = d.kind == ResizeKind::kNearest;
  switch (d.coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return nearest ? (x + 0.5f) * (i / n) : (x + 0.5f) * (i / n) - 0.5f;
    case ResizeCoordinates::kAsymmetric:
      return x * (i / n);
    case ResizeCoordinates::kAlignCorners:
      return out > 1 ? x * ((i - 1) / (n - 1)) : 0.f;
  }
  return 0.f;
}

int64_t Inside(float x, int64_t size) {
  return std::clamp<int64_t>(static_cast<int64_t>(x), 0, size - 1);
}

}  // namespace

// The definition of float32, one element at a time.
inline void ResizeRef(const ResizeDesc& d, const float* src, float* dst) {
  const TensorView &from = d.src, &to = d.dst;
  const bool corners = d.coordinates == ResizeCoordinates::kAlignCorners;
  for (int64_t n = 0; n < to.n(); ++n) {
    for (int64_t b = 0; b < to.blocks(); ++b) {
      for (int64_t p = 0; p < to.pixels(); ++p) {
        const float y = Coordinate(d, p / to.w(), from.h(), to.h());
        const float x = Coordinate(d, p % to.w(), from.w(), to.w());
        for (int64_t lane = 0; lane < 16; ++lane) {
          const auto at = [&](int64_t h, int64_t w) {
            return src[from.offset(n, b, h * from.w() + w) + lane];
          };
          float& result = dst[to.offset(n, b, p) + lane];
          if (d.kind == ResizeKind::kNearest) {
            const auto whole = [&](float v) { return corners ? std::round(v) : std::floor(v); };
            result = at(Inside(whole(y), from.h()), Inside(whole(x), from.w()));
            continue;
          }
          const int64_t h0 = Inside(std::floor(y), from.h()), h1 = Inside(std::ceil(y), from.h());
          const int64_t w0 = Inside(std::floor(x), from.w()), w1 = Inside(std::ceil(x), from.w());
          const float down = y - std::floor(y), across = x - std::floor(x);
          const float above = at(h0, w0) + (at(h0, w1) - at(h0, w0)) * across;
          const float below = at(h1, w0) + (at(h1, w1) - at(h1, w0)) * across;
          result = above + (below - above) * down;
        }
      }
    }
  }
}

}  // namespace bd
