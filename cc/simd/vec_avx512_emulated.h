// The interface of vec_avx512.h on a machine with AVX2: a Vec is two vectors of vec_avx2.h. Kernels
// for AVX-512 compile and run under it, so that they are tested everywhere; nothing here is meant
// to be fast. Included by cc/simd/vec.h only.
//
// Each word but Reciprocal14 gives what the one of vec_avx512.h gives, bit for bit: the operations
// are those of AVX2, half by half, and sums over lanes are taken in the same order.
#pragma once

#include <immintrin.h>

#include <cstdint>

#pragma push_macro("BD_ISA")
#undef BD_ISA
#define BD_ISA halves
#include "cc/simd/vec_avx2.h"
#pragma pop_macro("BD_ISA")

namespace bd::BD_ISA {
namespace {

struct Vec {
  halves::Vec lo, hi;
};
constexpr int kLanes = 16;
constexpr int kHalf = 8;

inline Vec Load(const float* p) { return {halves::Load(p), halves::Load(p + kHalf)}; }
inline void Store(float* p, Vec v) {
  halves::Store(p, v.lo);
  halves::Store(p + kHalf, v.hi);
}
inline void Stream(float* p, Vec v) {
  halves::Stream(p, v.lo);
  halves::Stream(p + kHalf, v.hi);
}
// A masked access of no lane touches nothing, whatever its address.
inline Vec LoadN(const float* p, int n) {
  return {halves::LoadN(p, n), halves::LoadN(p + kHalf, n - kHalf)};
}
inline void StoreN(float* p, Vec v, int n) {
  halves::StoreN(p, v.lo, n);
  halves::StoreN(p + kHalf, v.hi, n - kHalf);
}
// The compiler may move and repeat these; only speed depends on it.
inline Vec LoadOnce(const float* p) { return Load(p); }
inline Vec LoadInOrder(const float* p) { return Load(p); }
inline void StoreInOrder(float* p, Vec v) { Store(p, v); }

inline Vec Set1(float x) { return {halves::Set1(x), halves::Set1(x)}; }
inline Vec Set1InOrder(const float* p) { return Set1(*p); }
inline Vec Zero() { return {halves::Zero(), halves::Zero()}; }

#define BD_OF_ONE(Result, Operand, Word) \
  inline Result Word(Operand a) { return {halves::Word(a.lo), halves::Word(a.hi)}; }
#define BD_OF_TWO(Result, Operand, Word)                         \
  inline Result Word(Operand a, Operand b) {                     \
    return {halves::Word(a.lo, b.lo), halves::Word(a.hi, b.hi)}; \
  }
#define BD_OF_THREE(Result, Operand, Word)                                   \
  inline Result Word(Operand a, Operand b, Operand c) {                      \
    return {halves::Word(a.lo, b.lo, c.lo), halves::Word(a.hi, b.hi, c.hi)}; \
  }

BD_OF_TWO(Vec, Vec, Add)
BD_OF_TWO(Vec, Vec, Sub)
BD_OF_TWO(Vec, Vec, Mul)
BD_OF_TWO(Vec, Vec, Div)
BD_OF_TWO(Vec, Vec, Max)
BD_OF_TWO(Vec, Vec, Min)
BD_OF_TWO(Vec, Vec, And)
BD_OF_TWO(Vec, Vec, Or)
BD_OF_TWO(Vec, Vec, Xor)
BD_OF_ONE(Vec, Vec, Sqrt)
BD_OF_ONE(Vec, Vec, Round)
BD_OF_ONE(Vec, Vec, SwapPairs)
BD_OF_ONE(Vec, Vec, SwapNeighbours)
BD_OF_THREE(Vec, Vec, Fma)
BD_OF_THREE(Vec, Vec, FmaOnce)
BD_OF_THREE(Vec, Vec, NegFma)
BD_OF_THREE(Vec, Vec, ProductError)

inline Vec LoadQuads(const float* p, int64_t stride) {
  return {halves::LoadQuads(p, stride), halves::LoadQuads(p + 2 * stride, stride)};
}
inline void StoreQuads(float* p, int64_t stride, Vec v) {
  halves::StoreQuads(p, stride, v.lo);
  halves::StoreQuads(p + 2 * stride, stride, v.hi);
}
inline void FmaInto(Vec a, Vec b, Vec* c) { *c = Fma(a, b, *c); }
inline Vec FmaAt(const float* a, Vec b, Vec c) { return Fma(Set1(*a), b, c); }
inline Vec AddAt(const float* a, Vec b) { return Add(b, Set1(*a)); }
inline Vec SubAt(Vec a, const float* b) { return Sub(a, Set1(*b)); }

using HalfVec = halves::Vec;
inline HalfVec FmaAt(const float* a, HalfVec b, HalfVec c) { return halves::FmaAt(a, b, c); }
inline HalfVec AddAt(const float* a, HalfVec b) { return halves::Add(b, halves::Set1(*a)); }
inline HalfVec SubAt(HalfVec a, const float* b) { return halves::Sub(a, halves::Set1(*b)); }
inline HalfVec NegFma(HalfVec a, HalfVec b, HalfVec c) { return halves::NegFma(a, b, c); }
inline HalfVec Fma(HalfVec a, HalfVec b, HalfVec c) { return halves::Fma(a, b, c); }
inline HalfVec Set1Half(float x) { return halves::Set1(x); }
inline HalfVec Lower(Vec v) { return v.lo; }
inline Vec Widen(HalfVec v) { return {v, halves::Zero()}; }

inline Vec OddsToEvens(Vec v) { return {_mm256_movehdup_ps(v.lo), _mm256_movehdup_ps(v.hi)}; }
inline float ReduceAdd(Vec v) { return halves::ReduceAdd(halves::Add(v.lo, v.hi)); }
inline float ReduceMax(Vec v) { return halves::ReduceMax(halves::Max(v.lo, v.hi)); }
// Within 128 bits even lanes and odd lanes, then both; then neighbours of 128 bits, then all.
inline Vec ReduceAddEach(const Vec (&v)[16]) {
  float sums[16];
  for (int i = 0; i < 16; ++i) {
    float x[16], quad[4];
    Store(x, v[i]);
    for (int q = 0; q < 4; ++q) {
      quad[q] = (x[4 * q] + x[4 * q + 2]) + (x[4 * q + 1] + x[4 * q + 3]);
    }
    sums[i] = (quad[0] + quad[1]) + (quad[2] + quad[3]);
  }
  return Load(sums);
}

struct Mask {
  halves::Mask lo, hi;
};
BD_OF_TWO(Mask, Vec, Less)
BD_OF_TWO(Mask, Vec, Equal)
BD_OF_ONE(Mask, Vec, IsNan)
inline bool All(Mask m) { return halves::All(m.lo) && halves::All(m.hi); }
inline Vec Select(Mask m, Vec a, Vec b) {
  return {halves::Select(m.lo, a.lo, b.lo), halves::Select(m.hi, a.hi, b.hi)};
}
inline Vec KeepFirst(Vec v, int n) {
  return {halves::KeepFirst(v.lo, n), halves::KeepFirst(v.hi, n - kHalf)};
}

struct IVec {
  halves::IVec lo, hi;
};
inline IVec SetInt(int32_t i) { return {halves::SetInt(i), halves::SetInt(i)}; }
BD_OF_ONE(IVec, Vec, Bits)
BD_OF_ONE(Vec, IVec, FromBits)
BD_OF_ONE(Vec, IVec, ToFloat)
BD_OF_TWO(IVec, IVec, AddInt)
BD_OF_TWO(IVec, IVec, SubInt)
BD_OF_TWO(IVec, IVec, MulInt)
BD_OF_THREE(IVec, IVec, OrXor)
template <int kBits>
inline IVec ShiftLeft(IVec a) {
  return {halves::ShiftLeft<kBits>(a.lo), halves::ShiftLeft<kBits>(a.hi)};
}
template <int kBits>
inline IVec ShiftRight(IVec a) {
  return {halves::ShiftRight<kBits>(a.lo), halves::ShiftRight<kBits>(a.hi)};
}
inline bool HasAny(IVec i, int32_t bits) {
  return halves::HasAny(i.lo, bits) || halves::HasAny(i.hi, bits);
}
constexpr int kLookup = 32;
inline IVec Lookup(const int32_t* table, IVec i) {
  const halves::IVec last = halves::SetInt(kLookup - 1);
  return {_mm256_i32gather_epi32(table, _mm256_and_si256(i.lo, last), 4),
          _mm256_i32gather_epi32(table, _mm256_and_si256(i.hi, last), 4)};
}
BD_OF_TWO(Vec, Vec, ScaleByPow2)
inline Vec Reciprocal14(Vec a) { return Div(Set1(1.f), a); }
inline Vec ClampMagnitude(Vec a, Vec limit) { return Min(limit, Max(Sub(Zero(), limit), a)); }

#undef BD_OF_ONE
#undef BD_OF_TWO
#undef BD_OF_THREE

}  // namespace
}  // namespace bd::BD_ISA
