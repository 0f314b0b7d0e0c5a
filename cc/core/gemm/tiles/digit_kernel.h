// Contract of the kernel that multiplies few rows of floats with weights of 8 or 4 bits as they are
// packed for product_kernel.h, in integers: a row of floats would have each weight converted first,
// which takes longer than memory takes to bring it.
//
// Number x of a row becomes the integer
//
//   round(x / scale) = 65536 a + 256 b + c,   a in [-127, 127], b and c in [-128, 127],
//
// where scale is the least power of two with which the row's greatest number is one, so that x is
// off by at most 2^-23 of that. Digits are bytes, so that VPDPBUSD multiplies them; their sums are
// exact.
#pragma once

#include "cc/core/gemm/tiles/product_kernel.h"

namespace bd {

constexpr int kDigits = 3;

struct DigitRow {
  DataType weights;  // s8 or u8
  const float* src;
  int64_t k, group;  // s8: group is k
  int8_t* digits;    // DigitBytes
  float* scale;
  int32_t* sums;  // of each group, [high, low]
};

// Of a row: of 4 or 8 numbers, as many as a line of weights has rows, first all digits a.
constexpr int64_t DigitBytes(DataType weights, int64_t k) {
  const int64_t rows = LineRows(weights);
  return (k + rows - 1) / rows * rows * kDigits;
}

// Rows of A in digits.
struct DigitRows {
  const int8_t* digits;  // rows are DigitBytes apart
  const float* scales;   // [rows]
  const int32_t* sums;   // [rows][groups][kDigits]
};

struct DigitKernels {
  // False: a number is not finite, or all are so small or large that floats do not hold the scale.
  bool (*row)(const DigitRow&);
  // The product of product_kernel.h: `src` lies in digits, `group` is k of s8, `init` is the same
  // for all rows, and `columns` columns of scales are there of s8, too.
  void (*multiply)(const ProductArgs&, const DigitRows&);
};

// Null below AVX512_VNNI: without VPDPBUSD floats are as fast.
BD_KERNEL_TABLE_OF(DigitKernels, generic, avx512_vnni)

}  // namespace bd
