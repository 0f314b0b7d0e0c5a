// dst[r][c] = exp(src[r][c] - m_r) / sum_c exp(src[r][c] - m_r),  m_r = max_c src[r][c].
//
//   SoftmaxDesc -> MakeSoftmaxPlan -> SoftmaxPlan (immutable) -> RunSoftmax
//
// src and dst are plain, [rows, channels]. In IEEE arithmetic as the formula says: a row
// with a NaN or +inf, or of nothing but -inf, is all NaN; elsewhere -inf gives 0.
#pragma once

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/softmax/softmax_kernel.h"

namespace bd {

struct SoftmaxDesc {
  int64_t rows = 0, channels = 0;
};

// Immutable once made; safe to run on many threads.
struct SoftmaxPlan {
  SoftmaxDesc desc;
  int64_t tasks = 0;
  const SoftmaxKernels* kernels = nullptr;
};

// Returns an empty string, or one line that names what is wrong: a negative size.
std::string MakeSoftmaxPlan(const SoftmaxDesc& desc, Isa isa, SoftmaxPlan* plan);

// dst may be src.
void RunSoftmax(const SoftmaxPlan& plan, const float* src, float* dst, ThreadPool& pool);

}  // namespace bd
