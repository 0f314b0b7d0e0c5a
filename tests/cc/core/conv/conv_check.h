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

namespace bd {

// Runs `desc` on `isa` and compares with ConvRef; `bound` is relative to the
// largest sum of products before the chain, 0 asks for equal bits.
inline void CheckConv(const ConvShape& desc, Isa isa, ThreadPool& pool, double bound,
                      GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd) {
  ConvPlan plan;
  ASSERT_EQ(MakeConvPlan(desc, isa, pool.num_threads(), &plan), "");
  SCOPED_TRACE(Describe(desc, plan));
  GuardedBuffer src(SrcFloats(desc), guard);
  src.FillIntegers(3);
  ClearSrcTail(desc, src);
  GuardedBuffer weights(WeightFloats(desc), guard);
  weights.FillIntegers(5);
  const int64_t dst_floats = ResultFloats(desc);

  // args[0] is per channel, args[1] and args[2] have dst's shape.
  GuardedBuffer channel(desc.oc, guard), sum(dst_floats, guard), operand(dst_floats, guard);
  channel.FillIntegers(1);
  sum.FillIntegers(2);
  operand.FillIntegers(7);
  ClearResultTail(desc, sum);
  ClearResultTail(desc, operand);
  const float* args[] = {channel.data(), sum.data(), operand.data()};

  GuardedBuffer dst(dst_floats, guard), expected(dst_floats);
  PackAndRun(plan, src.data(), weights.data(), args, dst.data(), pool);
  ConvRef(desc, src.data(), weights.data(), args, expected.data());

  double largest = 1;
  if (bound > 0) {
    ConvShape bare = desc;
    bare.post_ops = PostOpChain();
    GuardedBuffer sums(dst_floats);
    ConvRef(bare, src.data(), weights.data(), args, sums.data());
    for (float x : sums) largest = std::max(largest, std::fabs(static_cast<double>(x)));
  }
  for (int64_t i = 0; i < dst_floats; ++i) {
    ASSERT_LE(std::fabs(static_cast<double>(dst[i]) - expected[i]), bound * largest)
        << "at " << i << ": " << dst[i] << " for " << expected[i];
  }
  if (desc.dst_layout != Layout::nhwc && desc.oc % 16 != 0) {
    const int64_t plane = desc.oh * desc.ow, blocks = (desc.oc + 15) / 16;
    for (int64_t n = 1; n <= desc.n; ++n) {
      for (int64_t i = 0; i < plane; ++i) {
        const int64_t pixel = ((n * blocks - 1) * plane + i) * 16;
        for (int64_t c = desc.oc % 16; c < 16; ++c) ASSERT_EQ(dst[pixel + c], 0.f) << "tail";
      }
    }
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
