#include "tests/cc/simd/convert/bf16_kernel.h"

#include "cc/simd/convert/bf16.h"

namespace bd::BD_ISA {
namespace {

void Dot(float* acc, const Bfloat16* a, const Bfloat16* b, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Store(acc + i, DotPairs(Load(acc + i), LoadPairs(a + 2 * i), LoadPairs(b + 2 * i)));
  }
}

void DotOne(const Bfloat16* pair, const Bfloat16* b, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Store(dst + i, DotPairs(Zero(), SetPair(pair), LoadPairs(b + 2 * i)));
  }
}

}  // namespace

constexpr Bf16Kernels kBf16Kernels = {Dot, DotOne};

}  // namespace bd::BD_ISA
