// The way back against differences of the definition. With L = <dst, a> + <hn, b> + <cn, c> for
// random a, b and c, and v a direction of one argument, a random one and that of D x together,
//
//   (L(x + e v) - L(x - e v)) / 2e = <D x, v>,
//
// where D x comes from what RunRnnGrad leaves (rnn_grad.h).
#include "cc/core/rnn/rnn_grad.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cc/core/rnn/rnn_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

// Differences of floats over 2e, and the term of e^2, both below 1e-4 of an argument's norm.
constexpr double kStep = 0x1p-7, kBound = 2e-3;

using Values = std::vector<double>;

Values Random(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Values values(count);
  for (double& x : values) x = normal(random);
  return values;
}

double Dot(const GuardedBuffer& a, const Values& b) {
  double sum = 0.;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

double Dot(const Values& a, const Values& b) {
  double sum = 0.;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The weights of the outputs in L.
struct Loss {
  explicit Loss(const RnnResult& r)
      : dst(Random(r.dst.size(), 7)), hn(Random(r.hn.size(), 8)), cn(Random(r.cn.size(), 9)) {}
  double Of(const RnnResult& r) const { return Dot(r.dst, dst) + Dot(r.hn, hn) + Dot(r.cn, cn); }
  Values dst, hn, cn;
};

struct Gradients {
  Values src, kernel, recurrent, bias, h0, c0;
};

void Copy(const Values& from, GuardedBuffer* to) {
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] = static_cast<float>(from[i]);
}

int64_t Floats(size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 16); }

Gradients Backward(const RnnCase& c, const Loss& loss, Isa isa, ThreadPool& pool) {
  const RnnDesc& d = c.d;
  const int64_t rows = d.batch * d.steps, units = d.units, columns = d.gates() * units;
  RnnGradPlan plan;
  EXPECT_EQ(MakeRnnGradPlan(d, isa, pool.num_threads(), &plan), "");
  RnnResult result(d);
  GuardedBuffer scratch(Floats(plan.forward.scratch.bytes())),
      kept(Floats(plan.forward.workspace_bytes));
  GuardedBuffer packed(plan.forward.packed_floats), packed_back(plan.packed_floats);
  PackRnnWeights(plan.forward, c.kernel.data(), c.recurrent.data(), packed.data(), pool);
  RnnBuffers f = c.Buffers(&result);
  f.packed = packed.data();
  f.scratch = scratch.data();
  f.workspace = kept.data();
  RunRnn(plan.forward, f, pool);

  const bool is_gru = d.cell == RnnCell::kGru, two = is_gru && d.reset_after;
  const bool before = is_gru && !d.reset_after;
  GuardedBuffer d_dst(loss.dst.size()), d_hn(loss.hn.size()), d_cn(loss.cn.size());
  Copy(loss.dst, &d_dst);
  Copy(loss.hn, &d_hn);
  Copy(loss.cn, &d_cn);
  GuardedBuffer sums(rows * columns), recurrent(two ? rows * columns : 0), h(rows * units);
  GuardedBuffer reset(before ? rows * units : 0), d_h0(d.batch * units), d_c0(loss.cn.size());
  GuardedBuffer scratch_back(Floats(plan.scratch.bytes()));
  PackRnnGradWeights(plan, c.recurrent.data(), packed_back.data(), pool);
  RnnGradBuffers b;
  b.packed = packed_back.data();
  b.workspace = kept.data();
  b.masked = c.has_mask || c.has_lengths;
  b.d_dst = {d_dst.data(), f.dst.batch_stride, f.dst.step_stride};
  b.d_hn = d_hn.data();
  if (d.cell == RnnCell::kLstm) b.d_cn = d_cn.data();
  b.d_sums = {sums.data(), d.steps * columns, columns};
  if (two) b.d_recurrent = {recurrent.data(), d.steps * columns, columns};
  b.before = {h.data(), d.steps * units, units};
  if (before) b.reset = {reset.data(), d.steps * units, units};
  b.d_h0 = d_h0.data();
  if (d.cell == RnnCell::kLstm) b.d_c0 = d_c0.data();
  b.scratch = scratch_back.data();
  RunRnnGrad(plan, b, pool);

  Gradients g;
  g.src.resize(rows * d.inputs);
  g.kernel.resize(d.inputs * columns);
  g.recurrent.resize(units * columns);
  g.bias.resize(d.bias_rows() * columns);
  g.h0.assign(d_h0.begin(), d_h0.end());
  g.c0.assign(d_c0.begin(), d_c0.end());
  const GuardedBuffer& by_state = two ? recurrent : sums;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      const double s = sums[r * columns + j], t = by_state[r * columns + j];
      g.bias[j] += s;
      if (two) g.bias[columns + j] += t;
      for (int64_t k = 0; k < d.inputs; ++k) {
        g.src[r * d.inputs + k] += s * c.kernel[k * columns + j];
        g.kernel[k * columns + j] += s * c.src[r * d.inputs + k];
      }
      const GuardedBuffer& met = before && j >= 2 * units ? reset : h;
      for (int64_t k = 0; k < units; ++k) {
        g.recurrent[k * columns + j] += t * met[r * units + k];
      }
    }
  }
  return g;
}

