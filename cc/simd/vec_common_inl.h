// What is one intrinsic of the same name on every instruction set; BD_MM(name) is that of the width
// of the vectors. Included by the files of vec.h inside of their namespace.
#pragma once

inline Vec Load(const float* p) { return BD_MM(loadu_ps)(p); }
inline void Store(float* p, Vec v) { BD_MM(storeu_ps)(p, v); }
inline void Stream(float* p, Vec v) { BD_MM(stream_ps)(p, v); }
inline Vec Set1(float x) { return BD_MM(set1_ps)(x); }
inline Vec Zero() { return BD_MM(setzero_ps)(); }

inline Vec Add(Vec a, Vec b) { return BD_MM(add_ps)(a, b); }
inline Vec Sub(Vec a, Vec b) { return BD_MM(sub_ps)(a, b); }
inline Vec Mul(Vec a, Vec b) { return BD_MM(mul_ps)(a, b); }
inline Vec Div(Vec a, Vec b) { return BD_MM(div_ps)(a, b); }
inline Vec Max(Vec a, Vec b) { return BD_MM(max_ps)(a, b); }
inline Vec Min(Vec a, Vec b) { return BD_MM(min_ps)(a, b); }
inline Vec Sqrt(Vec a) { return BD_MM(sqrt_ps)(a); }
inline Vec And(Vec a, Vec b) { return BD_MM(and_ps)(a, b); }
inline Vec Or(Vec a, Vec b) { return BD_MM(or_ps)(a, b); }
inline Vec Xor(Vec a, Vec b) { return BD_MM(xor_ps)(a, b); }

inline IVec SetInt(int32_t i) { return BD_MM(set1_epi32)(i); }
inline Vec ToFloat(IVec i) { return BD_MM(cvtepi32_ps)(i); }
inline IVec AddInt(IVec a, IVec b) { return BD_MM(add_epi32)(a, b); }
inline IVec SubInt(IVec a, IVec b) { return BD_MM(sub_epi32)(a, b); }
template <int kBits>
inline IVec ShiftLeft(IVec a) {
  return BD_MM(slli_epi32)(a, kBits);
}
template <int kBits>
inline IVec ShiftRight(IVec a) {
  return BD_MM(srai_epi32)(a, kBits);
}

#if defined(BD_EMULATED) || !defined(BD_AVX512)
inline Vec ScaleByPow2(Vec a, Vec n) {
  // 2^n may not be a float where a * 2^n is: multiply by both halves.
  const IVec whole = BD_MM(cvtps_epi32)(n), half = ShiftRight<1>(whole), bias = SetInt(127);
  const Vec first = FromBits(ShiftLeft<23>(AddInt(half, bias)));
  const Vec second = FromBits(ShiftLeft<23>(AddInt(SubInt(whole, half), bias)));
  return Mul(Mul(a, first), second);
}
#endif

#if defined(__AVX2__)
inline Vec Fma(Vec a, Vec b, Vec c) { return BD_MM(fmadd_ps)(a, b, c); }
inline Vec FmaOnce(Vec a, Vec b, Vec c) { return Fma(a, b, c); }
inline Vec NegFma(Vec a, Vec b, Vec c) { return BD_MM(fnmadd_ps)(a, b, c); }
inline Vec ProductError(Vec a, Vec b, Vec product) { return BD_MM(fmsub_ps)(a, b, product); }
inline Vec SwapPairs(Vec v) { return BD_MM(permute_ps)(v, 0x4e); }
inline Vec SwapNeighbours(Vec v) { return BD_MM(permute_ps)(v, 0xb1); }
inline IVec MulInt(IVec a, IVec b) { return BD_MM(mullo_epi32)(a, b); }
#endif
