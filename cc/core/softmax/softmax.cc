#include "cc/core/softmax/softmax.h"

#include <algorithm>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"

namespace bd {
namespace {

// Work below kInlineNs is not worth waking a thread for; larger work is cut into
// tasks of about kTaskNs.
constexpr int64_t kInlineNs = 8000;
constexpr int64_t kTaskNs = 4000;

// With AVX-512 a row of 20 takes 9 ns and one of 1000 310, with AVX2 10 and 380.
constexpr int64_t RowNs(int64_t channels) { return 3 + channels / 3; }

}  // namespace

std::string MakeSoftmaxPlan(const SoftmaxDesc& desc, Isa isa, SoftmaxPlan* plan) {
  if (!(Size(desc.rows) * desc.channels).fits()) {
    return StrCat("softmax of ", desc.rows, " rows of ", desc.channels,
                  " channels: sizes must not be negative, nor their product above 2^47");
  }
  SoftmaxPlan p;
  p.desc = desc;
  p.kernels = &SoftmaxKernelsFor(isa);
  const int64_t rows = desc.channels == 0 ? 0 : desc.rows, row_ns = RowNs(desc.channels);
  p.tasks = rows * row_ns < kInlineNs ? std::min<int64_t>(1, rows)
                                      : CeilDiv(rows, std::max<int64_t>(1, kTaskNs / row_ns));
  *plan = p;
  return "";
}

void RunSoftmax(const SoftmaxPlan& plan, const float* src, float* dst, ThreadPool& pool) {
  const int64_t channels = plan.desc.channels;
  pool.ForRanges(plan.desc.rows, plan.tasks, [&](int64_t begin, int64_t end, int) {
    plan.kernels->rows(src + begin * channels, end - begin, channels, dst + begin * channels);
  });
}

}  // namespace bd
