// Products of bytes, added up exactly in int32: of unsigned by signed ones, four at a time.
//
//   UnsignedQuads       kLanes groups of 4 unsigned bytes; SignedQuads: of signed ones
//   SetQuad(p)          p[0] to p[3] in all lanes
//   LoadQuads(p)        those at p, group i being p[4 i] to p[4 i + 3]
//   DotQuads(acc, a, b) acc + a[0] b[0] + a[1] b[1] + a[2] b[2] + a[3] b[3], lane by lane, modulo
//                       2^32
//
// With AVX512_VNNI this is VPDPBUSD. Other sets multiply words of 16 bits (VPMADDWD), even bytes
// and odd ones: VPMADDUBSW would saturate, since 2 * 255 * 127 is no int16.
#ifndef CC_SIMD_CONVERT_INT8_H_
#define CC_SIMD_CONVERT_INT8_H_

#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

inline int32_t FourBytes(const void* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return quad;
}

#if defined(BD_AVX512_VNNI) && !defined(BD_EMULATED)

using UnsignedQuads = IVec;
using SignedQuads = IVec;

inline UnsignedQuads SetQuad(const uint8_t* p) { return SetInt(FourBytes(p)); }
inline SignedQuads LoadQuads(const int8_t* p) { return _mm512_loadu_si512(p); }
inline IVec DotQuads(IVec acc, UnsignedQuads a, SignedQuads b) {
  return _mm512_dpbusd_epi32(acc, a, b);
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
inline IVec ProductsOfWords(IVec a, IVec b) {
  return {_mm256_madd_epi16(a.lo, b.lo), _mm256_madd_epi16(a.hi, b.hi)};
}
#elif defined(BD_AVX512)
#define BD_OF_WORDS(intrinsic, i, n) _mm512_##intrinsic(i, n)
inline IVec ProductsOfWords(IVec a, IVec b) { return _mm512_madd_epi16(a, b); }
#elif defined(__AVX2__)
#define BD_OF_WORDS(intrinsic, i, n) _mm256_##intrinsic(i, n)
inline IVec ProductsOfWords(IVec a, IVec b) { return _mm256_madd_epi16(a, b); }
#else
#define BD_OF_WORDS(intrinsic, i, n) _mm_##intrinsic(i, n)
inline IVec ProductsOfWords(IVec a, IVec b) { return _mm_madd_epi16(a, b); }
#endif

inline UnsignedQuads SetQuad(const uint8_t* p) {
  const IVec bytes = SetInt(FourBytes(p));
  return {BD_OF_WORDS(srli_epi16, BD_OF_WORDS(slli_epi16, bytes, 8), 8),
          BD_OF_WORDS(srli_epi16, bytes, 8)};
}
inline SignedQuads LoadQuads(const int8_t* p) {
  const IVec bytes = LoadInt(reinterpret_cast<const int32_t*>(p));
  return {BD_OF_WORDS(srai_epi16, BD_OF_WORDS(slli_epi16, bytes, 8), 8),
          BD_OF_WORDS(srai_epi16, bytes, 8)};
}
inline IVec DotQuads(IVec acc, UnsignedQuads a, SignedQuads b) {
  acc = AddInt(acc, ProductsOfWords(a.even, b.even));
  return AddInt(acc, ProductsOfWords(a.odd, b.odd));
}

#undef BD_OF_WORDS

#endif

}  // namespace
}  // namespace bd::BD_ISA

#endif  // CC_SIMD_CONVERT_INT8_H_
