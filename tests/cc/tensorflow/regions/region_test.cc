// Regions: the same values op by op, recorded and planned, for one caller and for many.
#include "cc/tensorflow/regions/region.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/log/globals.h"
#include "cc/tensorflow/ops/op.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/function.h"
#include "tests/cc/tensorflow/test_device.h"

namespace bd {
namespace {

using tensorflow::FunctionDefHelper;

// Runs with a context of their own: none of those of a static plan.
std::atomic<int> resolved{0};

// Its first weight is packed as it is.
struct SumAndProduct : OpDefaults {
  struct Plan {
    ScratchBook scratch;
    int64_t elements;
  };
  static constexpr int kNumWeights = 1;
  static constexpr std::array kFixedInputs = {1};

  static OpSignature Signature() {
    return {
        "TestSumAndProduct", {"x: float", "weights: float"}, {"sum: float", "product: float"}, ""};
  }
  void Visit(AttrVisitor&) {}
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    if (in[0].dims() > 1) return Invalid("x must have one dimension");
    *dst = {in[0], in[0]};
    return absl::OkStatus();
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    plan->elements = in[0].num_elements();
    plan->scratch.Book<float>("copy", plan->elements);
    return absl::OkStatus();
  }
  WeightsUse weights_use(int) const { return {0, WeightsChange::kNever}; }
  PackRequest Weights(const Plan&, int, OpKernelContext*, WeightsPacker pack) const {
    return {{}, {1}, sizeof(float), 0, pack};
  }
  void Pack(const Plan&, int, const void* plain, OpKernelContext*, void* packed,
            ThreadPool&) const {
    memcpy(packed, plain, sizeof(float));
  }
  static bool Forwards(const Plan&) {  // asked by each run with a context
    ++resolved;
    return false;
  }
  void Run(const Plan& plan, const LaunchMemory& memory, ThreadPool&) const {
    const float weight = *memory.weights[0].as<float>();
    float* const scratch = static_cast<float*>(memory.scratch);
    for (int64_t i = 0; i < plan.elements; ++i) scratch[i] = memory.in<float>(0)[i];
    for (int64_t i = 0; i < plan.elements; ++i) {
      memory.out<float>(0)[i] = scratch[i] + weight;
      memory.out<float>(1)[i] = scratch[i] * weight;
    }
  }
  std::vector<int> reusable_inputs() const { return {0}; }
};

const OpRegistration<SumAndProduct> registration;

// (x, w) -> ((x + w) * w, (x + w) * w + w, x * w): two ops, a chain and a result between.
tensorflow::FunctionDef Body(const char* name) {
  return FunctionDefHelper::Create(
      name, {"x: float", "w: float"}, {"a: float", "b: float", "c: float"}, {},
      {{{"first"}, "TestSumAndProduct", {"x", "w"}},
       {{"second"}, "TestSumAndProduct", {"first:sum:0", "w"}}},
      {{"a", "second:product:0"}, {"b", "second:sum:0"}, {"c", "first:product:0"}});
}

// The same through a region in it.
tensorflow::FunctionDef Caller(const char* name, const char* inner) {
  const tensorflow::DataTypeVector in(2, tensorflow::DT_FLOAT), out(3, tensorflow::DT_FLOAT);
  return FunctionDefHelper::Create(
      name, {"x: float", "w: float"}, {"a: float", "b: float", "c: float"}, {},
      {{{"region"},
        "BlockdnnRegion",
        {"x", "w"},
        {{"Tin", in}, {"Tout", out}, {"f", FunctionDefHelper::FunctionRef(inner)}}}},
      {{"a", "region:results:0"}, {"b", "region:results:1"}, {"c", "region:results:2"}});
}

class RegionTest : public testing::Test {
 protected:
  RegionTest() : library_(tensorflow::OpRegistry::Global(), Functions()) {
    absl::SetMinLogLevel(absl::LogSeverityAtLeast::kError);
  }

  std::unique_ptr<Region> Make(const std::string& function, int arenas = 2) {
    OpSequence sequence;
    const KernelSite site = {&device_, nullptr, nullptr, &library_};
    AbortUnless(OpSequence::Make(site, function, &sequence));
    return std::make_unique<Region>(std::move(sequence), arenas);
  }

  absl::Status Run(Region* region, const Tensor& x, const Tensor& w, std::vector<Tensor>* results) {
    OpKernelContext::Params params;
    params.device = &device_;
    return region->Run(std::move(params), {x, w}, results);
  }

  void Check(Region* region, int size, const Tensor& weights, float start) {
    Tensor x(tensorflow::DT_FLOAT, TensorShape({size}));
    for (int i = 0; i < size; ++i) x.flat<float>()(i) = start + i;
    const float w = weights.flat<float>()(0);
    std::vector<Tensor> results;
    AbortUnless(Run(region, x, weights, &results));
    ASSERT_EQ(results.size(), 3u);
    for (int i = 0; i < size; ++i) {
      const float v = start + i;
      ASSERT_EQ(x.flat<float>()(i), v) << "an argument was written to";
      ASSERT_EQ(results[0].flat<float>()(i), (v + w) * w);
      ASSERT_EQ(results[1].flat<float>()(i), (v + w) + w);
      ASSERT_EQ(results[2].flat<float>()(i), v * w);
    }
  }

