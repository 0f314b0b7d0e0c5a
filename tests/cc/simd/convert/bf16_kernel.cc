#include "tests/cc/simd/convert/bf16_kernel.h"

#include "cc/simd/convert/bf16.h"

namespace bd::BD_ISA {
namespace {

void Dot(float* acc, const Bfloat16* a, const Bfloat16* b, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Store(acc + i, DotPairs(Load(acc + i), LoadPairs(a + 2 * i), LoadPairs(b + 2 * i)));
  }
}

void DotOne(const Bfloat16* pair, bool single, const Bfloat16* b, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const Pairs one = single ? SetSingle(pair) : SetPair(pair);
    Store(dst + i, DotPairs(Zero(), one, LoadPairs(b + 2 * i)));
  }
}

}  // namespace

constexpr Bf16Kernels kBf16Kernels = {Dot, DotOne};

}  // namespace bd::BD_ISA
