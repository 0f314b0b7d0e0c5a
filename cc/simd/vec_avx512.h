// Vec on AVX-512 (F, BW, DQ, VL): 16 floats. Included by cc/simd/vec.h only.
#pragma once

#include <immintrin.h>

#include <cstdint>

// GCC 12 takes the undefined pass-through operand of its own intrinsics for an
// uninitialised variable.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace bd::BD_ISA {
namespace {

using Vec = __m512;
using IVec = __m512i;
constexpr int kLanes = 16;
inline IVec Bits(Vec v) { return _mm512_castps_si512(v); }
inline Vec FromBits(IVec i) { return _mm512_castsi512_ps(i); }
#define BD_MM(intrinsic) _mm512_##intrinsic
#include "cc/simd/vec_common_inl.h"

inline Vec LoadN(const float* p, int n) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
}
inline void StoreN(float* p, Vec v, int n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
}
// GCC shares a broadcast that several multiply-adds use, so this is in its own words.
inline Vec FmaAt(const float* a, Vec b, Vec c) {
  __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
  return c;
}
inline void FmaInto(Vec a, Vec b, Vec* c) {
  __asm__("vfmadd231ps %1, %2, %0" : "+v"(*c) : "v"(a), "v"(b));
}
inline Vec Set1InOrder(const float* p) {
  Vec v;
  __asm__ volatile("vbroadcastss %1, %0" : "=v"(v) : "m"(*p));
  return v;
}
inline Vec AddAt(const float* a, Vec b) {
  Vec sum;
  __asm__("vaddps %2%{1to16%}, %1, %0" : "=v"(sum) : "v"(b), "m"(*a));
  return sum;
}
inline Vec SubAt(Vec a, const float* b) {
  Vec difference;
  __asm__("vsubps %2%{1to16%}, %1, %0" : "=v"(difference) : "v"(a), "m"(*b));
  return difference;
}
using HalfVec = __m256;
inline HalfVec FmaAt(const float* a, HalfVec b, HalfVec c) {
  __asm__("vfmadd231ps %2%{1to8%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
  return c;
}
inline HalfVec AddAt(const float* a, HalfVec b) {
  HalfVec sum;
  __asm__("vaddps %2%{1to8%}, %1, %0" : "=v"(sum) : "v"(b), "m"(*a));
  return sum;
}
inline HalfVec SubAt(HalfVec a, const float* b) {
  HalfVec difference;
  __asm__("vsubps %2%{1to8%}, %1, %0" : "=v"(difference) : "v"(a), "m"(*b));
  return difference;
}
inline HalfVec NegFma(HalfVec a, HalfVec b, HalfVec c) { return _mm256_fnmadd_ps(a, b, c); }
inline HalfVec Fma(HalfVec a, HalfVec b, HalfVec c) { return _mm256_fmadd_ps(a, b, c); }
inline HalfVec Set1Half(float x) { return _mm256_set1_ps(x); }
inline HalfVec Lower(Vec v) { return _mm512_castps512_ps256(v); }
inline Vec Widen(HalfVec v) { return _mm512_zextps256_ps512(v); }
// Lanes 1, 1, 3, 3, ...
inline Vec OddsToEvens(Vec v) { return _mm512_movehdup_ps(v); }
inline float ReduceAdd(Vec v) { return _mm512_reduce_add_ps(v); }
inline float ReduceMax(Vec v) { return _mm512_reduce_max_ps(v); }
// The sums of 16 vectors in 45 instructions: lane i is that of v[i].
inline Vec ReduceAddEach(const Vec (&v)[16]) {
  Vec quads[4];  // of four vectors each, in every 128 bits
  for (int q = 0; q < 4; ++q) {
    const Vec *a = v + 4 * q, *c = a + 2;
    const __m512d ab = _mm512_castps_pd(Add(_mm512_unpacklo_ps(a[0], a[1]),  //
                                            _mm512_unpackhi_ps(a[0], a[1])));
    const __m512d cd = _mm512_castps_pd(Add(_mm512_unpacklo_ps(c[0], c[1]),  //
                                            _mm512_unpackhi_ps(c[0], c[1])));
    quads[q] = Add(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
                   _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
  }
  const auto halve = [](Vec a, Vec b) {
    return Add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  };
  return halve(halve(quads[0], quads[1]), halve(quads[2], quads[3]));
}

inline Vec LoadQuads(const float* p, int64_t stride) {
  Vec v = _mm512_castps128_ps512(_mm_loadu_ps(p));
  v = _mm512_mask_broadcast_f32x4(v, 0x00f0, _mm_loadu_ps(p + stride));
  v = _mm512_mask_broadcast_f32x4(v, 0x0f00, _mm_loadu_ps(p + 2 * stride));
  return _mm512_mask_broadcast_f32x4(v, 0xf000, _mm_loadu_ps(p + 3 * stride));
}
inline void StoreQuads(float* p, int64_t stride, Vec v) {
  _mm_storeu_ps(p, _mm512_castps512_ps128(v));
  _mm_storeu_ps(p + stride, _mm512_extractf32x4_ps(v, 1));
  _mm_storeu_ps(p + 2 * stride, _mm512_extractf32x4_ps(v, 2));
  _mm_storeu_ps(p + 3 * stride, _mm512_extractf32x4_ps(v, 3));
}

inline Vec Round(Vec a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

using Mask = __mmask16;
inline Mask Less(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Mask Equal(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Mask IsNan(Vec a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
inline bool All(Mask m) { return m == 0xffff; }
inline Vec Select(Mask m, Vec a, Vec b) { return _mm512_mask_blend_ps(m, b, a); }
inline Vec KeepFirst(Vec v, int n) {
  return _mm512_maskz_mov_ps(static_cast<Mask>((1u << (n < 0 ? 0 : n < 16 ? n : 16)) - 1), v);
}

inline IVec OrXor(IVec acc, IVec a, IVec b) { return _mm512_ternarylogic_epi32(acc, a, b, 0xf6); }
inline bool HasAny(IVec i, int32_t bits) { return _mm512_test_epi32_mask(i, SetInt(bits)) != 0; }
constexpr int kLookup = 32;
inline IVec Lookup(const int32_t* table, IVec i) {
  return _mm512_permutex2var_epi32(_mm512_load_si512(table), i, _mm512_load_si512(table + 16));
}
inline Vec ClampMagnitude(Vec a, Vec limit) { return _mm512_range_ps(a, limit, 2); }
inline Vec Reciprocal14(Vec a) { return _mm512_rcp14_ps(a); }
inline Vec ScaleByPow2(Vec a, Vec n) { return _mm512_scalef_ps(a, n); }

}  // namespace
}  // namespace bd::BD_ISA

#pragma GCC diagnostic pop
