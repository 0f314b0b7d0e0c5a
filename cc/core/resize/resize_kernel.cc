// Rows of a resized plane. Compiled once per ISA.
#include "cc/core/resize/resize_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

template <int kFloats>
inline void CopyPixel(const float* src, float* dst) {
  if constexpr (kFloats == kBlock) {
    for (int v = 0; v < kBlock; v += kLanes) Store(dst + v, Load(src + v));
  } else {
    __builtin_memcpy(dst, src, kFloats * sizeof(float));
  }
}

template <int kFloats>
void Nearest(const ResizeRow& r) {
  for (int64_t x = 0; x < r.out; ++x) {
    CopyPixel<kFloats>(r.lower + r.columns[x].lower / kBlock * kFloats, r.dst + x * kFloats);
  }
}

template <int kFloats>
void Repeat(const ResizeRow& r) {
  const float* src = r.lower;
  float* dst = r.dst;
  for (int64_t x = 0; x < r.out; x += r.factor, src += kFloats) {
    for (int64_t k = 0; k < r.factor; ++k, dst += kFloats) CopyPixel<kFloats>(src, dst);
  }
}

// In TensorFlow's order, product and sum rounded separately: results are equal bit for bit.
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

}  // namespace

constexpr ResizeKernels kResizeKernels = {
    {Nearest<4>, Nearest<8>, Nearest<16>}, {Repeat<4>, Repeat<8>, Repeat<16>}, Bilinear};

}  // namespace bd::BD_ISA
