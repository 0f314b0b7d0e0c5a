// One recurrent layer with everything around it, in guarded buffers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cc/base/cpu/cpu_model.h"
#include "cc/base/memory/aligned_buffer.h"
#include "cc/core/rnn/rnn.h"
#include "tests/cc/convert_ref.h"
#include "tests/cc/core/rnn/rnn_ref.h"
#include "tests/cc/guarded_array.h"

namespace bd {

struct RnnKind {
  RnnCell cell;
  bool reset_after;
};
constexpr RnnKind kRnnKinds[] = {{RnnCell::kVanilla, true},
                                 {RnnCell::kLstm, true},
                                 {RnnCell::kGru, true},
                                 {RnnCell::kGru, false}};

inline RnnDesc DescribeRnn(RnnKind kind, int64_t batch, int64_t steps, int64_t inputs,
                           int64_t units) {
  RnnDesc d;
  d.cell = kind.cell;
  d.reset_after = kind.reset_after;
  d.batch = batch;
  d.steps = steps;
  d.inputs = inputs;
  d.units = units;
  return d;
}

struct RnnResult {
  RnnResult(const RnnDesc& d)
      : dst(d.batch * (d.sequences ? d.steps : 1) * d.units),
        hn(d.batch * d.units),
        cn(d.cell == RnnCell::kLstm ? d.batch * d.units : 0) {}
  GuardedBuffer dst, hn, cn;
};

class RnnCase {
 public:
  // Weights are such that sums have a deviation of about 1; the mask leaves out every
  // third or so, and all of the last row. Of low-precision weights kernel and recurrent are the
  // floats that they stand for.
  explicit RnnCase(const RnnDesc& desc, unsigned seed = 1)
      : d(desc),
        src(d.batch * d.steps * d.inputs),
        kernel(d.inputs * d.gates() * d.units),
        recurrent(d.units * d.gates() * d.units),
        rounded_kernel(static_cast<int64_t>(kernel.size()) * SizeOf(d.weights)),
        rounded_recurrent(static_cast<int64_t>(recurrent.size()) * SizeOf(d.weights)),
        kernel_scales(d.gates() * d.units),
        recurrent_scales(d.gates() * d.units),
        bias(d.bias_rows() * d.gates() * d.units),
        h0(d.batch * d.units),
        c0(d.batch * d.units),
        mask(new bool[d.batch * d.steps]),
        lengths(d.batch) {
    std::mt19937 random(seed);
    const auto fill = [&](GuardedBuffer* buffer, double scale) {
      std::normal_distribution<float> normal(0.f, static_cast<float>(scale));
      for (float& x : *buffer) x = normal(random);
    };
    fill(&src, 1.);
    fill(&kernel, 1. / std::sqrt(1. + d.inputs));
    fill(&recurrent, 0.8 / std::sqrt(1. + d.units));
    Round(0.03f, &kernel, &rounded_kernel, &kernel_scales);
    Round(0.02f, &recurrent, &rounded_recurrent, &recurrent_scales);
    fill(&bias, 0.3);
    fill(&h0, 0.5);
    fill(&c0, 0.5);
    for (int64_t i = 0; i < d.batch * d.steps; ++i) {
      mask[i] = random() % 3 != 0 && i < (d.batch - 1) * d.steps;
    }
    for (int32_t& length : lengths) length = static_cast<int32_t>(random() % (d.steps + 1));
  }

  RnnBuffers Buffers(RnnResult* to) const {
    RnnBuffers b;
    b.src = {src.data(), d.steps * d.inputs, d.inputs};
    b.bias = has_bias ? bias.data() : nullptr;
    if (has_state) {
      b.h0 = h0.data();
      b.c0 = d.cell == RnnCell::kLstm ? c0.data() : nullptr;
    }
    if (has_mask) b.mask = {mask.get(), d.steps, 1};
    if (has_lengths) b.lengths = lengths.data();
    const int64_t out_steps = d.sequences ? d.steps : 1;
    b.dst = {to->dst.data(), out_steps * d.units, d.units};
    b.hn = to->hn.data();
    b.cn = d.cell == RnnCell::kLstm ? to->cn.data() : nullptr;
    return b;
  }

  void Run(Isa isa, ThreadPool& pool, RnnResult* to) const {
    RnnPlan plan;
    ASSERT_EQ(MakeRnnPlan(d, isa, pool.num_threads(), &plan), "");
    // A byte after would be the guard page, but for the alignment of what was booked.
    GuardedBuffer scratch(RoundUp(plan.scratch.bytes())), kept(RoundUp(plan.workspace_bytes));
    GuardedBuffer packed(plan.packed_floats);
    const bool floats = d.weights == DataType::f32;
    PackRnnWeights(plan, floats ? kernel.data() : rounded_kernel.data(),
                   floats ? recurrent.data() : rounded_recurrent.data(), packed.data(), pool);
    RnnBuffers b = Buffers(to);
    b.kernel_scales = kernel_scales.data();
    b.recurrent_scales = recurrent_scales.data();
    b.packed = packed.data();
    b.scratch = scratch.data();
    b.workspace = kept.data();
    RunRnn(plan, b, pool);
  }

  void Reference(RnnResult* to) const { RnnRef(d, Buffers(to), kernel.data(), recurrent.data()); }

