// Lines of src and dst that Winograd's transforms will touch, asked for during the
// multiplications before them, which leave memory idle. Where both tensors are larger
// than the caches the transforms wait for memory alone: 64x224x224 took 6.41 ms, of which
// 2.3 in transforms, and takes 5.24 (2 threads, minima of four turns; 128x112x112 5.13
// and 4.81).
#ifndef CC_CORE_CONV_WINOGRAD_LINES_AHEAD_H_
#define CC_CORE_CONV_WINOGRAD_LINES_AHEAD_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cc/core/gemm/gemm_panels.h"

namespace bd {

class LinesAhead {
 public:
  enum Access { kRead, kWrite };

  // `pixels` neighbouring pixels of a channel block: a line each.
  void Add(const float* first, int64_t pixels, Access access) {
    if (pixels <= 0) return;
    rows_.push_back({first, pixels, access});
    total_ += pixels;
  }

  // To be called `calls` times by Next.
  void SpreadOver(int64_t calls) { share_ = CeilDiv(total_, calls); }

  // Asks for the next share of the lines, in the order they were added.
  void Next() {
    for (int64_t wanted = share_; wanted > 0 && row_ < rows_.size();) {
      const Row& row = rows_[row_];
      const int64_t count = std::min(wanted, row.pixels - pixel_);
      const float* line = row.first + pixel_ * kBlock;
      if (row.access == kWrite) {
        for (int64_t i = 0; i < count; ++i) __builtin_prefetch(line + i * kBlock, 1, 2);
      } else {
        for (int64_t i = 0; i < count; ++i) __builtin_prefetch(line + i * kBlock, 0, 2);
      }
      wanted -= count;
      pixel_ += count;
      if (pixel_ == row.pixels) {
        ++row_;
        pixel_ = 0;
      }
    }
  }

 private:
  struct Row {
    const float* first;
    int64_t pixels;
    Access access;
  };
  std::vector<Row> rows_;
  int64_t total_ = 0, share_ = 0;
  size_t row_ = 0;
  int64_t pixel_ = 0;
};

}  // namespace bd

#endif  // CC_CORE_CONV_WINOGRAD_LINES_AHEAD_H_
