// Products of floats by weights that are of low precision in memory only, on every ISA.
#include "cc/base/cpu/cpu_model.h"
#include "tests/cc/core/gemm/gemm_case.h"

namespace bd {
namespace {

class GemmWidenTest : public GemmLowPrecisionTest {};

INSTANTIATE_TEST_SUITE_P(Isas, GemmWidenTest, ::testing::ValuesIn(TestIsas(Isa::kAvx512Bf16)),
                         IsaParam);

GemmDesc Widening(DataType b) {
  GemmDesc d = Types(DataType::f32, b);
  d.widens = true;
  return d;
}
GemmDesc WideningInt4(int64_t group) {
  GemmDesc d = Widening(DataType::u8);
  d.group = group;
  return d;
}
const GemmDesc kWidening[] = {Widening(DataType::bf16), Widening(DataType::s8), WideningInt4(8),
                              WideningInt4(32), WideningInt4(5000)};

// Few rows, which multiply B as it is packed, and many, for which panels of it are widened.
TEST_P(GemmWidenTest, DrawnProducts) {
  for (const GemmDesc& types : kWidening) {
    CheckDrawn(GetParam(), types, 250);
    for (int threads : {1, 2, 5}) Check({1, 2000, 900, types, true}, Guard::kAtEnd, threads);
    Check({300, 300, 90, types}, Guard::kAtEnd, 3);
  }
}

// Rows as digits are off by no more than 2^-22 of their greatest number; those with an infinity or
// a NaN, and those of zeros, are what many rows are, which floats multiply; and no row's bits
// depend on those beside it.
TEST_P(GemmWidenTest, RowsOfAnyNumbers) {
  constexpr int64_t k = 300, n = 37, rows = 21;
  std::normal_distribution<float> normal;
  for (GemmDesc desc : kWidening) {
    if (desc.b == DataType::bf16) continue;
    desc.k = k;
    desc.n = n;
    const int64_t num_scales = desc.b == DataType::u8 ? 2 * CeilDiv(k, desc.group) * n : n;
    std::vector<float> a(rows * k), scales(num_scales);
    std::vector<int8_t> b(k * n);
    for (float& x : a) x = normal(rng_);
    for (float& x : scales) x = 0.01f * normal(rng_);
    FillDrawn(rng_, desc.b, k * n, desc.b == DataType::u8 ? 0 : -127,
              desc.b == DataType::u8 ? 255 : 127, b.data());
    for (int64_t i = 0; i < k; ++i) {
      a[i] *= 1e30f;  // row 0
      a[k + i] *= 1e-38f;
      a[2 * k + i] = 0;
    }
    a[3 * k + 7] = 1e6f;
    a[4 * k + 299] = INFINITY;
    a[5 * k] = NAN;
    a[6 * k + 3] = 3e38f;
    a[7 * k + 150] = -INFINITY;
    a[7 * k + 151] = INFINITY;
    GemmPlan plan;
    ASSERT_EQ(MakeGemmPlan(desc, GetParam(), &plan), "");
    GuardedArray packed(plan.packed_bytes);
    GuardedArray scratch((GemmScratchBytes(plan, rows - 1) + GemmScratchBytes(plan, rows) + 63) /
                         64 * 64);
    ThreadPool pool(1);
    PackGemm(plan, {b.data(), n, 1}, packed.As<float>(), nullptr);
    GemmArgs args;
    args.packed = packed.As<float>();
    args.b_scales = scales.data();
    args.scratch = scratch.data();
    std::vector<float> many(rows * n), few((rows - 1) * n), row(n);
    args.a = a.data();
    args.c = many.data();
    RunGemm(plan, args, rows, pool);
    args.c = few.data();
    RunGemm(plan, args, rows - 1, pool);
    for (int64_t i = 0; i < 8; ++i) {
      args.a = a.data() + i * k;
      args.c = row.data();
      RunGemm(plan, args, 1, pool);
      for (int64_t j = 0; j < n; ++j) {
        const float beside = few[i * n + j];
        EXPECT_TRUE(beside == row[j] || (std::isnan(beside) && std::isnan(row[j])))
            << "row " << i << ": " << beside << " and " << row[j];
      }
      float most = 0;
      for (int64_t at = i * k; at < (i + 1) * k; ++at) most = std::fmax(most, std::fabs(a[at]));
      for (int64_t j = 0; j < n; ++j) {
        double of_weights = 0;
        for (int64_t at = 0; at < k; ++at) {
          const Case c = {1, k, n, desc};
          of_weights += std::fabs(desc.b == DataType::u8 ? Number(c, args, b.data(), at, j)
                                                         : double{scales[j]} * b[at * n + j]);
        }
        const float wanted = many[i * n + j];
        if (!std::isfinite(wanted)) {
          ASSERT_TRUE(row[j] == wanted || (std::isnan(row[j]) && std::isnan(wanted)))
              << "row " << i << ", column " << j << ": " << row[j] << " and " << wanted;
          continue;
        }
        ASSERT_NEAR(row[j], wanted, 0x1p-22 * most * of_weights + 1e-42)
            << "row " << i << " column " << j;
      }
    }
  }
}

// Where a CPU gains from pairs, widened panels are multiplied so.
TEST_P(GemmWidenTest, InPairs) {
  const CpuModel pairs = {"AuthenticAMD", 0x19, 0x11};  // Zen 4
  PretendCpu(&pairs);
  constexpr int64_t m = 90, k = 130, n = 75;
  std::normal_distribution<float> normal;
  for (GemmDesc desc : kWidening) {
    if (desc.b == DataType::u8) continue;
    desc.k = k;
    desc.n = n;
    desc.pairs = true;
    desc.threads = 2;
    std::vector<float> a(m * k), scales(n), dst(m * n);
    std::vector<uint16_t> b(k * n);
    for (float& x : a) x = normal(rng_);
    for (float& x : scales) x = 0.01f + 0.001f * std::fabs(normal(rng_));
    const bool scaled = desc.b == DataType::s8;
    for (size_t i = 0; i < b.size(); ++i) {
      StoreFloatRef(desc.b, (scaled ? 40.f : 1.f) * normal(rng_), b.data(), i);
    }
    GemmArgs args = DenseArgs(desc, a.data(), dst.data());
    args.b_scales = scaled ? scales.data() : nullptr;
    PlanAndRun(desc, GetParam(), {b.data(), n, 1}, args, m, 2);
    const Case c = {m, k, n, desc};
    const std::vector<double> numbers = Numbers(c, args, b.data());
    for (int64_t i = 0; i < m; ++i) {
      const std::vector<float> row = Row(c, args, numbers, i);
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_NEAR(dst[i * n + j], row[j], 1e-4) << "at " << i << " " << j;
      }
    }
  }
  PretendCpu(nullptr);
}

}  // namespace
}  // namespace bd
