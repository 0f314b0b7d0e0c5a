// A layer to compute, and the two contestants that compute it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/cc/shapes.h"
#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/conv.h"

namespace bd::layers {

// A convolution with bias and ReLU, on plain data.
struct Problem {
  Shape shape;
  std::vector<float> src;      // [n, ih, iw, ic]
  std::vector<float> weights;  // [kh, kw, ic / groups, oc]
  std::vector<float> bias;     // [oc]
  // The number of copies of each tensor that a contestant uses in turn.
  int64_t weights_copies = 1, activation_copies = 1;
};

// Random data; the result's values are of order 1.
Problem MakeProblem(const Shape& shape);

class Contestant {
 public:
  virtual ~Contestant() = default;
  // The name of the implementation that it chose.
  virtual std::string algorithm() const = 0;
  // Computes the layer once, with the next copies.
  virtual void Run() = 0;
  // The result of the last Run(), as [n, oh, ow, oc].
  virtual std::vector<float> Result() const = 0;
};

// Bytes of all weights, and of all activations, that a contestant goes through before it comes back
// to the same: by "network" those of a network's weights, or twice the L3 cache where that is less,
// and of all L2 caches; by "cold" both twice the L3 cache; by "hot" none.
struct Footprint {
  int64_t weights = 0, activations = 0;
};
Footprint FootprintOf(const std::string& memory, const std::vector<Shape>& network, int threads);
// Random data, the result's values being of order 1, and as many copies as the footprint says.
Problem MakeProblem(const Shape& shape, const Footprint& footprint);

// `pool` must outlive the result. All throw std::exception if they cannot compute the layer. By a
// row of the table of algorithms, where it is not null, which must apply.
std::unique_ptr<Contestant> MakeOurs(const Problem& problem, Isa isa, ConvAlgorithm algorithm,
                                     ThreadPool& pool, const Algorithm* row = nullptr);
// What MakeOurs asks for.
ConvDesc DescOf(const Shape& shape, ConvAlgorithm algorithm);
std::unique_ptr<Contestant> MakeOnednn(const Problem& problem);

// Sets the threads and the best ISA of oneDNN, before its first use. Returns its version.
std::string SetUpOnednn(Isa isa, int threads);

// Largest |a - b|, as a multiple of the root mean square of b.
double LargestDifference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace bd::layers
