// Rows of a resized plane. Compiled once per ISA.
#include "cc/core/resize/resize_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

void Nearest(const ResizeRow& r) {
  for (int64_t x = 0; x < r.out; ++x) {
    const float* src = r.lower + r.columns[x].lower;
    for (int v = 0; v < kBlock; v += kLanes) Store(r.dst + x * kBlock + v, Load(src + v));
  }
}

void Repeat(const ResizeRow& r) {
  float* dst = r.dst;
  for (int64_t x = 0; x < r.out; x += r.factor) {
    const float* src = r.lower + x / r.factor * kBlock;
    Vec pixel[kVecsPerBlock];
    for (int v = 0; v < kVecsPerBlock; ++v) pixel[v] = Load(src + v * kLanes);
    for (int64_t k = 0; k < r.factor; ++k, dst += kBlock) {
      for (int v = 0; v < kVecsPerBlock; ++v) Store(dst + v * kLanes, pixel[v]);
    }
  }
}

// In TensorFlow's order, product and sum rounded apart: results are equal bit for bit.
inline Vec Between(Vec a, Vec b, Vec fraction) { return Add(a, Mul(Sub(b, a), fraction)); }

void Bilinear(const ResizeRow& r) {
  const Vec down = Set1(r.fraction);
  for (int64_t x = 0; x < r.out; ++x) {
    const ResizeTap& column = r.columns[x];
    const Vec across = Set1(column.fraction);
    for (int v = 0; v < kBlock; v += kLanes) {
      const auto row = [&](const float* src) {
        return Between(Load(src + column.lower + v), Load(src + column.upper + v), across);
      };
      Store(r.dst + x * kBlock + v, Between(row(r.lower), row(r.upper), down));
    }
  }
}

constexpr ResizeKernels kKernels = {Nearest, Repeat, Bilinear};

}  // namespace

const ResizeKernels& GetResizeKernels() { return kKernels; }

}  // namespace bd::BD_ISA
