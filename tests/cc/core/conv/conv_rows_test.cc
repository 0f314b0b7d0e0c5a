// Compressed weights of inner products of few rows: without loss, declined where that
// cannot be, and multiplied as weights are that are read as they are.
#include "cc/core/conv/conv_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "cc/core/conv/conv_rows_kernel.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float FromWord(uint32_t word) {
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

uint32_t ToWord(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  return word;
}

ConvDesc Rows(int64_t rows, int64_t ic, int64_t oc, ConvAlgorithm algorithm) {
  ConvDesc d;
  d.ic = ic;
  d.oc = oc;
  d.iw = d.ow = rows;
  d.src_layout = d.dst_layout = Layout::nhwc;
  d.algorithm = algorithm;
  return d;
}

// A matrix and what compression makes of it.
class Matrix {
 public:
  Matrix(int64_t ic, int64_t oc, Isa isa, GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd)
      : ic_(ic), oc_(oc), isa_(isa), guard_(guard), weights_(ic * oc, guard) {}

  GuardedBuffer& weights() { return weights_; }
  float& At(int64_t k, int64_t c) { return weights_[k * oc_ + c]; }

  bool Compress() {
    EXPECT_EQ(MakeConvPlan(Rows(1, ic_, oc_, ConvAlgorithm::kCompressed), isa_, 2, &plan_), "");
    EXPECT_STREQ(plan_.algorithm_name(), "rows_compressed");
    packed_ = std::make_unique<GuardedBuffer>(plan_.packed_floats, guard_);
    fits_ = PackConvWeights(plan_, weights_.data(), packed_->data(), pool_);
    return fits_;
  }

  int64_t left_out() const {
    int64_t count = 0;
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      count += LeftOutOf(plan_, packed_->data(), g).count;
    }
    return count;
  }

  // All weights, from the blocks and the weights left out.
  std::vector<float> Expand() const {
    std::vector<float> out(ic_ * oc_);
    const CompressedRowsKernels& kernels = CompressedRowsKernelsFor(isa_);
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      const OutputGroup& group = plan_.groups[g];
      const float* scales = packed_->data() + group.weights_offset;
      for (int64_t k = 0; k < ic_; ++k) {
        for (int64_t p = 0; p < group.blocks; ++p) {
          const int64_t block = k / kCompressedRows * group.blocks + p;
          alignas(64) float weights[kCompressedRows * kPanel];
          kernels.expand(scales + group.blocks * kPanel + block * kCompressedWords,
                         scales + p * kPanel, weights);
          for (int64_t i = 0; i < kPanel; ++i) {
            const int64_t c = (group.first_block + p) * kPanel + i;
            if (c < oc_) out[k * oc_ + c] = weights[k % kCompressedRows * kPanel + i];
          }
        }
      }
      const LeftOutRange range = LeftOutOf(plan_, packed_->data(), g);
      for (const LeftOut* w = range.first; w != range.first + range.count; ++w) {
        float& at = out[w->k * oc_ + w->column];
        EXPECT_EQ(at, 0.f) << "two weights at " << w->k << ", " << w->column;
        at = w->value;
      }
    }
    return out;
  }

  void ExpectLossless() {
    ASSERT_TRUE(Compress());
    const std::vector<float> expanded = Expand();
    for (int64_t i = 0; i < ic_ * oc_; ++i) {
      ASSERT_EQ(ToWord(expanded[i]), ToWord(weights_[i])) << "at " << i << " of " << oc_;
    }
  }

  // src times the weights and a bias, from compressed weights or as they are.
  std::vector<float> Multiply(const std::vector<float>& src, ConvAlgorithm algorithm) {
    ConvDesc d = Rows(static_cast<int64_t>(src.size()) / ic_, ic_, oc_, algorithm);
    d.post_ops = Chain("binary(add,channel,#0)");
    ConvPlan plan;
    EXPECT_EQ(MakeConvPlan(d, isa_, 2, &plan), "");
    std::vector<float> bias(oc_);
    for (int64_t c = 0; c < oc_; ++c) bias[c] = .1f * static_cast<float>(c % 7);
    const float* args[] = {bias.data()};
    GuardedBuffer guarded_src(src.size(), guard_), dst(d.ow * oc_, guard_);
    std::memcpy(guarded_src.data(), src.data(), src.size() * sizeof(float));
    GuardedBuffer scratch(plan.scratch_bytes() / 4);
    ConvBuffers buffers;
    buffers.src = guarded_src.data();
    buffers.packed = plan.packing.as_is() ? weights_.data() : fits_ ? packed_->data() : nullptr;
    buffers.plain = weights_.data();
    buffers.args = args;
    buffers.dst = dst.data();
    buffers.scratch = scratch.data();
    RunConv(plan, buffers, pool_);
    return {dst.begin(), dst.end()};
  }

 private:
  const int64_t ic_, oc_;
  const Isa isa_;
  const GuardedBuffer::Guard guard_;
  GuardedBuffer weights_;
  ThreadPool pool_{2};
  ConvPlan plan_;
  std::unique_ptr<GuardedBuffer> packed_;
  bool fits_ = false;
};

