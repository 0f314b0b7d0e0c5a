// The definition of rnn, for tests.
#pragma once

#include <cmath>
#include <vector>

#include "cc/core/rnn/rnn.h"

namespace bd {
namespace {

double Activate(RnnActivation activation, double x) {
  switch (activation) {
    case RnnActivation::kTanh:
      return std::tanh(x);
    case RnnActivation::kLogistic:
      return 1. / (1. + std::exp(-x));
    case RnnActivation::kRelu:
      return x > 0. ? x : 0.;
    case RnnActivation::kHardLogistic:
      return std::fmin(6., std::fmax(0., x + 3.)) / 6.;
    default:
      return x;
  }
}

}  // namespace

// The definition in double, on plain weights.
inline void RnnRef(const RnnDesc& d, const RnnBuffers& b, const float* kernel,
                   const float* recurrent_kernel) {
  const int64_t units = d.units, gates = d.gates(), columns = gates * units;
  const auto f = [&](double x) { return Activate(d.activation, x); };
  const auto g = [&](double x) { return Activate(d.recurrent_activation, x); };
  const auto bias = [&](int64_t row, int64_t column) {
    return b.bias == nullptr ? 0. : b.bias[row * columns + column];
  };
  std::vector<double> biases(columns), zeros(columns);
  for (int64_t column = 0; column < columns; ++column) biases[column] = bias(0, column);
  for (int64_t n = 0; n < d.batch; ++n) {
    std::vector<double> h(units), c(units), out(units);
    for (int64_t u = 0; u < units; ++u) {
      if (b.h0 != nullptr) h[u] = b.h0[n * units + u];
      if (b.c0 != nullptr) c[u] = b.c0[n * units + u];
    }
    for (int64_t s = 0; s < d.steps; ++s) {
      const int64_t t = d.InputStep(s);
      const bool counts = (b.mask.data == nullptr || *b.mask.At(n, t)) &&
                          (b.lengths == nullptr || t < b.lengths[n]);
      // `sums` of all columns and a row times a matrix; x W + b, and h U.
      const auto add = [&](std::vector<double> sums, const auto* row, int64_t count,
                           const float* matrix) {
        for (int64_t k = 0; k < count; ++k) {
          for (int64_t i = 0; i < columns; ++i) sums[i] += double{row[k]} * matrix[k * columns + i];
        }
        return sums;
      };
      const std::vector<double> x_w = add(biases, b.src.At(n, t), d.inputs, kernel);
      const std::vector<double> h_u = add(zeros, h.data(), units, recurrent_kernel);
      std::vector<double> next(units), next_c(c);
      if (d.cell == RnnCell::kGru) {
        const bool after = d.reset_after;
        std::vector<double> z(units), r(units), reset(units);
        for (int64_t u = 0; u < units; ++u) {
          const auto gate = [&](int64_t column) {
            return g(x_w[column] + h_u[column] + (after ? bias(1, column) : 0.));
          };
          z[u] = gate(u);
          r[u] = gate(units + u);
          reset[u] = r[u] * h[u];
        }
        const std::vector<double> reset_u = add(zeros, reset.data(), units, recurrent_kernel);
        for (int64_t u = 0; u < units; ++u) {
          const int64_t column = 2 * units + u;
          const double share = after ? r[u] * (h_u[column] + bias(1, column)) : reset_u[column];
          next[u] = z[u] * h[u] + (1. - z[u]) * f(x_w[column] + share);
        }
      } else {
        for (int64_t u = 0; u < units; ++u) {
          const auto sum = [&](int64_t gate) {
            return x_w[gate * units + u] + h_u[gate * units + u];
          };
          if (d.cell == RnnCell::kVanilla) {
            next[u] = f(sum(0));
            continue;
          }
          next_c[u] = g(sum(1)) * c[u] + g(sum(0)) * f(sum(2));
          next[u] = g(sum(3)) * f(next_c[u]);
        }
      }
      if (counts) {
        h = next;
        c = next_c;
        out = h;
      } else if (d.zeros_masked) {
        out.assign(units, 0.);
      }
      if (!d.sequences && s < d.steps - 1) continue;
      float* dst = b.dst.At(n, d.sequences ? d.OutputStep(s) : 0);
      for (int64_t u = 0; u < units; ++u) dst[u] = static_cast<float>(out[u]);
    }
    for (int64_t u = 0; u < units; ++u) {
      if (b.hn != nullptr) b.hn[n * units + u] = static_cast<float>(h[u]);
      if (b.cn != nullptr) b.cn[n * units + u] = static_cast<float>(c[u]);
    }
  }
}

}  // namespace bd
