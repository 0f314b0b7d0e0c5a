// Reorders of integers that stand for other numbers.
#include "tests/cc/core/reorder/reorder_case.h"

namespace bd {
namespace {

// Integers that stand for other numbers: from floats and back, and from one scale to another, with
// zero points that are odd (ties), at both ends, and none.
TEST_P(Reorder, Quantized) {
  const Quantization kinds[] = {{}, {0.5f, 0}, {0.25f, 3}, {2.f, 255}, {1.f / 3, 128}, {1e-4f, 7}};
  for (DataType type : {DataType::u8, DataType::s8}) {
    for (Quantization src : kinds) {
      for (Quantization dst : kinds) {
        if (type == DataType::s8) src.zero_point /= 2, dst.zero_point /= -2;
        for (int64_t channels : {16, 21}) {
          const Dims dims = {2, channels, 3, 5};
          ReorderDesc desc = {TensorDesc(dims, kF32, Layout::nhwc),
                              TensorDesc(dims, type, Layout::nChw16c)};
          desc.dst_quantization = dst;
          ExpectLikeReference(desc, SmallInteger);
          ExpectLikeReference(desc, [](int64_t i) { return SmallInteger(i) / 8; });
          ExpectLikeReference(desc, Extreme);
          desc = {TensorDesc(dims, type, Layout::nChw16c), TensorDesc(dims, kF32, Layout::nhwc)};
          desc.src_quantization = src;
          ExpectLikeReference(desc, SmallInteger);
          desc.dst = TensorDesc(dims, type, Layout::nChw16c);
          desc.dst_quantization = dst;
          ExpectLikeReference(desc, SmallInteger);
          desc.beta = 0.5f;
          ExpectLikeReference(desc, SmallInteger);
        }
      }
    }
  }
}

}  // namespace
}  // namespace bd
