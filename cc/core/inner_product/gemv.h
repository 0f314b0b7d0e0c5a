// Small-M products on plain weights: C [m, n] = A [m, k] B + bias, where m is at most
// GemvKernels::max_rows. Every weight is used once a row, so all that counts is how fast weights
// come from memory, and whether they need to: B is read as it is, row-major, and where many
// elements of A are zero, the rows of B that meet only zeros are not read at all.
// So this is no loop over packed panels, on which all products of more rows run (cc/core/gemm).
#pragma once

#include <cstdint>

#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/inner_product/gemv_kernel.h"

namespace bd {

// Ranges of columns worth a task: the longer, the better memory delivers.
int64_t GemvTasks(int64_t k, int64_t n, int threads);
// The first column of a task; that of task `tasks` is n.
int64_t GemvColumn(int64_t n, int64_t task, int64_t tasks);

// Whether rows of B [k, n] are worth leaving out for these rows of A; all weights must be finite.
bool HasManyZeros(Isa isa, const float* a, int64_t rows, int64_t k);

// Whether all of `count` floats are finite.
bool AllFinite(const float* floats, int64_t count, ThreadPool& pool);

}  // namespace bd
