// Max and average pooling of blocked tensors.
//
//   PoolDesc -> MakePoolPlan -> PoolPlan (immutable) -> RunPool
//
// src is nChw16c, [N, ceil(C/16), H, W, 16], with a zero channel tail; dst is
// blocked too, or plain [N, C] (the same memory as [N, 1, 1, C]) when pooling
// is global. Tails of dst are written as zeros.
//
//   max   max over the window's valid elements; -inf where there is none
//   avg   sum over the valid elements / their number; NaN where there is none
//
// Padding never counts, in explicit padding as in SAME.
#ifndef CC_CORE_POOL_POOL_H_
#define CC_CORE_POOL_POOL_H_

#include <cstdint>
#include <string>

#include "cc/base/isa.h"
#include "cc/base/thread_pool.h"
#include "cc/core/pool/pool_kernel.h"
#include "cc/layout/window.h"

namespace bd {

struct PoolDesc {
  PoolKind kind = PoolKind::kMax;
  int64_t n = 0, channels = 0;
  // Set size, kernel and stride, and the pads when explicit; MakePoolPlan fills
  // the rest.
  Window1d rows, cols;
  Padding padding = Padding::kValid;
  bool plain_dst = false;  // [N, C] instead of [N, Cb, 1, 1, 16]; global only
  // Of a tensor that is part of a wider one: the channel blocks of an image of the latter.
  // 0: it is a tensor of its own.
  int64_t src_image_blocks = 0, dst_image_blocks = 0;

  // One window over the whole h x w plane.
  static PoolDesc Global(PoolKind kind, int64_t n, int64_t channels, int64_t h, int64_t w,
                         bool plain_dst);
};

// Immutable once made; safe to run on many threads.
struct PoolPlan {
  PoolDesc desc;
  int64_t blocks = 0;          // ceil(channels / 16)
  bool whole_plane = false;    // one window that covers the plane
  bool empty_src = false;      // no window has a valid element
  int64_t inner_begin = 0;     // output columns [inner_begin, inner_end) have
  int64_t inner_end = 0;       // all their taps inside the row
  int64_t tasks = 0;           // and each works on
  int64_t units_per_task = 0;  // so many output rows (or planes)
  const PoolKernels* kernels = nullptr;

  // Planes of src and dst are counted over all blocks of all images: where plane p is.
  int64_t src_plane(int64_t p) const { return PlaceOf(p, desc.src_image_blocks); }
  int64_t dst_plane(int64_t p) const { return PlaceOf(p, desc.dst_image_blocks); }
  int64_t units() const { return desc.n * blocks * (whole_plane || empty_src ? 1 : desc.rows.out); }

 private:
  int64_t PlaceOf(int64_t plane, int64_t image_blocks) const {
    return image_blocks > 0 ? plane / blocks * image_blocks + plane % blocks : plane;
  }
};

// Returns an empty string, or one line that names what is wrong: a window that
// does not fit, padding as large as the window (TensorFlow's rule), dilation, or
// a plain dst of more than one pixel.
std::string MakePoolPlan(const PoolDesc& desc, Isa isa, PoolPlan* plan);

// src and dst are the first blocks of tensors or of parts.
void RunPool(const PoolPlan& plan, const float* src, float* dst, ThreadPool& pool);

// The same result from nested loops over the definition above.
void PoolRef(const PoolPlan& plan, const float* src, float* dst);

}  // namespace bd

#endif  // CC_CORE_POOL_POOL_H_
