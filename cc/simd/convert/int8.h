// Products of bytes, added up exactly in int32: of unsigned by signed ones, four at a time, or two
// at a time of what was widened before.
//
//   UnsignedQuads       kLanes groups of 4 unsigned bytes; SignedQuads: of signed ones
//   SetQuad(p)          p[0] to p[3] in all lanes
//   LoadQuads(p)        those at p, group i being p[4 i] to p[4 i + 3]; of either sign
//   DotQuads(acc, a, b) acc + a[0] b[0] + a[1] b[1] + a[2] b[2] + a[3] b[3], lane by lane, modulo
//                       2^32
//   FlipSigns(a)        AVX-512 only: a + 128 modulo 2^8, which makes signed bytes unsigned ones
//   AsQuads(i)          likewise: the unsigned bytes of dwords
//
//   SetWords(p)         the words p[0] and p[1] in all lanes; LoadWords(p): kLanes pairs of them
//   DotWords(acc, a, b) acc + a[0] b[0] + a[1] b[1], the same way
//   LoadBytes(p), StoreBlockOfBytes(p, x), MaxBytes(x, y)   16 unsigned bytes
//   WidenBlock(p, to)   16 unsigned bytes as words
//   WidenPairs(p, q, to)  16 pairs of words, a byte of p and one of q each
//   InterleaveQuads(p, to)  16 groups of 4 unsigned bytes, one of each p[0] to p[3]
//   TransposedQuads(p)  the same of 4 blocks of 16 that follow one another, in a register
//
// With AVX512_VNNI and AVX-VNNI four are VPDPBUSD, and two words VPDPWSSD. Other sets multiply
// words of 16 bits (VPMADDWD), even bytes and odd ones: VPMADDUBSW would saturate, since 2 * 255 *
// 127 is no int16. That takes a shift for each product and sum, which words that lie in memory do
// without.
#pragma once

#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

inline int32_t FourBytes(const void* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return quad;
}

#if defined(BD_EMULATED)
inline IVec ProductsOfWords(IVec a, IVec b) {
  return {_mm256_madd_epi16(a.lo, b.lo), _mm256_madd_epi16(a.hi, b.hi)};
}
#elif defined(BD_AVX512)
inline IVec ProductsOfWords(IVec a, IVec b) { return _mm512_madd_epi16(a, b); }
#elif defined(__AVX2__)
inline IVec ProductsOfWords(IVec a, IVec b) { return _mm256_madd_epi16(a, b); }
#else
inline IVec ProductsOfWords(IVec a, IVec b) { return _mm_madd_epi16(a, b); }
#endif

inline IVec SetWords(const int16_t* p) { return SetInt(FourBytes(p)); }
inline IVec LoadWords(const int16_t* p) { return LoadInt(reinterpret_cast<const int32_t*>(p)); }
inline IVec DotWords(IVec acc, IVec a, IVec b) {
#if defined(__AVX512VNNI__)
  return _mm512_dpwssd_epi32(acc, a, b);
#elif defined(__AVXVNNI__)
  return _mm256_dpwssd_avx_epi32(acc, a, b);
#else
  return AddInt(acc, ProductsOfWords(a, b));
#endif
}

inline void StoreWords(int16_t* to, __m128i bytes) {
#if defined(__AVX2__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepu8_epi16(bytes));
#else
  __m128i* const out = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(out, _mm_unpacklo_epi8(bytes, _mm_setzero_si128()));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi8(bytes, _mm_setzero_si128()));
#endif
}
inline __m128i LoadBytes(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline void StoreBlockOfBytes(uint8_t* p, __m128i bytes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
inline __m128i MaxBytes(__m128i x, __m128i y) { return _mm_max_epu8(x, y); }
inline void WidenBlock(const uint8_t* p, int16_t* to) { StoreWords(to, LoadBytes(p)); }
inline void WidenPairs(const uint8_t* p, const uint8_t* q, int16_t* to) {
  const __m128i of_p = LoadBytes(p), of_q = LoadBytes(q);
  StoreWords(to, _mm_unpacklo_epi8(of_p, of_q));
  StoreWords(to + 16, _mm_unpackhi_epi8(of_p, of_q));
}

inline void InterleaveQuads(const uint8_t* const* p, uint8_t* to) {
  const __m128i a = LoadBytes(p[0]), b = LoadBytes(p[1]), c = LoadBytes(p[2]), d = LoadBytes(p[3]);
  const __m128i ab_low = _mm_unpacklo_epi8(a, b), ab_high = _mm_unpackhi_epi8(a, b);
  const __m128i cd_low = _mm_unpacklo_epi8(c, d), cd_high = _mm_unpackhi_epi8(c, d);
  __m128i* const out = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(out, _mm_unpacklo_epi16(ab_low, cd_low));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(ab_low, cd_low));
  _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(ab_high, cd_high));
  _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(ab_high, cd_high));
}

