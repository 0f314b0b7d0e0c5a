#include "cc/core/rnn/rnn_cell_kernel.h"

#include "cc/core/rnn/rnn_vec_inl.h"

namespace bd::BD_ISA {
namespace {

// Rows that are masked, and then for the others step(row, first unit, lanes).
template <typename Step>
BD_INLINE void ForEachVec(const RnnCellArgs& a, bool has_c, Step step) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const uint8_t mode = a.modes == nullptr ? kRnnRuns : a.modes[row];
    if (__builtin_expect(mode != kRnnRuns, 0)) {
      const float* h = a.h + row * a.h_stride;
      for (int64_t u = 0; u < a.units; ++u) a.h_next[row * a.h_stride + u] = h[u];
      if (has_c && a.c != a.c_next) {
        for (int64_t u = 0; u < a.units; ++u) {
          a.c_next[row * a.c_stride + u] = a.c[row * a.c_stride + u];
        }
      }
      if (a.out == nullptr) continue;
      for (int64_t u = 0; u < a.units; ++u) {
        a.out[row * a.out_stride + u] = mode == kRnnKeeps ? h[u] : 0.f;
      }
      continue;
    }
    int64_t unit = 0;
    for (; unit + kLanes <= a.units; unit += kLanes) step(row, unit, kLanes);
    if (unit < a.units) step(row, unit, static_cast<int>(a.units - unit));
  }
}

BD_INLINE void StoreState(const RnnCellArgs& a, int64_t row, int64_t unit, int lanes, Vec h) {
  StoreUpTo(a.h_next + row * a.h_stride + unit, h, lanes);
  if (a.out != nullptr) StoreUpTo(a.out + row * a.out_stride + unit, h, lanes);
}

// The activations that Keras has by default, known when a kernel is compiled.
inline bool Usual(const RnnCellArgs& a) {
  return a.activation == RnnActivation::kTanh && a.recurrent_activation == RnnActivation::kLogistic;
}

// h' = f(sum)
template <bool kUsual>
void VanillaOf(const RnnCellArgs& a) {
  const RnnActivation inner = kUsual ? RnnActivation::kTanh : a.activation;
  ForEachVec(a, false, [&](int64_t row, int64_t unit, int lanes) {
    float* gate = a.gates + row * a.gates_stride + unit;
    const Vec h = Activate(inner, Load(gate));
    if (a.keeps) Store(gate, h);
    StoreState(a, row, unit, lanes, h);
  });
}

void Vanilla(const RnnCellArgs& a) {
  (a.activation == RnnActivation::kTanh ? VanillaOf<true> : VanillaOf<false>)(a);
}

// c' = f c + i g, h' = o tanh(c')
template <bool kUsual>
void LstmOf(const RnnCellArgs& a) {
  const RnnActivation inner = kUsual ? RnnActivation::kTanh : a.activation;
  const RnnActivation gated = kUsual ? RnnActivation::kLogistic : a.recurrent_activation;
  ForEachVec(a, true, [&](int64_t row, int64_t unit, int lanes) {
    float* gate = a.gates + row * a.gates_stride + unit;
    const Vec i = Activate(gated, Load(gate));
    const Vec f = Activate(gated, Load(gate + a.block));
    const Vec g = Activate(inner, Load(gate + 2 * a.block));
    const Vec o = Activate(gated, Load(gate + 3 * a.block));
    const Vec c = Fma(i, g, Mul(f, LoadUpTo(a.c + row * a.c_stride + unit, lanes)));
    StoreUpTo(a.c_next + row * a.c_stride + unit, c, lanes);
    if (a.keeps) {
      Store(gate, i);
      Store(gate + a.block, f);
      Store(gate + 2 * a.block, g);
      Store(gate + 3 * a.block, o);
    }
    StoreState(a, row, unit, lanes, Mul(o, Activate(inner, c)));
  });
}

void Lstm(const RnnCellArgs& a) { (Usual(a) ? LstmOf<true> : LstmOf<false>)(a); }

// g + z (h - g) = z h + (1 - z) g
inline Vec Mix(Vec z, Vec h, Vec g) { return Fma(z, Sub(h, g), g); }

// g = f(x_h + r rec_h), h' = z h + (1 - z) g
template <bool kUsual>
void GruAfterOf(const RnnCellArgs& a) {
  const RnnActivation inner = kUsual ? RnnActivation::kTanh : a.activation;
  const RnnActivation gated = kUsual ? RnnActivation::kLogistic : a.recurrent_activation;
  ForEachVec(a, false, [&](int64_t row, int64_t unit, int lanes) {
    float* gate = a.gates + row * a.gates_stride + unit;
    const Vec z = Activate(gated, Load(gate));
    const Vec r = Activate(gated, Load(gate + a.block));
    const Vec g = Activate(inner, Fma(r, Load(gate + 3 * a.block), Load(gate + 2 * a.block)));
    const Vec h = LoadUpTo(a.h + row * a.h_stride + unit, lanes);
    if (a.keeps) {
      Store(gate, z);
      Store(gate + a.block, r);
      Store(gate + 2 * a.block, g);
    }
    StoreState(a, row, unit, lanes, Mix(z, h, g));
  });
}

void GruAfter(const RnnCellArgs& a) { (Usual(a) ? GruAfterOf<true> : GruAfterOf<false>)(a); }

// The gates z and r, and r h for the product that needs it.
void GruGates(const RnnCellArgs& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t unit = 0; unit < a.units; unit += kLanes) {
      const int lanes = AtMostLanes(a.units - unit);
      float* gate = a.gates + row * a.gates_stride + unit;
      const Vec z = Activate(a.recurrent_activation, Load(gate));
      const Vec r = Activate(a.recurrent_activation, Load(gate + a.block));
      Store(gate, z);
      Store(gate + a.block, r);
      const Vec h = LoadUpTo(a.h + row * a.h_stride + unit, lanes);
      StoreUpTo(a.reset + row * a.h_stride + unit, Mul(r, h), lanes);
    }
  }
}

void GruBefore(const RnnCellArgs& a) {
  ForEachVec(a, false, [&](int64_t row, int64_t unit, int lanes) {
    float* gate = a.gates + row * a.gates_stride + unit;
    const Vec g = Activate(a.activation, Load(gate + 2 * a.block));
    if (a.keeps) Store(gate + 2 * a.block, g);
    const Vec h = LoadUpTo(a.h + row * a.h_stride + unit, lanes);
    StoreState(a, row, unit, lanes, Mix(Load(gate), h, g));
  });
}

}  // namespace

constexpr RnnCellKernels kRnnCellKernels = {Vanilla, Lstm, GruAfter, GruGates, GruBefore};

}  // namespace bd::BD_ISA
