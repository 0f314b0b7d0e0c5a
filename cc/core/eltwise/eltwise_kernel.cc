// The chain on tiles that stay in L1 while its steps pass over them. The tile
// is apart from dst, so dst may share memory with src or an operand.
#include "cc/core/eltwise/eltwise_kernel.h"

#include "cc/core/post_ops/post_ops_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

constexpr int64_t kTileFloats = 1024;

inline void Copy(const float* src, float* dst, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(dst + i, Load(src + i));
  if (i < n) StoreN(dst + i, LoadN(src + i, n - i), n - i);
}

// apply(tile, count, first element of the tensor) on each tile of the range.
template <typename F>
inline void ForEachTile(const EltwiseRange& r, F apply) {
  alignas(64) float tile[kTileFloats];
  const int64_t end = r.begin + r.count;
  for (int64_t i = r.begin; i < end; i += kTileFloats) {
    const int64_t count = end - i < kTileFloats ? end - i : kTileFloats;
    Copy(r.src + i, tile, count);
    apply(tile, count, i);
    Copy(tile, r.dst + i, count);
  }
}

void Blocked(const EltwiseRange& r) {
  ForEachTile(r, [&](float* tile, int64_t count, int64_t i) {
    ApplyPostOps(*r.program, tile, static_cast<int>(count / kBlock), i, r.channel, r.sample_channel,
                 r.valid_lanes);
  });
}

void Plain(const EltwiseRange& r) {
  ForEachTile(r, [&](float* tile, int64_t count, int64_t i) {
    ApplyPostOpsPlain(*r.program, tile, count, i, (r.channel + i - r.begin) % r.channels,
                      r.channels, r.sample_channel);
  });
}

constexpr EltwiseKernels kKernels = {Blocked, Plain};

}  // namespace

const EltwiseKernels& GetEltwiseKernels() { return kKernels; }

}  // namespace bd::BD_ISA