class CompressedRows : public ::testing::TestWithParam<Isa> {};

INSTANTIATE_TEST_SUITE_P(Isas, CompressedRows, ::testing::ValuesIn(TestIsas()),
                         [](const auto& info) { return IsaName(info.param); });

TEST_P(CompressedRows, EveryMantissaBitAndExponentSurvives) {
  std::mt19937 rng(1);
  for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
    for (int64_t ic : {1, 7, 8, 9, 40}) {
      for (int64_t oc : {1, 15, 16, 17, 63, 64, 65, 200}) {
        Matrix m(ic, oc, GetParam(), guard);
        for (int64_t c = 0; c < oc; ++c) {
          const uint32_t top = 15 + rng() % 127;  // the column's largest exponent field
          for (int64_t k = 0; k < ic; ++k) {
            m.At(k, c) = FromWord((rng() & 0x807fffff) | (top - rng() % 15) << 23);
          }
          m.At(rng() % ic, c) = FromWord((rng() & 0x807fffff) | top << 23);
          m.At(rng() % ic, c) = rng() % 2 == 0 ? 0.f : -0.f;
        }
        m.ExpectLossless();
        EXPECT_LE(m.left_out(), ic * oc / 512);
      }
    }
  }
}

TEST_P(CompressedRows, ColumnsOfTinyWeights) {
  Matrix m(1024, 33, GetParam());
  for (int64_t c = 0; c < 33; ++c) {
    for (int64_t k = 0; k < 1024; ++k) m.At(k, c) = std::ldexp(1.f + k / 1024.f, -126 + c % 20);
  }
  m.At(5, 1) = FromWord(1);  // subnormal
  m.At(6, 1) = -FromWord(0x7fffff);
  m.At(7, 19) = FromWord(0x80000001);
  for (int64_t k = 0; k < 1024; ++k) m.At(k, 32) = 0.f;
  m.At(9, 32) = FromWord(3);  // nothing else in its column
  m.ExpectLossless();
  EXPECT_EQ(m.left_out(), 4);
}

TEST_P(CompressedRows, WeightsLeftOutAreListed) {
  std::mt19937 rng(2);
  for (int64_t oc : {48, 64, 100, 1000}) {
    const int64_t ic = 1030;
    Matrix m(ic, oc, GetParam());
    for (float& w : m.weights()) w = FromWord((rng() & 0x807fffff) | (120 - rng() % 12) << 23);
    const int64_t most = ic * oc / 512;
    for (int64_t i = 0; i < most;
         ++i) {  // all different: 12345 and ic * oc have no factor in common
      m.weights()[i * 12347 % (ic * oc)] = std::ldexp(1.f, -40 - static_cast<int>(i % 80));
    }
    m.ExpectLossless();
    EXPECT_EQ(m.left_out(), most);
    m.weights()[most * 12347 % (ic * oc)] = 1e-20f;
    EXPECT_FALSE(m.Compress()) << "one too many";
  }
}

TEST_P(CompressedRows, UniformAndNormalWeightsAreWorthIt) {
  std::mt19937 rng(3);
  std::uniform_real_distribution<float> uniform(-.05f, .05f);
  std::normal_distribution<float> normal(0.f, .02f);
  Matrix a(2048, 256, GetParam()), b(2048, 256, GetParam());
  for (float& w : a.weights()) w = uniform(rng);
  for (float& w : b.weights()) w = normal(rng);
  a.ExpectLossless();
  b.ExpectLossless();
  EXPECT_GT(a.left_out() + b.left_out(), 0);
}

TEST_P(CompressedRows, DeclinesWhatHasNoPowerOfTwo) {
  for (float odd : {std::nanf(""), -std::nanf(""), kInfinity, -kInfinity, 32768.f, -1e30f}) {
    for (int64_t at : {0, 17, 20 * 37 - 1}) {
      Matrix m(20, 37, GetParam());
      m.weights().FillIntegers();
      m.weights()[at] = odd;
      EXPECT_FALSE(m.Compress()) << odd << " at " << at;
      m.weights()[at] = 32767.998f;
      EXPECT_TRUE(m.Compress());
    }
  }
}

