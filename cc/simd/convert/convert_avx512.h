// Conversions on AVX-512. Included by cc/simd/convert/convert.h only.
#pragma once

#include "cc/base/data_type.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

inline __m128i Load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline __m256i Load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void Store128(void* p, __m128i i) { _mm_storeu_si128(static_cast<__m128i*>(p), i); }
inline void Store256(void* p, __m256i i) { _mm256_storeu_si256(static_cast<__m256i*>(p), i); }

inline IVec LoadInt(const int32_t* p) { return _mm512_loadu_si512(p); }
inline IVec LoadInt(const int8_t* p) { return _mm512_cvtepi8_epi32(Load128(p)); }
inline IVec LoadInt(const uint8_t* p) { return _mm512_cvtepu8_epi32(Load128(p)); }
inline IVec LoadInt(const uint16_t* p) { return _mm512_cvtepu16_epi32(Load256(p)); }

inline void StoreInt(int32_t* p, IVec i) { _mm512_storeu_si512(p, i); }
inline void StoreInt(int8_t* p, IVec i) { Store128(p, _mm512_cvtepi32_epi8(i)); }
inline void StoreInt(uint8_t* p, IVec i) { Store128(p, _mm512_cvtepi32_epi8(i)); }
inline void StoreInt(uint16_t* p, IVec i) { Store256(p, _mm512_cvtepi32_epi16(i)); }

inline void StoreBytes(uint8_t* p, const IVec* i, const ByteBounds& b) {
  IVec low = _mm512_packs_epi32(i[0], i[1]), high = _mm512_packs_epi32(i[2], i[3]);
  if (b.shifts) {
    low = _mm512_adds_epi16(low, b.zero_point);
    high = _mm512_adds_epi16(high, b.zero_point);
  }
  // Each 128 bits hold four bytes of each vector.
  const IVec order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  IVec bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
  if (b.bounds) bytes = _mm512_min_epu8(_mm512_max_epu8(bytes, b.low), b.high);
  _mm512_storeu_si512(p, bytes);
}

inline IVec RoundToInt(Vec v) {
  return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#if defined(BD_AVX512_BF16)
inline void StoreBfloat16(Bfloat16* p, Vec v) {
  Store256(p, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
}
inline void StoreBfloat16(Bfloat16* p, Vec v, Vec w) {
  _mm512_storeu_si512(p, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(w, v)));
}
#endif

inline Vec FloatFromHalf(const Float16* p) { return _mm512_cvtph_ps(Load256(p)); }
inline void StoreHalf(Float16* p, Vec v) {
  Store256(p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

}  // namespace
}  // namespace bd::BD_ISA
