#include "benchmarks/cc/peak_kernel.h"

#include "cc/simd/convert/bf16.h"
#include "cc/simd/convert/int8.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Two pipes with a latency of 4 cycles need 8 chains. Where a multiply-add is a product and a sum,
// they need 14 or more, which fill 16 registers together with two constants.
constexpr int kChains = 14;

// Makes a value observable in its register: the compiler can neither fold a chain of such values
// nor move it to memory. An emulated vector is two registers.
template <typename Register>
inline void Observe(Register& x) {
#if defined(BD_EMULATED)
  asm volatile("" : "+m"(x));
#else
  asm volatile("" : "+v"(x));
#endif
}

// x = 0.999 x + 0.001 tends to 1.
void MultiplyAdd(int64_t iterations) {
  const Vec a = Set1(0.999f), b = Set1(0.001f);
  Vec x[kChains];
#pragma GCC unroll 16
  for (int j = 0; j < kChains; ++j) x[j] = Set1(1.f + j);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kChains; ++j) {
      x[j] = Fma(x[j], a, b);
      Observe(x[j]);
    }
  }
}

void DotPairsOften(int64_t iterations) {
  const Bfloat16 ones[2 * kLanes] = {{0x3f80}, {0x3f80}};
  const Pairs a = LoadPairs(ones), b = SetPair(ones);
  Vec x[kChains];
#pragma GCC unroll 16
  for (int j = 0; j < kChains; ++j) x[j] = Zero();
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kChains; ++j) {
      x[j] = DotPairs(x[j], a, b);
      Observe(x[j]);
    }
  }
}

void DotQuadsOften(int64_t iterations) {
  const int8_t ones[4 * kLanes] = {1, 1, 1, 1};
  const SignedQuads b = LoadQuads(ones);
  const UnsignedQuads a = SetQuad(reinterpret_cast<const uint8_t*>(ones));
  IVec x[kChains];
#pragma GCC unroll 16
  for (int j = 0; j < kChains; ++j) x[j] = SetInt(0);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kChains; ++j) {
      x[j] = DotQuads(x[j], a, b);
      Observe(x[j]);
    }
  }
}

float Read(const float* src, int64_t floats) {
  constexpr int kSums = 8;
  Vec sum[kSums];
#pragma GCC unroll 8
  for (int j = 0; j < kSums; ++j) sum[j] = Zero();
  for (int64_t i = 0; i < floats; i += kSums * kLanes) {
#pragma GCC unroll 8
    for (int j = 0; j < kSums; ++j) sum[j] = Add(sum[j], Load(src + i + j * kLanes));
  }
  Vec total = Zero();
#pragma GCC unroll 8
  for (int j = 0; j < kSums; ++j) total = Add(total, sum[j]);
  return ReduceAdd(total);
}

}  // namespace

constexpr PeakKernels kPeakKernels = {
    MultiplyAdd,   2 * kChains* kLanes, DotPairsOften, 4 * kChains* kLanes,
    DotQuadsOften, 8 * kChains* kLanes, Read};

}  // namespace bd::BD_ISA