#if defined(BD_VNNI) && !defined(BD_AVX512)

using UnsignedQuads = IVec;
using SignedQuads = IVec;

inline UnsignedQuads SetQuad(const uint8_t* p) { return SetInt(FourBytes(p)); }
inline IVec LoadQuads(const void* p) { return LoadInt(static_cast<const int32_t*>(p)); }
inline IVec DotQuads(IVec acc, UnsignedQuads a, SignedQuads b) {
#if defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(acc, a, b);
#else  // the emulation, for tests
  const IVec low = _mm256_set1_epi16(0xff);
  const IVec even =
      ProductsOfWords(_mm256_and_si256(a, low), _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
  const IVec odd = ProductsOfWords(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
  return AddInt(acc, AddInt(even, odd));
#endif
}

#elif defined(BD_VNNI) && !defined(BD_EMULATED)

using UnsignedQuads = IVec;
using SignedQuads = IVec;

inline UnsignedQuads SetQuad(const uint8_t* p) { return SetInt(FourBytes(p)); }
inline SignedQuads SetQuad(const int8_t* p) { return SetInt(FourBytes(p)); }
inline UnsignedQuads AsQuads(IVec bytes) { return bytes; }
inline UnsignedQuads FlipSigns(UnsignedQuads a) {
  return _mm512_xor_si512(a, _mm512_set1_epi8(-128));
}
inline UnsignedQuads LoadQuads(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline SignedQuads LoadQuads(const int8_t* p) { return _mm512_loadu_si512(p); }
inline IVec DotQuads(IVec acc, UnsignedQuads a, SignedQuads b) {
  return _mm512_dpbusd_epi32(acc, a, b);
}
inline UnsignedQuads TransposedQuads(const uint8_t* p) {
  // Dwords first, so that each 128 bits have what they will hold.
  const IVec dwords = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const IVec bytes =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(dwords, _mm512_loadu_si512(p)), bytes);
}

#else

// As words of 16 bits: bytes 0 and 2 of each group, and bytes 1 and 3.
struct Words {
  IVec even, odd;
};
using UnsignedQuads = Words;
using SignedQuads = Words;

#if defined(BD_EMULATED)
#define BD_OF_WORDS(intrinsic, i, n) \
  IVec { _mm256_##intrinsic(i.lo, n), _mm256_##intrinsic(i.hi, n) }
#elif defined(BD_AVX512)
#define BD_OF_WORDS(intrinsic, i, n) _mm512_##intrinsic(i, n)
#elif defined(__AVX2__)
#define BD_OF_WORDS(intrinsic, i, n) _mm256_##intrinsic(i, n)
#else
#define BD_OF_WORDS(intrinsic, i, n) _mm_##intrinsic(i, n)
#endif

inline Words UnsignedWords(IVec bytes) {
  return {BD_OF_WORDS(srli_epi16, BD_OF_WORDS(slli_epi16, bytes, 8), 8),
          BD_OF_WORDS(srli_epi16, bytes, 8)};
}
inline UnsignedQuads SetQuad(const uint8_t* p) { return UnsignedWords(SetInt(FourBytes(p))); }
inline Words LoadQuads(const uint8_t* p) {
  return UnsignedWords(LoadInt(reinterpret_cast<const int32_t*>(p)));
}
inline Words LoadQuads(const int8_t* p) {
  const IVec bytes = LoadInt(reinterpret_cast<const int32_t*>(p));
  return {BD_OF_WORDS(srai_epi16, BD_OF_WORDS(slli_epi16, bytes, 8), 8),
          BD_OF_WORDS(srai_epi16, bytes, 8)};
}
inline IVec DotQuads(IVec acc, UnsignedQuads a, SignedQuads b) {
  return DotWords(DotWords(acc, a.even, b.even), a.odd, b.odd);
}

#if defined(BD_AVX512)
inline SignedQuads SetQuad(const int8_t* p) {
  const IVec bytes = SetInt(FourBytes(p));
  return {BD_OF_WORDS(srai_epi16, BD_OF_WORDS(slli_epi16, bytes, 8), 8),
          BD_OF_WORDS(srai_epi16, bytes, 8)};
}
inline UnsignedQuads AsQuads(IVec bytes) { return UnsignedWords(bytes); }
inline UnsignedQuads FlipSigns(UnsignedQuads a) {
  const IVec zero = SetInt(0), sign = SetInt(0x00800080);
  return {OrXor(zero, a.even, sign), OrXor(zero, a.odd, sign)};
}
inline UnsignedQuads TransposedQuads(const uint8_t* p) {
  const uint8_t* const blocks[] = {p, p + 16, p + 32, p + 48};
  uint8_t quads[64];
  InterleaveQuads(blocks, quads);
  return LoadQuads(quads);
}
#endif

#undef BD_OF_WORDS

#endif

}  // namespace
}  // namespace bd::BD_ISA
