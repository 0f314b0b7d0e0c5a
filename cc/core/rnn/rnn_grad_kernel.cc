#include "cc/core/rnn/rnn_grad_kernel.h"

#include "cc/core/rnn/rnn_vec_inl.h"

namespace bd::BD_ISA {
namespace {

// f'(x) from y = f(x), times d.
inline Vec TimesDerivative(RnnActivation activation, Vec y, Vec d) {
  switch (activation) {
    case RnnActivation::kTanh:
      return NegFma(Mul(y, y), d, d);
    case RnnActivation::kLogistic:
      return Mul(d, NegFma(y, y, y));
    case RnnActivation::kRelu:
      return Select(Less(Zero(), y), d, Zero());
    case RnnActivation::kHardLogistic: {
      const Vec sixth = Mul(d, Set1(1.f / 6.f));
      return Select(Less(Zero(), y), Select(Less(y, Set1(1.f)), sixth, Zero()), Zero());
    }
    default:
      return d;
  }
}

// A masked row: nothing reaches the sums; what reaches the state passes on.
void Masked(const RnnGradArgs& a, int64_t row, int gates) {
  for (int64_t u = 0; u < a.units; ++u) {
    for (int g = 0; g < gates; ++g) {
      a.d_sums[row * a.d_sums_stride + g * a.gate_stride + u] = 0.f;
      if (a.d_recurrent != nullptr) {
        a.d_recurrent[row * a.d_sums_stride + g * a.gate_stride + u] = 0.f;
      }
    }
    if (a.modes[row] == kRnnKeeps && a.d_out != nullptr) {
      a.carry[row * a.c_stride + u] += a.d_out[row * a.d_out_stride + u];
    }
    a.before[row * a.before_stride + u] = a.h[row * a.h_stride + u];
    if (a.reset != nullptr) a.reset[row * a.before_stride + u] = 0.f;
  }
}

// step(row, unit, lanes, dh, h) for rows that are not masked; it returns the new carry.
template <typename Step>
BD_INLINE void ForEachVec(const RnnGradArgs& a, int gates, Step step) {
  for (int64_t row = 0; row < a.rows; ++row) {
    if (a.modes != nullptr && a.modes[row] != kRnnRuns) {
      Masked(a, row, gates);
      continue;
    }
    for (int64_t unit = 0; unit < a.units; unit += kLanes) {
      const int lanes = AtMostLanes(a.units - unit);
      float* carry = a.carry + row * a.c_stride + unit;
      Vec dh = Load(carry);
      if (a.d_out != nullptr) {
        dh = Add(dh, LoadUpTo(a.d_out + row * a.d_out_stride + unit, lanes));
      }
      const Vec h = LoadUpTo(a.h + row * a.h_stride + unit, lanes);
      StoreUpTo(a.before + row * a.before_stride + unit, h, lanes);
      Store(carry, step(row, unit, lanes, dh, h));
    }
  }
}

inline float* SumAt(const RnnGradArgs& a, float* base, int64_t row, int gate, int64_t unit) {
  return base + row * a.d_sums_stride + gate * a.gate_stride + unit;
}

void Vanilla(const RnnGradArgs& a) {
  ForEachVec(a, 1, [&](int64_t row, int64_t unit, int lanes, Vec dh, Vec) {
    const Vec y = Load(a.gates + row * a.gates_stride + unit);
    StoreUpTo(SumAt(a, a.d_sums, row, 0, unit), TimesDerivative(a.activation, y, dh), lanes);
    return Zero();
  });
}

void Lstm(const RnnGradArgs& a) {
  const RnnActivation f = a.activation, g = a.recurrent_activation;
  ForEachVec(a, 4, [&](int64_t row, int64_t unit, int lanes, Vec dh, Vec) {
    const float* gate = a.gates + row * a.gates_stride + unit;
    const int64_t at = row * a.c_stride + unit;
    const Vec in = Load(gate), forget = Load(gate + a.block), cell = Load(gate + 2 * a.block),
              out = Load(gate + 3 * a.block);
    const Vec y = Activate(f, Load(a.c_next + at));
    const Vec dc = Add(Load(a.dc + at), TimesDerivative(f, y, Mul(dh, out)));
    const Vec sums[] = {TimesDerivative(g, in, Mul(dc, cell)),
                        TimesDerivative(g, forget, Mul(dc, Load(a.c + at))),
                        TimesDerivative(f, cell, Mul(dc, in)), TimesDerivative(g, out, Mul(dh, y))};
    for (int k = 0; k < 4; ++k) StoreUpTo(SumAt(a, a.d_sums, row, k, unit), sums[k], lanes);
    Store(a.dc + at, Mul(dc, forget));
    return Zero();
  });
}

// h' = z h + (1 - z) g, g = f(x_h + r rec)
void GruAfter(const RnnGradArgs& a) {
  ForEachVec(a, 3, [&](int64_t row, int64_t unit, int lanes, Vec dh, Vec h) {
    const float* gate = a.gates + row * a.gates_stride + unit;
    const Vec z = Load(gate), r = Load(gate + a.block), g = Load(gate + 2 * a.block),
              recurrent = Load(gate + 3 * a.block);
    const Vec dz = TimesDerivative(a.recurrent_activation, z, Mul(dh, Sub(h, g)));
    const Vec dg = TimesDerivative(a.activation, g, NegFma(dh, z, dh));
    const Vec dr = TimesDerivative(a.recurrent_activation, r, Mul(dg, recurrent));
    StoreUpTo(SumAt(a, a.d_sums, row, 0, unit), dz, lanes);
    StoreUpTo(SumAt(a, a.d_sums, row, 1, unit), dr, lanes);
    StoreUpTo(SumAt(a, a.d_sums, row, 2, unit), dg, lanes);
    StoreUpTo(SumAt(a, a.d_recurrent, row, 0, unit), dz, lanes);
    StoreUpTo(SumAt(a, a.d_recurrent, row, 1, unit), dr, lanes);
    StoreUpTo(SumAt(a, a.d_recurrent, row, 2, unit), Mul(dg, r), lanes);
    return Mul(dh, z);
  });
}

void GruBefore(const RnnGradArgs& a) {
  ForEachVec(a, 3, [&](int64_t row, int64_t unit, int lanes, Vec dh, Vec h) {
    const float* gate = a.gates + row * a.gates_stride + unit;
    const Vec z = Load(gate), r = Load(gate + a.block), g = Load(gate + 2 * a.block);
    const Vec dz = TimesDerivative(a.recurrent_activation, z, Mul(dh, Sub(h, g)));
    StoreUpTo(SumAt(a, a.d_sums, row, 0, unit), dz, lanes);
    StoreUpTo(SumAt(a, a.d_sums, row, 2, unit), TimesDerivative(a.activation, g, NegFma(dh, z, dh)),
              lanes);
    StoreUpTo(a.reset + row * a.before_stride + unit, Mul(r, h), lanes);
    return Mul(dh, z);
  });
}

void GruGates(const RnnGradArgs& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    if (a.modes != nullptr && a.modes[row] != kRnnRuns) continue;  // zero already
    for (int64_t unit = 0; unit < a.units; unit += kLanes) {
      const int lanes = AtMostLanes(a.units - unit);
      const Vec r = Load(a.gates + row * a.gates_stride + a.block + unit);
      const Vec h = LoadUpTo(a.h + row * a.h_stride + unit, lanes);
      const Vec d = Load(a.d_reset + row * a.c_stride + unit);
      StoreUpTo(SumAt(a, a.d_sums, row, 1, unit),
                TimesDerivative(a.recurrent_activation, r, Mul(d, h)), lanes);
      float* carry = a.carry + row * a.c_stride + unit;
      Store(carry, Fma(d, r, Load(carry)));
    }
  }
}

}  // namespace

constexpr RnnGradKernels kRnnGradKernels = {Vanilla, Lstm, GruAfter, GruBefore, GruGates};

}  // namespace bd::BD_ISA
