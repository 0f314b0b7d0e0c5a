// The definition of the matrix product, for tests.
#pragma once

#include <algorithm>

#include "cc/core/gemm/gemm.h"

namespace bd {

// The definition for floats, in double, for tests; of `program` nothing.
inline void GemmRef(const GemmDesc& desc, const GemmB& b, const GemmArgs& args, int64_t rows) {
  const auto *a = static_cast<const float*>(args.a), *b_data = static_cast<const float*>(b.data);
  const auto* add = static_cast<const float*>(args.add);
  auto* c = static_cast<float*>(args.c);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < desc.n; ++j) {
      double sum = args.bias == nullptr ? 0. : args.bias[j];
      for (int64_t k = 0; k < desc.k; ++k) {
        sum +=
            double{a[i * args.a_row_stride + k]} * b_data[k * b.row_stride + j * b.column_stride];
      }
      if (add != nullptr) sum += double{args.add_scale} * add[i * args.add_row_stride + j];
      if (args.clamp) sum = std::clamp(sum, double{args.lo}, double{args.hi});
      c[i * args.c_row_stride + j] = static_cast<float>(sum);
    }
  }
}

}  // namespace bd