TEST_P(CompressedRows, EqualsPlainWeightsBitForBitWhereNoneIsLeftOut) {
  std::mt19937 rng(4);
  std::normal_distribution<float> normal;
  for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
    for (int64_t rows = 1; rows <= RowsKernelsFor(GetParam()).max_rows; ++rows) {
      for (int64_t ic : {3, 64, 77}) {
        for (int64_t oc : {1, 16, 40, 64, 190}) {
          Matrix m(ic, oc, GetParam(), guard);
          for (float& w : m.weights()) w = FromWord((rng() & 0x807fffff) | (120 - rng() % 9) << 23);
          std::vector<float> src(rows * ic);
          for (float& x : src) x = normal(rng);
          ASSERT_TRUE(m.Compress());
          EXPECT_EQ(m.Multiply(src, ConvAlgorithm::kCompressed),
                    m.Multiply(src, ConvAlgorithm::kDirect))
              << rows << " rows of " << ic << " by " << oc;
        }
      }
    }
  }
}

// Rows of src that are zero together at every `step`-th k, and each for itself elsewhere.
std::vector<float> SourceWithZeros(int64_t rows, int64_t ic, int64_t step) {
  std::mt19937 rng(5);
  std::normal_distribution<float> normal;
  std::vector<float> src(rows * ic);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t k = 0; k < ic; ++k) {
      const bool alone = rows > 1 && (k + m) % rows == 0;
      src[m * ic + k] = k % step == 0 ? -0.f : alone ? 0.f : normal(rng);
    }
  }
  return src;
}

TEST_P(CompressedRows, WeightsThatMeetOnlyZerosAreNotRead) {
  for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
    for (int64_t rows = 1; rows <= RowsKernelsFor(GetParam()).max_rows; ++rows) {
      for (int64_t ic : {1, 5, 77, 1100}) {
        Matrix m(ic, 37, GetParam(), guard);
        m.weights().FillIntegers();
        const std::vector<float> src = SourceWithZeros(rows, ic, 3);
        ASSERT_TRUE(m.Compress());
        for (float& w : m.weights()) w *= 2;  // unlike those that are compressed
        const std::vector<float> expected = m.Multiply(src, ConvAlgorithm::kDirect);
        for (int64_t k = 0; k < ic; k += 3) m.At(k, k % 37) = std::nanf("");
        EXPECT_EQ(m.Multiply(src, ConvAlgorithm::kCompressed), expected)
            << rows << " rows of " << ic;
      }
    }
  }
}

TEST_P(CompressedRows, CompressedWeightsAreReadWhereFewMeetOnlyZeros) {
  const int64_t ic = 1100;
  Matrix m(ic, 37, GetParam());
  for (float& w : m.weights()) w = 1.f;
  const std::vector<float> src = SourceWithZeros(2, ic, 5);
  ASSERT_TRUE(m.Compress());
  const std::vector<float> expected = m.Multiply(src, ConvAlgorithm::kDirect);
  for (float& w : m.weights()) w = std::nanf("");
  EXPECT_EQ(m.Multiply(src, ConvAlgorithm::kCompressed), expected);
}

// Weights that were left out of the blocks, many zeros, and a source that is not finite.
TEST_P(CompressedRows, ZerosBesideInfinity) {
  const int64_t ic = 1024;
  Matrix m(ic, 20, GetParam());
  for (float& w : m.weights()) w = 1.f;
  m.At(7, 3) = 1e-10f;
  ASSERT_TRUE(m.Compress());
  ASSERT_EQ(m.left_out(), 1);
  std::vector<float> src = SourceWithZeros(2, ic, 3);
  EXPECT_EQ(m.Multiply(src, ConvAlgorithm::kCompressed), m.Multiply(src, ConvAlgorithm::kDirect));
  src[7] = kInfinity;
  const std::vector<float> dst = m.Multiply(src, ConvAlgorithm::kCompressed);
  EXPECT_EQ(dst, m.Multiply(src, ConvAlgorithm::kDirect));
  EXPECT_EQ(dst[3], kInfinity);
  src[9] = std::nanf("");
  EXPECT_TRUE(std::isnan(m.Multiply(src, ConvAlgorithm::kCompressed)[0]));
}

