// The definition of the matrix product, and how tests run it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "cc/base/size.h"
#include "cc/core/gemm/gemm.h"
#include "tests/cc/guarded_array.h"

namespace bd {

// Of dense matrices.
inline GemmArgs DenseArgs(const GemmDesc& desc, const void* a, void* c) {
  GemmArgs args;
  args.a = a;
  args.a_row_stride = desc.k;
  args.c = c;
  args.c_row_stride = desc.n;
  return args;
}

// Packs B and multiplies, in memory that ends, or begins, at guard pages.
inline void PackAndRun(const GemmPlan& plan, const GemmB& b, GemmArgs args, int64_t rows,
                       ThreadPool& pool, GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd) {
  GuardedArray packed(plan.packed_bytes, guard);
  GuardedArray scratch(RoundUp(GemmScratchBytes(plan, rows), 64));
  PackGemm(plan, b, packed.As<float>(), &pool);
  args.packed = packed.As<float>();
  args.scratch = scratch.data();
  RunGemm(plan, args, rows, pool);
}
inline void PlanAndRun(const GemmDesc& desc, Isa isa, const GemmB& b, const GemmArgs& args,
                       int64_t rows, int threads = 1) {
  GemmPlan plan;
  ASSERT_EQ(MakeGemmPlan(desc, isa, &plan), "");
  ThreadPool pool(threads);
  PackAndRun(plan, b, args, rows, pool);
}

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
