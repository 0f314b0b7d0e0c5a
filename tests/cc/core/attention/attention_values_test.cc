// Masked rows, NaN, infinities and large numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "tests/cc/core/attention/attention_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Small integers and equal scores: the weights are 1 / 16 exactly.
TEST(AttentionValues, EqualScoresGiveTheMeanExactly) {
  for (Isa isa : TestIsas()) {
    Case c;
    c.queries = 20;
    c.keys = 16;
    Tensors tensors(c);
    tensors.q.Fill(0.f);
    tensors.v.FillIntegers();
    tensors.Run(isa, 1);
    for (int64_t t = 0; t < c.queries; ++t) {
      for (int64_t i = 0; i < c.heads * c.value_size; ++i) {
        float sum = 0.f;
        for (int64_t s = 0; s < c.keys; ++s) sum += tensors.v[s * c.heads * c.value_size + i];
        ASSERT_EQ(tensors.dst[t * c.heads * c.value_size + i], sum / 16.f) << IsaName(isa);
      }
    }
  }
}

// A row whose keys are all masked: by a finite number it is the mean; by -inf it is NaN.
TEST(AttentionValues, FullyMaskedRows) {
  for (Isa isa : TestIsas()) {
    for (float masked : {-1e9f, std::numeric_limits<float>::lowest(), -100.f, -kInf}) {
      Case c;
      c.keys = 37;
      c.mask = {{1, false, true}};
      c.masked = masked;
      Tensors tensors(c);
      memset(tensors.mask + c.keys, 0, c.keys);  // of query 1
      for (int64_t t = 0; t < c.queries; ++t) tensors.mask[t * c.keys + 3] = t != 1;
      tensors.Run(isa, 1);
      SCOPED_TRACE(c.Name(isa) + " by " + std::to_string(masked));
      tensors.ExpectLikeReference();
      const int64_t row = c.heads * c.value_size;
      for (int64_t i = 0; i < c.queries * row; ++i) {
        ASSERT_EQ(std::isnan(tensors.dst[i]), i / row == 1 && masked == -kInf);
      }
    }
  }
}

// A cache with room for keys to come, whatever lies there; in tasks of their own and in one.
TEST(AttentionValues, KeysThatAreToCome) {
  for (Isa isa : TestIsas()) {
    for (int64_t queries : {1, 3, 5}) {
      for (int64_t known : {0, 1, 36, 500, 700}) {
        Case c;
        c.queries = queries;
        c.keys = 700;
        c.head_size = c.value_size = 64;
        c.biases = {{1, false, true}};
        c.mask = {{1, false, false}};
        Tensors tensors(c);
        for (int64_t s = 0; s < c.keys; ++s) tensors.mask[s] = s < known && s != 2;
        const int64_t row = c.heads * c.head_size;
        for (int64_t i = known * row; i < c.keys * row; ++i) tensors.k[i] = kNan;
        tensors.Run(isa, 3);
        SCOPED_TRACE(c.Name(isa) + " of " + std::to_string(known));
        tensors.ExpectLikeReference();
      }
    }
  }
}

TEST(AttentionValues, FullyMaskedRowsOfNoWeight) {
  for (Isa isa : TestIsas()) {
    Case c;
    c.keys = 37;
    c.mask = {{1, false, true}};
    c.zero_masked = true;
    Tensors tensors(c);
    memset(tensors.mask + c.keys, 0, c.keys);  // of query 1
    tensors.Run(isa, 1);
    const int64_t row = c.heads * c.value_size;
    for (int64_t i = 0; i < row; ++i) {
      EXPECT_EQ(tensors.dst[row + i], 0.f) << IsaName(isa);
      EXPECT_NE(tensors.dst[i], 0.f) << IsaName(isa);
    }
  }
}

// Wherever one stands: what is NaN is what the formula makes NaN. In the tails of all sizes.
TEST(AttentionValues, NansAndInfinities) {
  for (Isa isa : TestIsas()) {
    for (int64_t size : {7, 17}) {
      Case c;
      c.heads = c.kv_heads = 1;
      c.queries = c.keys = c.head_size = c.value_size = size;
      c.biases = {{1, false, true}};
      c.mask = {{1, false, false}};
      for (float special : {kNan, kInf, -kInf}) {
        for (int tensor = 0; tensor < 4; ++tensor) {
          for (int64_t at : {int64_t{0}, size + 1, size * size - 1}) {
            Tensors tensors(c);
            memset(tensors.mask, 1, size);
            tensors.mask[1] = 0;
            GuardedBuffer* all[] = {&tensors.q, &tensors.k, &tensors.v, tensors.biases[0].get()};
            (*all[tensor])[at] = special;
            tensors.Run(isa, 1);
            SCOPED_TRACE(c.Name(isa) + " tensor " + std::to_string(tensor) + " at " +
                         std::to_string(at));
            tensors.ExpectLikeReference();
          }
        }
      }
    }
  }
}

// Values next to the largest float: weights are normalised before they meet them.
TEST(AttentionValues, LargeValuesAndScores) {
  for (Isa isa : TestIsas()) {
    Case c;
    c.keys = 100;
    Tensors tensors(c);
    tensors.v.Fill(3e38f);
    tensors.q.Fill(1e4f);
    tensors.Run(isa, 1);
    for (float x : tensors.dst) ASSERT_NEAR(x / 3e38f, 1.f, 1e-5f) << IsaName(isa);
  }
}

}  // namespace
}  // namespace bd