TEST_P(CompressedRows, ZeroTimesInfinityIsNoNumber) {
  Matrix m(20, 37, GetParam());
  for (float& w : m.weights()) w = 1.f;
  m.At(7, 3) = kInfinity;
  EXPECT_FALSE(m.Compress());
  const std::vector<float> src(20, 0.f);
  for (auto algorithm : {ConvAlgorithm::kCompressed, ConvAlgorithm::kDirect}) {
    const std::vector<float> dst = m.Multiply(src, algorithm);
    for (int64_t c = 0; c < 37; ++c) EXPECT_EQ(std::isnan(dst[c]), c == 3) << c;
  }
}

TEST_P(CompressedRows, AddsWeightsLeftOut) {
  const int64_t ic = 1024, oc = 70;
  Matrix m(ic, oc, GetParam());
  for (float& w : m.weights()) w = 0.f;
  std::vector<float> src(2 * ic, 0.f);
  for (int64_t c = 0; c < oc; ++c) m.At(c, c) = 1024.f;  // src is zero there
  for (int64_t c : {0, 15, 16, 63, 64, 69}) {
    m.At(500 + c, c) = 1.f / 64;
    m.At(900 + c, c) = -1.f / 256;
    for (int64_t row : {0, 1}) {
      src[row * ic + 500 + c] = static_cast<float>(3 + c);
      src[row * ic + 900 + c] = static_cast<float>(8 * row);
    }
  }
  for (int64_t k = oc; k < ic; ++k) {  // too few zeros to leave weights out for
    if (src[k] == 0.f) src[k] = 1.f;
  }
  ASSERT_TRUE(m.Compress());
  ASSERT_EQ(m.left_out(), 12);
  const std::vector<float> dst = m.Multiply(src, ConvAlgorithm::kCompressed);
  EXPECT_EQ(dst, m.Multiply(src, ConvAlgorithm::kDirect));
  EXPECT_FLOAT_EQ(dst[oc + 69], .1f * (69 % 7) + 72.f / 64 - 8.f / 256);
}

TEST_P(CompressedRows, InfinityTimesAWeightLeftOutIsInfinity) {
  Matrix m(1024, 20, GetParam());
  for (float& w : m.weights()) w = 1.f;
  m.At(7, 3) = 1e-10f;
  ASSERT_TRUE(m.Compress());
  ASSERT_EQ(m.left_out(), 1);
  std::vector<float> src(1024, 0.5f);
  src[7] = kInfinity;
  const std::vector<float> dst = m.Multiply(src, ConvAlgorithm::kCompressed);
  EXPECT_EQ(dst, std::vector<float>(20, kInfinity));
}

TEST_P(CompressedRows, OnlyLargeMatricesThatStay) {
  const auto name = [&](int64_t ic, bool keeps, ConvAlgorithm algorithm, int64_t rows) {
    ConvDesc d = Rows(rows, ic, 1000, algorithm);
    d.keeps_weights = keeps;
    ConvPlan plan;
    EXPECT_EQ(MakeConvPlan(d, GetParam(), 2, &plan), "");
    return std::string(plan.algorithm_name());
  };
  const int most = CompressedRowsKernelsFor(GetParam()).max_rows;
  EXPECT_EQ(name(25088, true, ConvAlgorithm::kAuto, 1), most > 0 ? "rows_compressed" : "rows");
  const int kept = RowsKernelsFor(GetParam()).max_kept_rows;
  EXPECT_EQ(name(25088, true, ConvAlgorithm::kAuto, kept), most > 0 ? "rows_compressed" : "rows");
  EXPECT_EQ(name(25088, true, ConvAlgorithm::kAuto, kept + 1), "direct_plain");
  EXPECT_EQ(name(25088, false, ConvAlgorithm::kAuto, 6), "rows");
  EXPECT_EQ(name(25088, true, ConvAlgorithm::kDirect, 6), "rows");
  EXPECT_EQ(name(25088, false, ConvAlgorithm::kAuto, 1), "rows");
  EXPECT_EQ(name(25088, true, ConvAlgorithm::kDirect, 1), "rows");
  EXPECT_EQ(name(64, true, ConvAlgorithm::kAuto, 1), "rows");
  EXPECT_EQ(name(64, false, ConvAlgorithm::kCompressed, 1), "rows_compressed");
  EXPECT_EQ(name(25088, true, ConvAlgorithm::kCompressed, 100), "direct_plain");
}

TEST_P(CompressedRows, TakesSevenEighths) {
  ConvPlan plan;
  ASSERT_EQ(MakeConvPlan(Rows(1, 4096, 4096, ConvAlgorithm::kCompressed), GetParam(), 2, &plan),
            "");
  EXPECT_LT(plan.packed_floats, 4096 * 4096 * 0.883);
}

}  // namespace
}  // namespace bd
