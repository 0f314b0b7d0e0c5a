#include "benchmarks/cc/contestant.h"

#include <algorithm>
#include <cmath>

namespace bd::layers {
namespace {

// Uniform in [-scale, scale): fast, the same everywhere, never denormal.
std::vector<float> Uniform(int64_t floats, float scale, uint32_t seed) {
  std::vector<float> values(floats);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = scale * (static_cast<float>(seed >> 9) / (1 << 22) - 1.f);
  }
  return values;
}

}  // namespace

Problem MakeProblem(const Shape& shape) {
  Problem problem;
  problem.shape = shape;
  problem.src = Uniform(shape.src_floats(), 1.f, 1);
  const float terms = static_cast<float>(shape.weights_floats() / shape.oc);
  problem.weights = Uniform(shape.weights_floats(), 3.f / std::sqrt(terms), 2);
  problem.bias = Uniform(shape.oc, 0.5f, 3);
  return problem;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    squares += static_cast<double>(b[i]) * b[i];
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest == 0 ? 0 : largest / std::sqrt(squares / a.size());
}

}  // namespace bd::layers
