// Permutations on AVX2. Included by cc/simd/permute.h only.
#pragma once

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// The blend takes the old lane where the sign bit is set.
struct DwordLanes {
  using Data = __m256;
  using Control = __m256i;
  static Data Nothing() { return _mm256_setzero_ps(); }
  static Control LoadControl(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Data Take(Data acc, Control control, const uint8_t* src) {
    const Data data = _mm256_loadu_ps(reinterpret_cast<const float*>(src));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(data, control), acc,
                            _mm256_castsi256_ps(control));
  }
  static void Store(uint8_t* dst, Data data) {
    _mm256_storeu_ps(reinterpret_cast<float*>(dst), data);
  }
};

}  // namespace
}  // namespace bd::BD_ISA
