// Resizing the planes of a blocked tensor: nearest pixel or bilinear.
//
//   ResizeDesc -> MakeResizePlan -> ResizePlan (immutable) -> RunResize
//
// Along an axis output o lies at source coordinate
//
//   half_pixel     (o + 1/2) in / out - 1/2
//   asymmetric     o in / out
//   align_corners  o (in - 1) / (out - 1), 0 where out is 1
//
// in float, as TensorFlow computes it. Bilinear takes lower = floor and upper = ceil, both kept
// inside, and v = lower + (upper - lower) fraction, first along the width, then the height. Nearest
// takes floor of the coordinate, which half_pixel has without the last -1/2, or the nearest integer
// (halves away from zero) with align_corners.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/quantization.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/resize/resize_kernel.h"
#include "cc/layout/tensor_view.h"

namespace bd {

// Of rows or columns of dst: a plan has an entry for each, and their coordinates are float, which
// is exact up to 2^24.
constexpr int64_t kMostResizedSide = int64_t{1} << 24;

enum class ResizeKind : int32_t { kNearest, kBilinear };
enum class ResizeCoordinates : int32_t { kHalfPixel, kAsymmetric, kAlignCorners };

// src and dst are of layout nChw16c and any type, equal in n and c; they may be some channels of
// wider tensors. A dst with pixels needs a src with pixels.
struct ResizeDesc {
  ResizeKind kind = ResizeKind::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  TensorView src, dst;
  Quantization src_quantization, dst_quantization;

  ElementType src_type() const { return {src.dtype(), src_quantization}; }
  ElementType dst_type() const { return {dst.dtype(), dst_quantization}; }
};

// Immutable once made; safe to run on many threads.
struct ResizePlan {
  ResizeDesc desc;
  const ResizeKernels* kernels = nullptr;
  Isa isa = Isa::kGeneric;
  std::vector<ResizeTap> rows, columns;  // of each output; of columns in floats from a row's start
  int64_t factor = 0;  // nearest: each pixel is so many neighbours of a row; 0: no such number
  int64_t units = 0, tasks = 0;  // output rows of a block
};

// Returns an empty string, or one line that names what is wrong.
std::string MakeResizePlan(const ResizeDesc& desc, Isa isa, ResizePlan* plan);

// src and dst are the addresses of the first channels; they share no memory.
void RunResize(const ResizePlan& plan, const void* src, void* dst, ThreadPool& pool);

}  // namespace bd
