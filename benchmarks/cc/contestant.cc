#include "benchmarks/cc/contestant.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/cc/machine.h"

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

Footprint FootprintOf(const std::string& memory, const std::vector<Shape>& network, int threads) {
  const Caches caches = DetectCaches();
  if (memory == "hot") return {};
  if (memory == "cold") return {2 * caches.l3_bytes, 2 * caches.l3_bytes};
  int64_t weights = 0;
  for (const Shape& s : network) weights += 4 * s.count * s.weights_floats();
  return {std::min(weights, 2 * caches.l3_bytes), threads * caches.l2_bytes};
}

Problem MakeProblem(const Shape& shape, const Footprint& footprint) {
  // The number of copies of `floats` that fill `bytes` before the first one comes back.
  const auto copies = [](int64_t bytes, int64_t floats) {
    return std::max<int64_t>(1, (bytes + 4 * floats - 1) / (4 * floats));
  };
  Problem problem = MakeProblem(shape);
  problem.weights_copies = copies(footprint.weights, shape.weights_floats());
  problem.activation_copies =
      copies(footprint.activations, shape.src_floats() + shape.dst_floats());
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
