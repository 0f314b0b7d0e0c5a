// Reorders: one activation, copied from one memory layout to another.
//
//   ReorderDesc -> MakeReorderPlan -> ReorderPlan (immutable) -> RunReorder
//
// nhwc [N, H, W, C] and nChw16c [N, ceil(C/16), H, W, 16], in f32, any C. A blocked
// dst gets a zero tail, whatever its memory held; the tail of a blocked src does not
// matter.
#ifndef CC_CORE_REORDER_REORDER_H_
#define CC_CORE_REORDER_REORDER_H_

#include <cstdint>
#include <string>

#include "cc/base/isa.h"
#include "cc/base/thread_pool.h"
#include "cc/core/reorder/reorder_kernel.h"
#include "cc/layout/tensor_desc.h"

namespace bd {

struct ReorderDesc {
  Layout src_layout = Layout::nhwc;
  Layout dst_layout = Layout::nChw16c;
  int64_t n = 0, channels = 0, h = 0, w = 0;

  TensorDesc src() const { return TensorDesc({n, channels, h, w}, DataType::f32, src_layout); }
  TensorDesc dst() const { return TensorDesc({n, channels, h, w}, DataType::f32, dst_layout); }
};

// Immutable once made; safe to run on many threads.
struct ReorderPlan {
  ReorderDesc desc;
  // Null where both layouts are the same memory: a copy of copy_floats floats.
  ReorderKernel kernel = nullptr;
  ReorderKernel streaming_kernel = nullptr;  // if dst is aligned; may be null
  int64_t copy_floats = 0;
  int64_t strip = 0;   // pixels (or floats of a copy) a task
  int64_t strips = 0;  // of one image
  int64_t tasks = 0;
};

// Returns an empty string, or one line that names what is wrong. Sizes of zero
// are legal and give no task.
std::string MakeReorderPlan(const ReorderDesc& desc, Isa isa, ReorderPlan* plan);

// src and dst must not overlap.
void RunReorder(const ReorderPlan& plan, const float* src, float* dst, ThreadPool& pool);

// The same, element by element, between any two descriptions of equal dims.
void ReorderRef(const TensorDesc& src_desc, const float* src, const TensorDesc& dst_desc,
                float* dst);

}  // namespace bd

#endif  // CC_CORE_REORDER_REORDER_H_