// <D x, v> against the difference, for one argument x of the case.
void CheckArgument(const RnnCase& c, const Loss& loss, GuardedBuffer* x, const Values& gradient,
                   const std::string& what) {
  const Values saved(x->begin(), x->end());
  const double norm = std::sqrt(Dot(gradient, gradient));
  Values v = Random(x->size(), 11);
  const double length = std::sqrt(Dot(v, v));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = v[i] / length + (norm > 0. ? gradient[i] / norm : 0.);
  }
  double sides[2];
  for (int side : {0, 1}) {
    for (size_t i = 0; i < v.size(); ++i) {
      (*x)[i] = static_cast<float>(saved[i] + (side == 0 ? kStep : -kStep) * v[i]);
    }
    RnnResult result(c.d);
    c.Reference(&result);
    sides[side] = loss.Of(result);
  }
  Copy(saved, x);
  EXPECT_NEAR((sides[0] - sides[1]) / (2. * kStep), Dot(gradient, v), kBound * (norm + 0.1))
      << what;
}

void Check(RnnCase* c, Isa isa, ThreadPool& pool) {
  const Loss loss((RnnResult(c->d)));
  const Gradients g = Backward(*c, loss, isa, pool);
  const std::string name = std::string(IsaName(isa)) + " " + Name(c->d) + " D ";
  CheckArgument(*c, loss, &c->src, g.src, name + "src");
  CheckArgument(*c, loss, &c->kernel, g.kernel, name + "kernel");
  CheckArgument(*c, loss, &c->recurrent, g.recurrent, name + "recurrent kernel");
  if (c->has_bias) CheckArgument(*c, loss, &c->bias, g.bias, name + "bias");
  if (!c->has_state) return;
  CheckArgument(*c, loss, &c->h0, g.h0, name + "h0");
  if (c->d.cell == RnnCell::kLstm) CheckArgument(*c, loss, &c->c0, g.c0, name + "c0");
}

RnnDesc Describe(RnnKind kind, int64_t batch, int64_t steps, int64_t inputs, int64_t units) {
  RnnDesc d = DescribeRnn(kind, batch, steps, inputs, units);
  d.training = true;
  return d;
}

TEST(RnnGrad, DrawnLayers) {
  RnnDesc d;
  d.training = true;
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (Isa isa : TestIsas()) {
      ForDrawnLayers(d, 12, [&](RnnCase* c) { Check(c, isa, pool); });
    }
  }
}

TEST(RnnGrad, Activations) {
  ThreadPool pool(1);
  for (Isa isa : TestIsas()) {
    for (RnnKind kind : kRnnKinds) {
      for (RnnActivation f : {RnnActivation::kLogistic, RnnActivation::kLinear}) {
        for (RnnActivation g : {RnnActivation::kTanh, RnnActivation::kHardLogistic}) {
          RnnDesc d = Describe(kind, 2, 3, 4, 18);
          d.activation = f;
          d.recurrent_activation = g;
          RnnCase c(d);
          Check(&c, isa, pool);
        }
      }
    }
  }
}

TEST(RnnGrad, NeedsATrainingRun) {
  RnnDesc d = Describe(kRnnKinds[1], 2, 3, 4, 5);
  d.training = false;
  RnnGradPlan plan;
  EXPECT_EQ(MakeRnnGradPlan(d, Isa::kGeneric, 1, &plan),
            "the gradient needs what a training run keeps");
}

}  // namespace
}  // namespace bd
