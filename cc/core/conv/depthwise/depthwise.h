// Depthwise convolution, row by row.
#pragma once

#include <cstdint>

#include "cc/core/conv/common/conv_run.h"
#include "cc/core/conv/depthwise/depthwise_kernel.h"

namespace bd {

// One channel block of an image. What its rows have in common is set once: rows of 14 pixels
// take 200 cycles.
class DepthwiseBlock {
 public:
  // With `inputs` rows for each of the window's, those of an input after those of another.
  DepthwiseBlock(const ConvRun& run, int64_t n, int64_t block, int64_t inputs = 1);

  // Output row h; row_of(r) is source row r of the block, 0 <= r < ih.
  template <typename RowOf>
  void RunRow(int64_t h, RowOf&& row_of) {
    const float* rows[kMaxDepthwiseRows];
    int64_t r = h * d_.sh() - d_.pad_top();
    for (int64_t k = 0; k < d_.kh(); ++k, r += d_.dh()) {
      rows[k] = r >= 0 && r < d_.ih() ? row_of(r) : nullptr;
    }
    Run(h, rows);
  }

  // Output row h, of the rows that the window meets; null where outside. Or a row in memory of its
  // own, where dst is plain.
  void Run(int64_t h, const float* const* rows);
  void RunInto(const float* const* rows, float* dst);

 private:
  const ConvDesc& d_;
  DepthwiseArgs args_;
  int64_t row_of_args_ = 0;  // where its epilogue is
  float* dst_;               // of row 0
  void (*row_)(const DepthwiseArgs&);
};

// Of bytes, for each thread: the rows of src that a window meets in a ring, as dwords
// (depthwise_kernel.h) or padded bytes, and sums. Of others there is nothing to plan but
// tasks.
struct DepthwisePlan {
  int64_t ring_rows = 0;
  // A window is `rows` rows of `taps` dwords, row_distance and tap_columns apart in src;
  // a row of the ring has `columns` dwords or, where the kernel makes quads itself, pixels.
  bool quads = false, bytes = false;
  int64_t rows = 0, taps = 0, row_distance = 0, tap_columns = 0;
  int64_t columns = 0, row_bytes = 0;
  int64_t rows_together = 1;  // of dst, in one call of the kernel
  ScratchPiece<char> ring;
  ScratchPiece<float> sums;
};

// Weights are packed [icb][kh][kw][16], those of bytes as dwords, [icb][rows][taps][16], and after
// them their sums, an int32 a channel.
void PackDepthwise(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool);
void RunDepthwise(const ConvRun& run, ThreadPool& pool);

}  // namespace bd
