// Reorders: a tensor, copied from one place in memory to another, in another layout
// and of another type.
//
//   ReorderDesc -> MakeReorderPlan -> ReorderPlan (immutable) -> RunReorder
//
// Any two descriptions of equal dims. Every element becomes
//
//   dst = scale * src + beta * dst
//
// computed in float32 and then rounded to nearest, ties to even, and saturated to
// the type of dst (cc/simd/convert/convert.h). Integers may stand for other numbers
// (cc/base/quantization.h). Where types are equal and nothing is scaled or
// added the bits are copied. The tail of a blocked dst becomes zero, whatever its
// memory held; the tail of a blocked src does not matter. Memory of dst between
// its elements, where it is not dense, is left alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/quantization.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/reorder/reorder_kernel.h"
#include "cc/layout/tensor_desc.h"
#include "cc/layout/tensor_view.h"

namespace bd {

struct ReorderDesc {
  TensorDesc src, dst;
  // One scale for each index of the dimensions whose bits are set in the mask (bit
  // d for dims()[d]), in row-major order: one for mask 0. Empty: 1.
  std::vector<float> scales;
  int scale_mask = 0;
  float beta = 0;  // 0: dst is not read
  Quantization src_quantization, dst_quantization;

  // Whether elements keep their bits.
  bool copies() const {
    return src.dtype() == dst.dtype() && scales.empty() && beta == 0 &&
           src_quantization == dst_quantization;
  }
};

// A nest of loops over a part of the elements, or over a tail that becomes zero. The
// innermost two are a kernel's tile; they are cut into pieces of a bearable size.
struct ReorderNest {
  bool zero = false;
  ReorderLoop first;               // where all loops start; its count does not matter
  std::vector<ReorderLoop> loops;  // over pieces, outermost first
  ReorderLoop rows, cols;
  int64_t piece_rows = 1, piece_cols = 1;
  int row_loop = 0, col_loop = 0;  // those of `loops` that go over pieces of a tile
  int64_t pieces = 0, pieces_per_task = 0, tasks = 0;
};

// Immutable once made; safe to run on many threads.
struct ReorderPlan {
  ReorderDesc desc;
  int64_t tasks = 0;

  // Activations between channels last and blocks of 16, in float: strips of pixels.
  StripKernel strip_kernel = nullptr;      // null: the nests below instead
  StripKernel streaming_kernel = nullptr;  // if dst is aligned; may be null
  TensorView src, dst;
  int64_t strip = 0;   // pixels a task
  int64_t strips = 0;  // of one image

  ReorderTileKernel tile_kernel = nullptr;
  std::vector<ReorderNest> nests;
};

// Returns an empty string, or one line that names what is wrong: unequal dims,
// elements of dst that overlap, another number of scales than the mask asks for.
std::string CheckReorder(const ReorderDesc& desc);

// Returns what CheckReorder does. Sizes of zero are legal and give no task.
std::string MakeReorderPlan(const ReorderDesc& desc, Isa isa, ReorderPlan* plan);

// src and dst are the starts of the memory that the descriptions speak of. They
// must not overlap.
void RunReorder(const ReorderPlan& plan, const void* src, void* dst, ThreadPool& pool);

}  // namespace bd
