// One vocabulary of float vectors for every instruction set.
//
// A kernel file is compiled once per ISA with BD_ISA set to the name of its
// namespace (generic, avx2, avx512, ...) and sees exactly one of the small files
// below. BD_AVX512 is defined where this interface is that of 512-bit vectors,
// whether the instructions are there (avx512 and later sets) or two vectors of
// AVX2 stand for each (avx512_emulated, BD_EMULATED, in tests only); so a kernel
// asks for BD_AVX512, never for __AVX512F__, and uses no 512-bit intrinsics itself.
// All files define, in bd::BD_ISA and an anonymous namespace:
//
//   Vec                      kLanes floats (4, 8 or 16)
//   Load Store Set1 Zero     memory and constants (unaligned is always legal)
//   LoadOnce                 Load into a register, for several uses: the compiler does
//                            not repeat it as an operand in memory of each
//   Stream                   Store past the caches: p aligned to the Vec, and
//                            _mm_sfence() before anybody else may read
//   LoadInOrder StoreInOrder Load and Store that the compiler leaves where they stand
//   Set1InOrder(p)           Set1(*p), likewise
//   LoadN StoreN             the first n lanes, 0 <= n <= kLanes; never touches
//                            memory beyond lane n - 1; the rest reads as zero
//   AtMostLanes(n)           such an n: of any n, what is between 0 and kLanes
//   LoadUpTo StoreUpTo       LoadN and StoreN, which use no mask where n is kLanes
//   Map(y, n, f, x...)       y[i] = f(x[i]...), i below n; y may be one of the x
//   Add Sub Mul Div Max Min  arithmetic; Max and Min return the second operand
//                            when either is NaN (x86 rule)
//   Fma(a, b, c)             a * b + c; fused on avx2 and avx512
//   FmaOnce(a, b, c)         a * b + c, rounded once on every ISA
//   FmaAt(p, b, c)           Fma(Set1(*p), b, c), where avx512 broadcasts as it reads p
//   FmaInto(a, b, &c)        c = Fma(a, b, c) in the register that c is in
//   ReduceAdd ReduceMax      sum of the lanes; the largest, where none is NaN
//   HalfVec                  avx512 only: 8 floats; Fma, Set1Half, Lower(v) the first
//                            lanes of a Vec, Widen(half) with zeros after
//   Sqrt Round               correctly rounded; Round halves to even
//   NegFma(a, b, c)          c - a * b; fused as Fma is
//   ProductError(a, b, p)    a * b - p for p = Mul(a, b): exact on every ISA
//                            short of overflow and underflow
//   And Or Xor               on the bits
//   Mask, Less Equal IsNan   false where an operand is NaN (IsNan: true)
//   All(m)                   true where the mask is in all lanes
//   Select(m, a, b)          m ? a : b, lane by lane
//   KeepFirst(v, n)          lanes 0 .. n - 1 of v, zero in the others; any n
//   IVec                     kLanes int32: SetInt AddInt SubInt MulInt (modulo 2^32) ShiftLeft<k>
//                            ShiftRight<k> (arithmetic) ToFloat
//   OrXor(acc, a, b)         acc | (a ^ b)
//   HasAny(i, bits)          true where a lane has one of these bits
//   Lookup(table, i)         not generic: table[i mod kLookup], lane by lane, of kLookup
//                            int32 (avx2 8, avx512 32) aligned to 64 bytes
//   ClampMagnitude(a, limit) avx512 only: a between -limit and limit
//   Reciprocal14(a)          avx512 only: 1 / a to 2^-14 of it
//   Bits FromBits            Vec <-> IVec, the bits unchanged
//   ScaleByPow2(a, n)        a * 2^n, rounded once, overflow to inf, gradual
//                            underflow; 0.5 <= a <= 2, n integral, |n| <= 250
//
// The channel block of the blocked layouts is 16 on every ISA, so a block is
// kVecsPerBlock vectors.
#pragma once

#include <immintrin.h>

#include <cstdint>

#ifndef BD_ISA
#error "kernel files are compiled per ISA: see bd_isa_library in cc/build_defs.bzl"
#endif

// Of functions over registers: calls would keep their arrays in memory.
#define BD_INLINE inline __attribute__((always_inline))

#if defined(BD_EMULATED)
#include "cc/simd/vec_avx512_emulated.h"
#elif defined(BD_AVX512)
#include "cc/simd/vec_avx512.h"
#elif defined(__AVX2__)
#include "cc/simd/vec_avx2.h"
#else
#include "cc/simd/vec_generic.h"
#endif

// Before a loop of a number of rounds that the compiler knows, over registers.
#define BD_UNROLL _Pragma("GCC unroll 32")

namespace bd::BD_ISA {
namespace {

constexpr int kBlock = 16;
constexpr int kVecsPerBlock = kBlock / kLanes;

inline int AtMostLanes(int64_t n) { return static_cast<int>(n < 0 ? 0 : n < kLanes ? n : kLanes); }

inline Vec LoadUpTo(const float* p, int n) { return n == kLanes ? Load(p) : LoadN(p, n); }
inline void StoreUpTo(float* p, Vec v, int n) { n == kLanes ? Store(p, v) : StoreN(p, v, n); }

template <typename F, typename... Floats>
inline void Map(float* y, int64_t n, F f, const Floats*... x) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(y + i, f(Load(x + i)...));
  const int left = static_cast<int>(n - i);
  if (left > 0) StoreN(y + i, f(LoadN(x + i, left)...), left);
}

// NaN where either is; Max and Min alone would drop a NaN in a.
inline Vec MaxOrNan(Vec a, Vec b) { return Select(IsNan(a), a, Max(a, b)); }
inline Vec MinOrNan(Vec a, Vec b) { return Select(IsNan(a), a, Min(a, b)); }

#if !defined(BD_EMULATED)

inline Vec LoadOnce(const float* p) {
  Vec v = Load(p);
  __asm__("" : "+v"(v));
  return v;
}

BD_INLINE Vec LoadInOrder(const float* p) {
  using Unaligned __attribute__((aligned(4), may_alias)) = Vec;
  return *reinterpret_cast<const volatile Unaligned*>(p);
}

BD_INLINE void StoreInOrder(float* p, Vec v) {
  __asm__ volatile("" : "+v"(v) : : "memory");
  Store(p, v);
}

#endif

}  // namespace
}  // namespace bd::BD_ISA
