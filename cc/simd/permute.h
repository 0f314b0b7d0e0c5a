// Permutations of the lanes of a vector by numbers in memory; not on generic.
//
// Three kinds of lanes, of 1, 2 and 4 bytes: ByteLanes (128 bits), WordLanes (avx512 only) and
// DwordLanes (a whole Vec). Of each:
//
//   Data, Control            a vector of bits; the numbers of its lanes, as registers hold them
//   Nothing()                all bits zero
//   LoadControl(p)           from sizeof(Data) bytes: one number a lane, as wide as the lane
//   Take(acc, control, src)  acc with lanes replaced: lane i becomes lane control[i] of the vector
//                            at src, unless the sign bit of control[i] is set. Of ByteLanes acc
//                            is zero in all lanes that are replaced.
//   Store(dst, data)
#pragma once

#include "cc/simd/vec.h"

#if defined(__AVX2__)

namespace bd::BD_ISA {
namespace {

struct ByteLanes {
  using Data = __m128i;
  using Control = __m128i;
  static Data Nothing() { return _mm_setzero_si128(); }
  static Control LoadControl(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static Data Take(Data acc, Control control, const uint8_t* src) {
    return _mm_or_si128(acc, _mm_shuffle_epi8(LoadControl(src), control));
  }
  static void Store(uint8_t* dst, Data data) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), data);
  }
};

}  // namespace
}  // namespace bd::BD_ISA

#if defined(BD_EMULATED)
#include "cc/simd/permute_avx512_emulated.h"
#elif defined(BD_AVX512)
#include "cc/simd/permute_avx512.h"
#else
#include "cc/simd/permute_avx2.h"
#endif

#endif  // __AVX2__
