#include "tests/cc/simd/math/math_kernel.h"

#include "cc/simd/math/math.h"

namespace bd::BD_ISA {
namespace {

template <Vec (*f)(Vec)>
void Apply(const float* x, float* y, int64_t n, float) {
  for (int64_t i = 0; i < n; i += kLanes) Store(y + i, f(Load(x + i)));
}

template <Vec (*f)(Vec, Vec)>
void ApplyAlpha(const float* x, float* y, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; i += kLanes) Store(y + i, f(Load(x + i), Set1(alpha)));
}

// n floats by four vectors, the last of which may be one that has been.
template <typename F>
void ApplyByFour(const float* x, float* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; i += 4 * kLanes) {
    Vec v[4];
    for (int64_t k = 0; k < 4; ++k) v[k] = Load(x + (i + k * kLanes < n ? i + k * kLanes : i));
    f(v);
    for (int64_t k = 3; k >= 0; --k) Store(y + (i + k * kLanes < n ? i + k * kLanes : i), v[k]);
  }
}

template <bool kRough>
void ApplySilu(const float* x, float* y, int64_t n, float) {
  ApplyByFour(x, y, n, [](Vec(&v)[4]) { Silu<kRough>(v); });
}

void ApplySiluOfSteps(const float* x, float* y, int64_t n, float step) {
  ApplyByFour(x, y, n, [step](Vec(&v)[4]) { SiluOfSteps(step, v); });
}

void ApplyPower(const float* x, float* y, int64_t n, float exponent) {
  const Power power(exponent);
  for (int64_t i = 0; i < n; i += kLanes) Store(y + i, power(Load(x + i)));
}

constexpr MathKernels kKernels = {
    Apply<Exp>,         Apply<NegativeExpm1>, Apply<Logistic>,   Apply<Tanh>,     Apply<Log>,
    Apply<Log1pOfUnit>, ApplyPower,           Apply<SoftRelu>,   ApplyAlpha<Elu>, ApplySilu<false>,
    ApplySilu<true>,    ApplySiluOfSteps,     ApplyAlpha<Swish>, Apply<Mish>,     Apply<GeluTanh>,
    Apply<GeluErf>,     Apply<Round>,         Apply<Sqrt>,
};

}  // namespace

const MathKernels& GetMathKernels() { return kKernels; }

}  // namespace bd::BD_ISA