  static Tensor Weights(float value) {
    Tensor weights(tensorflow::DT_FLOAT, TensorShape({1}));
    weights.flat<float>()(0) = value;
    return weights;
  }

  TestDevice device_{2};

 private:
  static tensorflow::FunctionDefLibrary Functions() {
    tensorflow::FunctionDefLibrary functions;
    *functions.add_function() = Body("body");
    *functions.add_function() = Caller("caller", "body");
    return functions;
  }

  tensorflow::FunctionLibraryDefinition library_;
};

TEST_F(RegionTest, LaterRunsAreTheSame) {
  for (const char* function : {"body", "caller"}) {
    for (int arenas : {0, 2}) {
      const auto region = Make(function, arenas);
      const Tensor weights = Weights(3);
      for (int run = 0; run < 6; ++run) Check(region.get(), 5, weights, run);
    }
  }
}

TEST_F(RegionTest, ShapesInTurn) {
  const auto region = Make("body");
  const Tensor weights = Weights(3);
  for (int run = 0; run < 400; ++run) Check(region.get(), 1 + run % 7, weights, run);
  for (int run = 0; run < 200; ++run) Check(region.get(), 4, weights, run);
  for (int run = 0; run < 60; ++run) Check(region.get(), 1 + run % 20, weights, run);
}

TEST_F(RegionTest, EachOfManyShapesHasAPlan) {
  const auto region = Make("body");
  const Tensor weights = Weights(3);
  for (int run = 0; run < 64; ++run) Check(region.get(), 1 + run % 16, weights, run);
  const int before = resolved;
  for (int run = 0; run < 64; ++run) Check(region.get(), 1 + run % 16, weights, run);
  EXPECT_EQ(resolved, before);
}

TEST_F(RegionTest, OldChangesOfWeightsAreForgotten) {
  const auto region = Make("body");
  std::vector<Tensor> kept;
  const auto change_weights = [&] { kept.push_back(Weights(kept.size())); };
  for (int run = 0; run < 200; ++run) {
    change_weights();
    Check(region.get(), 6, kept.back(), run);
  }
  for (int run = 0; run < 400; ++run) Check(region.get(), 6, kept.back(), run);
  change_weights();
  const int before = resolved;
  for (int run = 0; run < 20; ++run) Check(region.get(), 6, kept.back(), run);
  EXPECT_LE(resolved - before, 4);  // two runs of two ops, then there is a plan again
}

TEST_F(RegionTest, ACancelledRunStops) {
  tensorflow::CancellationManager cancelled;
  cancelled.StartCancel();
  const auto region = Make("body");
  const Tensor weights = Weights(3);
  for (int run = 0; run < 4; ++run) {  // op by op, recorded and planned
    Check(region.get(), 5, weights, run);
    OpKernelContext::Params params;
    params.device = &device_;
    params.cancellation_manager = &cancelled;
    Tensor x(tensorflow::DT_FLOAT, TensorShape({5}));
    std::vector<Tensor> results;
    const absl::Status status = region->Run(std::move(params), {x, weights}, &results);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  }
}

TEST_F(RegionTest, NewWeightsAreSeenAtOnce) {
  const auto region = Make("body");
  std::vector<Tensor> kept;  // so that each has memory of its own
  for (int run = 0; run < 100; ++run) {
    if (run % 5 == 0) kept.push_back(Weights(run));
    Check(region.get(), 6, kept.back(), run);
  }
}

TEST_F(RegionTest, NoElementsAreNoTrouble) {
  const auto region = Make("body");
  const Tensor weights = Weights(2);
  for (int run = 0; run < 4; ++run) Check(region.get(), 0, weights, 1);
}

TEST_F(RegionTest, AnErrorNamesItsNode) {
  const auto region = Make("caller");
  const Tensor matrix(tensorflow::DT_FLOAT, TensorShape({2, 2}));
  std::vector<Tensor> results;
  for (int run = 0; run < 4; ++run) {
    const absl::Status status = Run(region.get(), matrix, Weights(1), &results);
    EXPECT_EQ(status.message(), "x must have one dimension [[node first]]");
  }
}

TEST_F(RegionTest, BrokenFunctionsAreNamed) {
  const auto error = [&](const tensorflow::FunctionDef& broken) {
    tensorflow::FunctionDefLibrary functions;
    *functions.add_function() = broken;
    const tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(),
                                                        functions);
    const KernelSite site = {&device_, nullptr, nullptr, &library};
    OpSequence sequence;
    return std::string(OpSequence::Make(site, "broken", &sequence).message());
  };
  EXPECT_EQ(error(Caller("broken", "nowhere")), "there is no function nowhere");
  EXPECT_EQ(error(Caller("broken", "broken")),
            "node region (BlockdnnRegion) calls itself; call the function as TensorFlow does");
  tensorflow::FunctionDef without = Caller("broken", "body");
  without.mutable_node_def(0)->mutable_attr()->erase("f");
  EXPECT_NE(error(without).find("'f'"), std::string::npos) << error(without);
}

TEST_F(RegionTest, ManyCallersAtOnce) {
  const auto region = Make("caller");
  const Tensor weights = Weights(3);
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&, t] {
      for (int run = 0; run < 200; ++run) Check(region.get(), 3 + t % 2, weights, 100 * t + run);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace bd
