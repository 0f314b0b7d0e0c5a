// Vec on AVX2 + FMA: 8 floats. Included by cc/simd/vec.h only.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace bd::BD_ISA {
namespace {

using Vec = __m256;
using IVec = __m256i;
constexpr int kLanes = 8;
inline IVec Bits(Vec v) { return _mm256_castps_si256(v); }
inline Vec FromBits(IVec i) { return _mm256_castsi256_ps(i); }
#define BD_MM(intrinsic) _mm256_##intrinsic
#include "cc/simd/vec_common_inl.h"

inline __m256i LaneMask(int n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}
inline Vec LoadN(const float* p, int n) { return _mm256_maskload_ps(p, LaneMask(n)); }
inline void StoreN(float* p, Vec v, int n) {
  if (n == kLanes) return Store(p, v);  // a masked store takes Zen 3 as long as a gelu
  _mm256_maskstore_ps(p, LaneMask(n), v);
}
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

inline Vec Round(Vec a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

using Mask = __m256;
inline Mask Less(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
inline Mask Equal(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
inline Mask IsNan(Vec a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
inline bool All(Mask m) { return _mm256_movemask_ps(m) == 0xff; }
inline Vec Select(Mask m, Vec a, Vec b) { return _mm256_blendv_ps(b, a, m); }
inline Vec KeepFirst(Vec v, int n) { return And(v, _mm256_castsi256_ps(LaneMask(n))); }

inline IVec OrXor(IVec acc, IVec a, IVec b) { return _mm256_or_si256(acc, _mm256_xor_si256(a, b)); }
inline bool HasAny(IVec i, int32_t bits) { return _mm256_testz_si256(i, SetInt(bits)) == 0; }
constexpr int kLookup = 8;
inline IVec Lookup(const int32_t* table, IVec i) {
  return _mm256_permutevar8x32_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(table)), i);
}

}  // namespace
}  // namespace bd::BD_ISA
