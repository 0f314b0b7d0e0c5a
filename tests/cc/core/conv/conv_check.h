// Runs a convolution and compares it with its definition (ConvRef).
//
// Sources and weights are small integers, so sums are exact in float and the
// direct forms must match bit for bit; Winograd has its own bound. src, dst and
// weights sit in guarded buffers: an access beyond an end is a crash.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cc/base/threads/thread_pool.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/core/conv/conv_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/layouts.h"

namespace bd {

// Runs `desc` on `isa` and compares with ConvRef; `bound` is relative to the
// largest sum of products before the chain, 0 asks for equal bits. Of parts of wider tensors
// nothing is read or written beside them.
inline void CheckConv(const ConvShape& desc, Isa isa, ThreadPool& pool, double bound,
                      GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd) {
  const ConvDesc d = desc;
  const ConvPlan plan = PlanOf(d, isa, pool.num_threads());
  SCOPED_TRACE(Describe(desc, plan));
  GuardedBuffer src(d.src.elements(), guard);
  src.FillIntegers(3);
  ClearTails(d.src, src.data());
  for (int64_t i = 0; i < d.src.elements(); ++i) {
    if (IsBeside(d.src, i)) src[i] = NAN;
  }
  GuardedBuffer weights(WeightFloats(desc), guard);
  weights.FillIntegers(5);

  // args[0] is per channel, args[1] and args[2] have the shape of the result before pooling.
  const int64_t floats = ResultFloats(desc), dst_floats = d.dst.elements();
  GuardedBuffer channel(desc.oc, guard), sum(floats, guard), operand(floats, guard);
  channel.FillIntegers(1);
  sum.FillIntegers(2);
  operand.FillIntegers(7);
  ClearResultTail(desc, sum);
  ClearResultTail(desc, operand);
  const float* args[] = {channel.data(), sum.data(), operand.data()};

  GuardedBuffer dst(dst_floats, guard), expected(dst_floats);
  dst.Fill(77.f);
  expected.Fill(77.f);
  PackAndRun(plan, src.data(), weights.data(), args, dst.data(), pool);
  ConvRef(d, src.data(), weights.data(), args, expected.data());

  double largest = 1;
  if (bound > 0) {
    ConvDesc bare = d;
    bare.post_ops = PostOpChain();
    GuardedBuffer sums(dst_floats);
    ConvRef(bare, src.data(), weights.data(), args, sums.data());
    for (int64_t i = 0; i < dst_floats; ++i) {
      if (!IsBeside(d.dst, i)) largest = std::max(largest, std::fabs(double{sums[i]}));
    }
  }
  for (int64_t i = 0; i < dst_floats; ++i) {
    const double most = IsBeside(d.dst, i) || IsTail(d.dst, i) ? 0 : bound * largest;
    ASSERT_LE(std::fabs(double{dst[i]} - expected[i]), most)
        << "at " << i << ": " << dst[i] << " for " << expected[i];
  }
}

class ConvTest : public ::testing::TestWithParam<Isa> {
 protected:
  void Run(const ConvShape& desc, double bound = 0) {
    for (ThreadPool* pool : {&one_, &two_}) CheckConv(desc, GetParam(), *pool, bound);
    CheckConv(desc, GetParam(), two_, bound, GuardedBuffer::kAtStart);
  }
  ThreadPool one_{1}, two_{2};
};

}  // namespace bd
