// Contract between the convolution driver and the kernels of inner products of few
// rows whose weights are compressed to 28 bits, without loss.
//
// A column keeps 15 exponents, those of its largest magnitude and below: a weight times
// 2^-shift, the shift being its column's, has an exponent field of 1 to 15, so that bits
// 27 to 30 are zero. A block is 16 columns of 8 rows in 7 vectors of 16 words: word j of
// a column is row j so shifted, and its four free bits are part of row 7. Zero stays
// zero, and a weight of a smaller exponent is stored as zero and listed elsewhere.
#ifndef CC_CORE_CONV_CONV_COMPRESSED_ROWS_KERNEL_H_
#define CC_CORE_CONV_CONV_COMPRESSED_ROWS_KERNEL_H_

#include <cstdint>

#include "cc/base/kernel_table.h"

namespace bd {

constexpr int kPanel = 16;             // columns of a block
constexpr int kCompressedRows = 8;     // rows of a block
constexpr int kCompressedWords = 112;  // floats that a block takes
constexpr int kGroupPanels = 4;        // panels that are stored side by side, at most
constexpr int kKeptExponents = 15;
// Larger weights, and those that are no numbers, cannot be compressed: 2^-shift would
// not be a normal number.
constexpr float kCompressedLimit = 32768.f;

// A weight that is not in its block.
struct LeftOut {
  int32_t k, column;
  float value;
};

// dst[m][c] = bias[c] + sum_k src[m * ic + k] * weight(k, c), k ascending, for `count`
// columns of one group, then the weights left out in their order.
struct CompressedRowsArgs {
  const float* src;
  int64_t rows, ic;
  // [panel][16] powers 2^shift, then [ceil(ic / 8)][panel][112] blocks.
  const float* group;
  int panels;
  const LeftOut* left_out;  // of these columns, of which the first is first_column
  int64_t left_out_count, first_column;
  const float* bias;  // or null
  float* dst;
  int64_t dst_stride, count;
};

// One panel of `rows` (at most 8) rows and `columns` (at most 16) columns: a block.
struct CompressArgs {
  const float* weights;
  int64_t stride;
  int rows, columns;
  const float* least;    // [16] the smallest magnitude that each column keeps
  const float* inverse;  // [16] 2^-shift
  float* block;
};

struct CompressedRowsKernels {
  int max_rows;  // of more, plain weights are faster
  // largest[16] = the largest magnitude of each of `columns` columns; false where one
  // is not below kCompressedLimit.
  bool (*largest)(const float* weights, int64_t stride, int64_t rows, int columns, float* largest);
  // Whether a weight was left out.
  bool (*compress)(const CompressArgs&);
  // weights[8][16] of a block, as they were; scale[16] = 2^shift.
  void (*expand)(const float* block, const float* scale, float* weights);
  void (*multiply)(const CompressedRowsArgs&);
};

BD_KERNEL_TABLE(CompressedRowsKernels)

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_COMPRESSED_ROWS_KERNEL_H_
