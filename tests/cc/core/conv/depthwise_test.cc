// Depthwise convolution on every ISA against the definition of convolution.
#include <gtest/gtest.h>

#include "tests/cc/core/conv/conv_check.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

using DepthwiseTest = ConvTest;

INSTANTIATE_TEST_SUITE_P(Isas, DepthwiseTest, ::testing::ValuesIn(TestIsas()),
                         [](const auto& info) { return IsaName(info.param); });

TEST_P(DepthwiseTest, Rows) {
  for (int64_t k : {1, 3, 5, 7}) {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t size : {1, 4, 17, 33}) {
        ConvShape d = Square(40, size, 40, k, stride, k / 2);
        d.groups = 40;
        d.n = 2;
        d.post_ops = Chain("binary(add,channel,#0);eltwise(relu6)");
        Run(d);
      }
    }
  }
}

// Windows that end before, at and behind either end of a row.
TEST_P(DepthwiseTest, EndsOfRows) {
  for (int64_t k : {3, 5}) {
    for (int64_t stride : {1, 2}) {
      for (int64_t width : {1, 2, 5, 7, 13, 14, 15, 29}) {
        for (int64_t left = 0; left <= k / 2 + 1; ++left) {
          for (int64_t right = 0; right <= k / 2 + 1; ++right) {
            if (left + width + right < k) continue;
            ConvShape d = Square(16, k, 16, k, stride, 0);
            d.groups = 16;
            d.iw = width;
            d.pad_left = left;
            d.ow = (left + width + right - k) / stride + 1;
            Run(d);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace bd
