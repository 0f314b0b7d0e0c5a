// 32 threads run one plan at once, with scratch of their own from one ScratchPool,
// and must get the bits that one thread gets. `make test-tsan` builds this file and
// all it uses with ThreadSanitizer, where a data race is a failure.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cc/base/memory/aligned_buffer.h"
#include "cc/base/memory/scratch_pool.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr int kCallers = 32;
constexpr int kRunsEach = 6;

struct Case {
  const char* name;
  const char* algorithm;  // what the plan must have chosen
  ConvShape desc;
};

// Of one size, src and dst.
ConvShape Same(int64_t ic, int64_t size, int64_t oc, int64_t k, const char* post_ops) {
  ConvShape d = Square(ic, size, oc, k, 1, k / 2);
  d.post_ops = Chain(post_ops);
  return d;
}

// Every form of plan, and within them every way scratch is used.
std::vector<Case> Cases(Isa isa) {
  std::vector<Case> cases;
  const char* bias_relu = "binary(add,channel,#0);eltwise(relu)";
  cases.push_back({"strip", "direct", Same(20, 14, 40, 3, bias_relu)});
  cases.back().desc.algorithm = ConvAlgorithm::kDirect;
  cases.push_back({"in place", "direct", Same(20, 14, 40, 1, bias_relu)});
  cases.back().desc.algorithm = ConvAlgorithm::kDirect;
  cases.push_back({"paired", isa == Isa::kAvx512 ? "paired" : "direct", cases.back().desc});
  cases.back().desc.algorithm = ConvAlgorithm::kFip;
  cases.push_back({"winograd", "winograd", Same(40, 14, 40, 3, bias_relu)});
  cases.back().desc.algorithm = ConvAlgorithm::kWinograd;
  cases.push_back({"winograd of rows", "winograd", Same(40, 14, 40, 3, bias_relu)});
  cases.back().desc.algorithm = ConvAlgorithm::kWinograd;
  cases.back().desc.kh = 1;
  cases.back().desc.pad_top = 0;
  cases.push_back({"depthwise", "depthwise", Same(40, 14, 40, 3, bias_relu)});
  cases.back().desc.groups = 40;
  cases.push_back({"first layer", "direct_plain", Same(3, 14, 24, 3, bias_relu)});
  cases.back().desc.src_layout = Layout::nhwc;
  cases.push_back({"last layer", "dot", Same(40, 14, 2, 3, "eltwise(logistic)")});
  cases.back().desc.dst_layout = Layout::nhwc;
  cases.push_back({"inner product", "gemm", Same(70, 1, 50, 1, bias_relu)});
  cases.back().desc.src_layout = cases.back().desc.dst_layout = Layout::nhwc;
  cases.back().desc.iw = cases.back().desc.ow = 60;
  cases.push_back({"inner product in pairs", "gemm", cases.back().desc});
  cases.back().desc.keeps_weights = true;
  cases.back().desc.oc = 600;
  cases.push_back({"few rows", "rows", Same(700, 1, 250, 1, bias_relu)});
  cases.back().desc.src_layout = cases.back().desc.dst_layout = Layout::nhwc;
  cases.push_back({"few rows, kept", "rows", cases.back().desc});
  cases.back().desc.keeps_weights = true;
  return cases;
}

std::vector<float> SmallIntegers(int64_t count, int64_t factor) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * factor % 9) - 4.f;
  return values;
}

// One plan with its inputs, and the results of running it.
class Execution {
 public:
  Execution(const ConvShape& d, Isa isa, ThreadPool& pool) : pool_(pool) {
    EXPECT_EQ(MakeConvPlan(d, isa, pool.num_threads(), &plan_), "");
    src_ = SmallIntegers(SrcFloats(d), 7);
    weights_ = SmallIntegers(WeightFloats(d), 5);
    channel_ = SmallIntegers(d.oc, 2);
    packed_ = AlignedBuffer(plan_.packed_floats() * sizeof(float));
    PackConvWeights(plan_, weights_.data(), packed_.As<float>(), pool);
  }

  std::vector<float> Run(ScratchPool& scratch_pool) const {
    std::vector<float> dst(plan_.desc.result().elements(), -1.f);
    const float* args[] = {channel_.data()};
    const ScratchPool::Lease scratch = scratch_pool.Take(plan_.scratch.bytes());
    RunConv(plan_,
            {src_.data(), packed_.As<float>(), args, dst.data(), scratch.data(), weights_.data()},
            pool_);
    return dst;
  }

  const ConvPlan& plan() const { return plan_; }

 private:
  ThreadPool& pool_;
  ConvPlan plan_;
  std::vector<float> src_, weights_, channel_;
  AlignedBuffer packed_;
};

class ConvThreads : public ::testing::TestWithParam<Isa> {};

TEST_P(ConvThreads, ManyCallersOfOnePlan) {
  ThreadPool pool(3);
  for (const Case& c : Cases(GetParam())) {
    SCOPED_TRACE(c.name);
    const Execution execution(c.desc, GetParam(), pool);
    ASSERT_EQ(std::string(execution.plan().algorithm_name()).rfind(c.algorithm, 0), 0u)
        << execution.plan().algorithm_name();
    ScratchPool scratch_pool;
    const std::vector<float> expected = execution.Run(scratch_pool);
    std::vector<std::thread> callers;
    std::vector<int> wrong(kCallers, 0);
    for (int t = 0; t < kCallers; ++t) {
      callers.emplace_back([&, t] {
        for (int run = 0; run < kRunsEach; ++run) {
          const std::vector<float> dst = execution.Run(scratch_pool);
          wrong[t] += std::memcmp(dst.data(), expected.data(), 4 * expected.size()) != 0;
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, std::vector<int>(kCallers, 0));
    EXPECT_LE(scratch_pool.idle_buffers(), ScratchPool::kMostIdle);
  }
}

// Plans of different shapes and sizes through one pool of scratch, as in a kernel
// whose inputs change.
TEST_P(ConvThreads, ManyPlansShareAScratchPool) {
  ThreadPool pool(3);
  std::vector<Execution> executions;
  std::vector<std::vector<float>> expected;
  ScratchPool scratch_pool;
  for (const Case& c : Cases(GetParam())) {
    executions.emplace_back(c.desc, GetParam(), pool);
    expected.push_back(executions.back().Run(scratch_pool));
  }
  std::vector<std::thread> callers;
  std::vector<int> wrong(kCallers, 0);
  for (int t = 0; t < kCallers; ++t) {
    callers.emplace_back([&, t] {
      for (size_t i = 0; i < executions.size(); ++i) {
        const size_t at = (i + t) % executions.size();
        const std::vector<float> dst = executions[at].Run(scratch_pool);
        wrong[t] += std::memcmp(dst.data(), expected[at].data(), 4 * dst.size()) != 0;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, std::vector<int>(kCallers, 0));
}

INSTANTIATE_TEST_SUITE_P(Isas, ConvThreads, ::testing::ValuesIn(TestIsas()), IsaParam);

}  // namespace
}  // namespace bd
