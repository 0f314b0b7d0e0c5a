// Zeros around the planes of a blocked tensor, or rows and columns cut off.
//
//   PadDesc -> MakePadPlan -> PadPlan (immutable) -> RunPad
//
// dst[i][y][x] = src[i][y - top][x - left], and zero where src has no such pixel; i counts the
// planes, each pixel of which is a block of 16 channels. dst is top + bottom rows taller and left +
// right columns wider; negative numbers cut off.
#pragma once

#include <cstdint>
#include <string>

#include "cc/base/quantization.h"
#include "cc/base/threads/thread_pool.h"

namespace bd {

struct PadDesc {
  int64_t planes = 0, height = 0, width = 0;  // of src
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  ElementType type;

  int64_t dst_height() const { return height + top + bottom; }
  int64_t dst_width() const { return width + left + right; }
};

// Immutable once made; safe to run on many threads.
struct PadPlan {
  PadDesc desc;
  int64_t tasks = 0;
  int64_t zeros_before = 0, copied = 0, first = 0;  // columns of a row; `first` of src
};

// Returns an empty string, or one line that names what is wrong.
std::string MakePadPlan(const PadDesc& desc, PadPlan* plan);

void RunPad(const PadPlan& plan, const void* src, void* dst, ThreadPool& pool);

}  // namespace bd
