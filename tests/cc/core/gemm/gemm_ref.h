// How tests run matrix products.
#pragma once

#include <gtest/gtest.h>

#include "cc/base/size.h"
#include "cc/core/gemm/gemm.h"
#include "tests/cc/guarded_array.h"

namespace bd {

// Of dense matrices.
inline GemmArgs DenseArgs(const GemmDesc& desc, const void* a, void* c) {
  GemmArgs args;
  args.a = a;
  args.c = c;
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

}  // namespace bd
