// Vec on AVX2 + FMA: 8 floats. Included by cc/simd/vec.h only.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace bd::BD_ISA {
namespace {

using Vec = __m256;
constexpr int kLanes = 8;

inline Vec Load(const float* p) { return _mm256_loadu_ps(p); }
inline void Store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
inline void Stream(float* p, Vec v) { _mm256_stream_ps(p, v); }
inline __m256i LaneMask(int n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}
inline Vec LoadN(const float* p, int n) { return _mm256_maskload_ps(p, LaneMask(n)); }
inline void StoreN(float* p, Vec v, int n) {
  if (n == kLanes) return Store(p, v);  // a masked store takes Zen 3 as long as a gelu
  _mm256_maskstore_ps(p, LaneMask(n), v);
}
inline Vec Set1(float x) { return _mm256_set1_ps(x); }
inline Vec Zero() { return _mm256_setzero_ps(); }
inline Vec Add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec Sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
inline Vec Mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
inline Vec Div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
inline Vec Max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec Min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
inline Vec Fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
inline Vec FmaOnce(Vec a, Vec b, Vec c) { return Fma(a, b, c); }
inline Vec FmaAt(const float* a, Vec b, Vec c) { return Fma(Set1(*a), b, c); }
// GCC lets a broadcast become the sum and moves registers about, so this is in its own words.
inline void FmaInto(Vec a, Vec b, Vec* c) {
  __asm__("vfmadd231ps %1, %2, %0" : "+x"(*c) : "x"(a), "x"(b));
}
inline Vec Set1InOrder(const float* p) {
  Vec v;
  __asm__ volatile("vbroadcastss %1, %0" : "=x"(v) : "m"(*p));
  return v;
}
inline float ReduceAdd(Vec v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
inline float ReduceMax(Vec v) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

inline Vec LoadQuads(const float* p, int64_t stride) { return _mm256_loadu2_m128(p + stride, p); }
inline void StoreQuads(float* p, int64_t stride, Vec v) { _mm256_storeu2_m128(p + stride, p, v); }
inline Vec SwapPairs(Vec v) { return _mm256_permute_ps(v, 0x4e); }
inline Vec SwapNeighbours(Vec v) { return _mm256_permute_ps(v, 0xb1); }

inline Vec Sqrt(Vec a) { return _mm256_sqrt_ps(a); }
inline Vec Round(Vec a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Vec And(Vec a, Vec b) { return _mm256_and_ps(a, b); }
inline Vec Or(Vec a, Vec b) { return _mm256_or_ps(a, b); }
inline Vec Xor(Vec a, Vec b) { return _mm256_xor_ps(a, b); }
inline Vec NegFma(Vec a, Vec b, Vec c) { return _mm256_fnmadd_ps(a, b, c); }
inline Vec ProductError(Vec a, Vec b, Vec product) { return _mm256_fmsub_ps(a, b, product); }

using Mask = __m256;
inline Mask Less(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
inline Mask Equal(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
inline Mask IsNan(Vec a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
inline bool All(Mask m) { return _mm256_movemask_ps(m) == 0xff; }
inline Vec Select(Mask m, Vec a, Vec b) { return _mm256_blendv_ps(b, a, m); }
inline Vec KeepFirst(Vec v, int n) { return And(v, _mm256_castsi256_ps(LaneMask(n))); }

using IVec = __m256i;
inline IVec SetInt(int32_t i) { return _mm256_set1_epi32(i); }
inline IVec Bits(Vec v) { return _mm256_castps_si256(v); }
inline Vec FromBits(IVec i) { return _mm256_castsi256_ps(i); }
inline Vec ToFloat(IVec i) { return _mm256_cvtepi32_ps(i); }
inline IVec AddInt(IVec a, IVec b) { return _mm256_add_epi32(a, b); }
inline IVec SubInt(IVec a, IVec b) { return _mm256_sub_epi32(a, b); }
inline IVec MulInt(IVec a, IVec b) { return _mm256_mullo_epi32(a, b); }
template <int kBits>
inline IVec ShiftLeft(IVec a) {
  return _mm256_slli_epi32(a, kBits);
}
template <int kBits>
inline IVec ShiftRight(IVec a) {
  return _mm256_srai_epi32(a, kBits);
}
inline IVec OrXor(IVec acc, IVec a, IVec b) { return _mm256_or_si256(acc, _mm256_xor_si256(a, b)); }
inline bool HasAny(IVec i, int32_t bits) { return _mm256_testz_si256(i, SetInt(bits)) == 0; }
constexpr int kLookup = 8;
inline IVec Lookup(const int32_t* table, IVec i) {
  return _mm256_permutevar8x32_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(table)), i);
}
inline Vec ScaleByPow2(Vec a, Vec n) {
  // 2^n may not be a float where a * 2^n is: multiply by both halves.
  const __m256i whole = _mm256_cvtps_epi32(n), half = ShiftRight<1>(whole), bias = SetInt(127);
  const Vec first = FromBits(ShiftLeft<23>(AddInt(half, bias)));
  const Vec second = FromBits(ShiftLeft<23>(AddInt(SubInt(whole, half), bias)));
  return Mul(Mul(a, first), second);
}

}  // namespace
}  // namespace bd::BD_ISA
