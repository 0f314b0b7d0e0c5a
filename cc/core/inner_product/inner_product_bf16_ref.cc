#include <cstring>

#include "cc/core/inner_product/inner_product_bf16.h"

namespace bd {
namespace {

double ToDouble(Bfloat16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

void InnerProductBf16Ref(const InnerProductBf16Desc& desc, const Bfloat16* src,
                         const Bfloat16* weights, float* dst) {
  const int64_t inputs = desc.src.c(), outputs = desc.dst.c();
  for (int64_t row = 0; row < desc.src.n(); ++row) {
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = 0;
      for (int64_t k = 0; k < inputs; ++k) {
        sum += ToDouble(src[desc.src.offset(row, 0, 0) + k]) * ToDouble(weights[k * outputs + o]);
      }
      dst[desc.dst.offset(row, 0, 0) + o] = static_cast<float>(sum);
    }
  }
}

}  // namespace bd