  const RnnDesc d;
  GuardedBuffer src, kernel, recurrent;
  mutable GuardedArray rounded_kernel, rounded_recurrent;
  GuardedBuffer kernel_scales, recurrent_scales;
  GuardedBuffer bias, h0, c0;
  std::unique_ptr<bool[]> mask;
  std::vector<int32_t> lengths;
  bool has_bias = true, has_state = false, has_mask = false, has_lengths = false;

 private:
  // Rounds floats to what low-precision weights can say; scales differ from column to column.
  void Round(float scale, GuardedBuffer* floats, GuardedArray* rounded, GuardedBuffer* scales) {
    if (d.weights == DataType::f32) return;
    const int64_t columns = static_cast<int64_t>(scales->size());
    for (int64_t i = 0; i < columns; ++i) {
      (*scales)[i] =
          d.weights == DataType::s8 ? scale * (1.f + 0.1f * static_cast<float>(i % 7)) : 1.f;
    }
    for (int64_t i = 0; i < static_cast<int64_t>(floats->size()); ++i) {
      const float of_column = (*scales)[i % columns];
      StoreFloatRef(d.weights, (*floats)[i] / of_column, rounded->data(), i);
      (*floats)[i] = of_column * LoadAsFloatRef(d.weights, rounded->data(), i);
    }
  }
  static int64_t RoundUp(size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 16); }
};

inline std::string Name(const RnnDesc& d) {
  const char* cells[] = {"vanilla", "lstm", "gru"};
  return std::string(cells[static_cast<int>(d.cell)]) + (d.reset_after ? "" : " reset before") +
         " batch " + std::to_string(d.batch) + " steps " + std::to_string(d.steps) + " inputs " +
         std::to_string(d.inputs) + " units " + std::to_string(d.units) +
         (d.backwards ? " backwards" : "");
}

inline void ExpectNear(const GuardedBuffer& actual, const GuardedBuffer& expected, double bound,
                       const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], bound) << what << " at " << i;
  }
}

inline void ExpectNear(const RnnResult& actual, const RnnResult& expected, double bound,
                       const std::string& what) {
  ExpectNear(actual.dst, expected.dst, bound, what + " dst");
  ExpectNear(actual.hn, expected.hn, bound, what + " hn");
  ExpectNear(actual.cn, expected.cn, bound, what + " cn");
}

// States are of magnitude 1 and sums of hundreds of products have an error of some 1e-7; the
// gates damp it from step to step.
constexpr double kBound = 1e-5;

inline void CheckRnn(const RnnCase& c, const std::vector<Isa>& isas, ThreadPool& pool,
                     double bound = kBound) {
  RnnResult expected(c.d);
  c.Reference(&expected);
  for (Isa isa : isas) {
    RnnResult actual(c.d);
    c.Run(isa, pool, &actual);
    ExpectNear(actual, expected, bound, std::string(IsaName(isa)) + " " + Name(c.d));
  }
}

// `count` layers of each kind, of the types in `like`: of any size, in all directions and orders,
// with masks, lengths, a state and a bias and without.
template <typename Check>
void ForDrawnLayers(const RnnDesc& like, int count, Check&& check) {
  constexpr int64_t kMostOutputs = 5000;
  std::mt19937 rng(1);
  const auto pick = [&](std::initializer_list<int64_t> list) {
    return list.begin()[rng() % list.size()];
  };
  for (int i = 0; i < count; ++i) {
    for (RnnKind kind : kRnnKinds) {
      RnnDesc d = like;
      d.cell = kind.cell;
      d.reset_after = kind.reset_after;
      do {
        d.batch = pick({1, 1, 2, 3, 4, 5, 6, 7, 13, 50, 70, 100});
        d.steps = pick({1, 2, 3, 4, 7, 12, 35});
        d.inputs = pick({0, 1, 3, 5, 16, 34, 67});
        d.units = pick({1, 3, 8, 15, 16, 17, 19, 31, 32, 33, 48, 65, 70, 100, 130, 260});
      } while (d.batch * d.steps * d.units > kMostOutputs);
      d.backwards = rng() % 2;
      d.reorders = rng() % 2;
      d.sequences = rng() % 2;
      d.zeros_masked = rng() % 2;
      // Gradients have no corners, and few steps no values that grow and grow.
      constexpr RnnActivation kActivations[] = {RnnActivation::kTanh, RnnActivation::kLogistic,
                                                RnnActivation::kRelu, RnnActivation::kLinear};
      if (!d.training && d.steps <= 4) d.activation = kActivations[rng() % 4];
      if (!d.training && rng() % 4 == 0) d.recurrent_activation = RnnActivation::kHardLogistic;
      RnnCase c(d, static_cast<unsigned>(i));
      c.has_mask = rng() % 2;
      c.has_lengths = rng() % 2;
      c.has_state = rng() % 2;
      c.has_bias = rng() % 4;
      check(&c);
    }
  }
}

const CpuModel kPairs = {"AuthenticAMD", 0x19, 0x11};    // Zen 4
const CpuModel kNoPairs = {"AuthenticAMD", 0x1a, 0x44};  // Zen 5

// On CPUs that multiply in pairs, and on others.
class RnnTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { PretendCpu(GetParam() ? &kPairs : &kNoPairs); }
  void TearDown() override { PretendCpu(nullptr); }
};

}  // namespace bd
