#include "tests/cc/simd/math/math_kernel.h"

#include "cc/simd/math/math.h"

namespace bd::BD_ISA {
namespace {

void ApplyLogistic(const float* x, float* y, int64_t n, float) {
  for (int64_t i = 0; i < n; i += kLanes) Store(y + i, Logistic(Load(x + i)));
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

}  // namespace

constexpr MathKernels kMathKernels = {ApplyLogistic, ApplySilu<false>, ApplySilu<true>,
                                      ApplySiluOfSteps};

}  // namespace bd::BD_ISA
