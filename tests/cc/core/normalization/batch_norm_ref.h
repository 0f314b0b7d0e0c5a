// The definition of batch norm, for tests.
#pragma once

#include <algorithm>
#include <cmath>

#include "cc/core/normalization/batch_norm.h"

namespace bd {
namespace {

// Calls f(index) for all values of channel c.
template <typename F>
void ForChannel(const BatchNormDesc& d, int64_t c, F&& f) {
  for (int64_t i = 0; i < d.n; ++i) {
    for (int64_t p = 0; p < d.pixels; ++p) {
      f(((i * d.blocks() + c / 16) * d.pixels + p) * 16 + c % 16);
    }
  }
}

}  // namespace

inline void BatchNormRef(const BatchNormDesc& d, const BatchNormArgs& args) {
  const double count = static_cast<double>(d.n) * d.pixels;
  std::fill(args.dst, args.dst + d.n * d.blocks() * d.pixels * 16, 0.f);
  for (int64_t c = 0; c < d.channels; ++c) {
    double mean = 0, variance = 0;
    ForChannel(d, c, [&](int64_t i) { mean += args.src[i] / count; });
    ForChannel(d, c,
               [&](int64_t i) { variance += (args.src[i] - mean) * (args.src[i] - mean) / count; });
    args.mean[c] = static_cast<float>(mean);
    args.variance[c] = static_cast<float>(variance);
    ForChannel(d, c, [&](int64_t i) {
      const double h = (args.src[i] - mean) / std::sqrt(variance + d.epsilon);
      args.dst[i] = static_cast<float>(args.gamma[c] * h + args.beta[c]);
    });
  }
}

inline void BatchNormGradRef(const BatchNormDesc& d, const BatchNormGradArgs& args) {
  const double count = static_cast<double>(d.n) * d.pixels;
  std::fill(args.dsrc, args.dsrc + d.n * d.blocks() * d.pixels * 16, 0.f);
  for (int64_t c = 0; c < d.channels; ++c) {
    const double r = 1 / std::sqrt(double{args.variance[c]} + d.epsilon);
    const auto centred = [&](int64_t i) { return double{args.src[i]} - args.mean[c]; };
    const auto dy = [&](int64_t i) {
      if (args.clamp == BatchNormClamp::kNone) return args.ddst[i];
      const double y = args.gamma[c] * r * centred(i) + args.beta[c];
      const bool below = args.clamp == BatchNormClamp::kRelu || y < 6;
      return y > 0 && below ? args.ddst[i] : 0.f;
    };
    double dbeta = 0, dgamma = 0;
    ForChannel(d, c, [&](int64_t i) {
      dbeta += dy(i);
      dgamma += dy(i) * centred(i) * r;
    });
    args.dbeta[c] = static_cast<float>(dbeta);
    args.dgamma[c] = static_cast<float>(dgamma);
    ForChannel(d, c, [&](int64_t i) {
      args.dsrc[i] = static_cast<float>(
          args.gamma[c] * r * (dy(i) - dbeta / count - r * centred(i) * dgamma / count) +
          args.dmean[c] / count + 2 * centred(i) * args.dvariance[c] / count);
    });
  }
}

}  // namespace bd
