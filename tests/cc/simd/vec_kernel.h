// The words of cc/simd/vec.h over arrays, for the tests.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

enum class VecWord {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kSqrt,  // of a
  kRound,
  kAnd,
  kOr,
  kXor,
  kMax,  // of a and b
  kMin,
  kFma,             // a * b + c
  kFmaInto,         // kFma
  kFmaOnce,         // a * b + c, rounded once
  kNegFma,          // c - a * b
  kSet1InOrder,     // the first lane of a, in all
  kProductError,    // a * b - float(a * b)
  kLessSelect,      // a < b ? c : a
  kEqualSelect,     // a == b ? c : a
  kNanSelect,       // a is NaN ? c : a
  kScaleByPow2,     // a * 2^b
  kOrXor,           // a | (b ^ c), bit by bit
  kHasSign,         // 1 where a lane of a's vector has its sign bit, else 0
  kBits,            // the bits of a, shifted left and right by 1, as they come back
  kSwapPairs,       // lanes 2 and 3 of each 4 of a, then 0 and 1
  kSwapNeighbours,  // of a
  kToFloat,         // a float of the bits of a as an integer
};

// Words of 512-bit vectors, on 16 floats each of a, b and c.
enum class WideWord {
  kFmaAt,  // *a * b + c
  kAddAt,  // b + *a
  kSubAt,  // b - *a
  kHalf,   // lanes 0 to 7: *a * b + c, then c - that * b, + *a, - *(a + 1); zeros behind
  kOddsToEvens,
  kOnce,    // LoadOnce(a)
  kStream,  // a, past the caches
};

struct VecKernels {
  int lanes;
  // dst[i] = word(a[i], b[i], c[i]), n a multiple of 16.
  void (*apply)(VecWord word, const float* a, const float* b, const float* c, float* dst,
                int64_t n);
  // dst[0 .. n) = src[0 .. n), n <= lanes; returns the sum over all lanes read.
  float (*copy_first)(const float* src, float* dst, int n);
  // Lanes of src, those from n on as zero.
  void (*keep_first)(const float* src, float* dst, int n);
  // Lanes 4 i to 4 i + 3 from src + i * src_stride to dst + i * dst_stride.
  void (*copy_quads)(const float* src, int64_t src_stride, float* dst, int64_t dst_stride);
  float (*reduce_add)(const float* src);
  float (*reduce_max)(const float* src);
  // Null on generic: Lookup(table, i) for each of `lanes` indices; table has `lookup` entries and
  // is aligned to 64 bytes.
  int lookup;
  void (*look_up)(const int32_t* table, const int32_t* i, int32_t* dst);
  // Null where a Vec has less than 512 bits; dst is aligned to 64 bytes.
  void (*wide)(WideWord word, const float* a, const float* b, const float* c, float* dst);
  void (*reduce_add_each)(const float* src, float* dst);  // sums of 16 rows of 16
};

BD_KERNEL_TABLE(VecKernels)

}  // namespace bd
