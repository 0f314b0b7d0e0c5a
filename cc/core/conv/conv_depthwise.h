// Depthwise convolution, row by row.
#ifndef CC_CORE_CONV_CONV_DEPTHWISE_H_
#define CC_CORE_CONV_CONV_DEPTHWISE_H_

#include <cstdint>

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv_depthwise_kernel.h"
#include "cc/core/conv/conv_run.h"

namespace bd {

// One channel block of an image. What its rows have in common is set once: rows of 14 pixels
// take 200 cycles.
class DepthwiseBlock {
 public:
  DepthwiseBlock(const ConvRun& run, int64_t n, int64_t block);

  // Output row h; row_of(r) is source row r of the block, 0 <= r < ih.
  template <typename RowOf>
  void RunRow(int64_t h, RowOf&& row_of) {
    const float* rows[kMaxDepthwiseRows];
    int64_t r = h * d_.sh - d_.pad_top;
    for (int64_t k = 0; k < d_.kh; ++k, r += d_.dh) {
      rows[k] = r >= 0 && r < d_.ih ? row_of(r) : nullptr;
    }
    Run(h, rows);
  }

 private:
  void Run(int64_t h, const float* const* rows);

  const ConvDesc& d_;
  DepthwiseArgs args_;
  // Of row 0: in dst, in the tensor to add (null: none), and in operands of dst's shape.
  float* dst_;
  const float* sum_;
  int64_t dst_offset_;
  void (*row_)(const DepthwiseArgs&);
};

void RunDepthwise(const ConvRun& run, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_DEPTHWISE_H_
