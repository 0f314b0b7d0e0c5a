// Packed weights: who packs, what is kept and for how long, and that nobody waits for a lock.
#include "cc/tensorflow/weights/weights_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/public/version.h"
#include "tests/cc/tensorflow/test_device.h"

namespace bd {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

REGISTER_OP("TestNothing").Output("nothing: float");

class NothingOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {}
};

REGISTER_KERNEL_BUILDER(Name("TestNothing").Device(tensorflow::DEVICE_CPU), NothingOp);

// A context to take memory from.
class Execution {
 public:
  Execution() {
    tensorflow::NodeDef node;
    AbortUnless(tensorflow::NodeDefBuilder("nothing", "TestNothing").Finalize(&node));
    absl::Status status;
    kernel_ =
        tensorflow::CreateOpKernel(tensorflow::DEVICE_CPU, &device_, tensorflow::cpu_allocator(),
                                   node, TF_GRAPH_DEF_VERSION, &status);
    AbortUnless(status);
    params_.device = &device_;
    params_.op_kernel = kernel_.get();
    ctx_ = std::make_unique<OpKernelContext>(&params_, 1);
  }
  OpKernelContext* ctx() { return ctx_.get(); }

 private:
  TestDevice device_;
  std::unique_ptr<OpKernel> kernel_;
  OpKernelContext::Params params_;
  std::unique_ptr<OpKernelContext> ctx_;
};

constexpr int kCount = 1000;

Tensor Weights(float value) {
  Tensor weights(tensorflow::DT_FLOAT, TensorShape({kCount}));
  weights.flat<float>().setConstant(value);
  return weights;
}

// "Packs" by doubling; counts how often.
class Doubling {
 public:
  explicit Doubling(int64_t offset = 0) : count_(kCount - offset) {}
  void operator()(const void* plain, void* packed) {
    ++packed_;
    const float* from = static_cast<const float*>(plain);
    float* to = static_cast<float*>(packed);
    for (int64_t i = 0; i < count_; ++i) to[i] = 2 * from[i];
  }
  int64_t bytes() const { return count_ * sizeof(float); }
  int packed() const { return packed_; }

 private:
  const int64_t count_;
  std::atomic<int> packed_{0};
};

template <typename Pack>
PackRequest Request(const char* algorithm, int64_t blocking, Pack& pack, int64_t bytes) {
  return {{algorithm, DataType::f32, blocking}, {bytes}, bytes, 0, pack};
}

PackRequest Request(const char* algorithm, Doubling& doubling, int64_t blocking = 1) {
  return Request(algorithm, blocking, doubling, doubling.bytes());
}

float First(const WeightsLease& lease) { return *lease.data; }

TEST(WeightsCache, ConstantWeightsArePackedOnceForAllKernels) {
  Execution execution;
  const Tensor weights = Weights(3);
  WeightsCache one(0, /*constant=*/true), other(0, /*constant=*/true);
  Doubling doubling;
  for (WeightsCache* cache : {&one, &other, &one}) {
    WeightsLease lease;
    AbortUnless(cache->Take(execution.ctx(), weights, Request("a", doubling), &lease));
    EXPECT_EQ(First(lease), 6);
    EXPECT_EQ(lease.bytes_packed(), 0);
  }
  EXPECT_EQ(doubling.packed(), 1);
}

TEST(WeightsCache, KeysAndOffsetsKeepFormsApart) {
  Execution execution;
  Tensor weights = Weights(3);
  weights.flat<float>()(10) = 5;
  WeightsCache cache(0, /*constant=*/true), behind(10, /*constant=*/true);
  Doubling all, rest(10);
  WeightsLease leases[4];
  AbortUnless(cache.Take(execution.ctx(), weights, Request("a", all), &leases[0]));
  AbortUnless(cache.Take(execution.ctx(), weights, Request("a", all, 2), &leases[1]));
  AbortUnless(cache.Take(execution.ctx(), weights, Request("b", all), &leases[2]));
  AbortUnless(behind.Take(execution.ctx(), weights, Request("a", rest), &leases[3]));
  EXPECT_EQ(all.packed() + rest.packed(), 4);
  EXPECT_EQ(First(leases[3]), 10);
}

TEST(WeightsCache, OtherWeightsAreKeptFromTheSecondTimeOn) {
  Execution execution;
  WeightsCache cache(0, /*constant=*/false);
  Doubling doubling;
  const Tensor before = Weights(3), after = Weights(4);
  const auto take = [&](const Tensor& weights) {
    WeightsLease lease;
    AbortUnless(cache.Take(execution.ctx(), weights, Request("a", doubling), &lease));
    EXPECT_EQ(First(lease), 2 * weights.flat<float>()(0));
    return lease.bytes_packed() == 0;
  };
  EXPECT_FALSE(take(before));
  EXPECT_TRUE(take(before));
  EXPECT_TRUE(take(before));
  EXPECT_FALSE(take(after));
  EXPECT_FALSE(take(before));
  EXPECT_EQ(doubling.packed(), 4);
}

// What an optimizer does: values are written into the same buffer where nobody else holds it, so a
// cache that holds it makes TensorFlow copy.
TEST(WeightsCache, WeightsThatKeepChangingAreNotHeld) {
  Execution execution;
  WeightsCache cache(0, /*constant=*/false);
  Doubling doubling;
  Tensor weights = Weights(0);
  const auto step = [&](float value) {
    weights.flat<float>().setConstant(value);
    WeightsLease lease;
    AbortUnless(cache.Take(execution.ctx(), weights, Request("a", doubling), &lease));
    EXPECT_EQ(First(lease), 2 * value);
  };
  step(1);
  EXPECT_FALSE(cache.changing());
  for (int i = 2; i < 100; ++i) {
    step(static_cast<float>(i));
    EXPECT_TRUE(weights.RefCountIsOne());
    EXPECT_TRUE(cache.changing());
    EXPECT_EQ(doubling.packed(), i);
  }
  step(7);
  const int packed = doubling.packed();
  for (int i = 0; i < 3; ++i) step(7);
  EXPECT_FALSE(cache.changing());
  EXPECT_FALSE(weights.RefCountIsOne());
  EXPECT_EQ(doubling.packed(), packed + 1);
}

TEST(WeightsCache, WhatNoExecutionWantsAnyMoreGoes) {
  Execution execution;
  const Tensor weights = Weights(3);
  WeightsCache cache(0, /*constant=*/true);
  Doubling doubling;
  const int64_t before = PackRegistry::Get().size();
  const auto take = [&](int64_t block) {
    WeightsLease lease;
    AbortUnless(cache.Take(execution.ctx(), weights, Request("a", doubling, block), &lease));
  };
  for (int turns = 0; turns < 10; ++turns) {  // in turn: both stay
    take(1);
    take(2);
  }
  EXPECT_EQ(PackRegistry::Get().size(), before + 2);
  EXPECT_EQ(doubling.packed(), 2);
  for (int i = 0; i <= WeightsCache::kSettled; ++i) take(2);
  EXPECT_EQ(PackRegistry::Get().size(), before + 1);
  cache.Release();
  EXPECT_EQ(PackRegistry::Get().size(), before);
}

TEST(WeightsCache, WhatIsReadPlainIsNeverPackedForOneExecution) {
  Execution execution;
  const Tensor weights = Weights(3);
  WeightsCache cache(0, /*constant=*/false);
  Doubling note;
  for (int i = 0; i < 3; ++i) {
    PackRequest request = Request("a", note);
    request.plain_bytes = kCount * sizeof(float);
    WeightsLease lease;
    AbortUnless(cache.Take(execution.ctx(), weights, request, &lease));
    EXPECT_EQ(lease.plain, weights.data());
    EXPECT_EQ(lease.data != nullptr, i > 0);
    EXPECT_EQ(note.packed(), i > 0);
  }
}

TEST(WeightsCache, TooMuchMemoryIsAnError) {
  Execution execution;
  WeightsCache cache(0, /*constant=*/true);
  Doubling doubling;
  const PackRequest request = Request("a", 1, doubling, int64_t{1} << 50);
  WeightsLease lease;
  const absl::Status status = cache.Take(execution.ctx(), Weights(1), request, &lease);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(doubling.packed(), 0);
}

TEST(WeightsCache, ManyThreadsPackOnce) {
  const Tensor weights = Weights(3);
  WeightsCache one(0, /*constant=*/true), other(0, /*constant=*/true);
  Doubling doubling;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Execution execution;
      for (int i = 0; i < 50; ++i) {
        WeightsLease lease;
        AbortUnless((t % 2 ? one : other)
                        .Take(execution.ctx(), weights, Request("a", doubling, i / 10), &lease));
        EXPECT_EQ(First(lease), 6);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(doubling.packed(), 5);
}

// While one thread packs, others take what is packed already, and a child process that is
// forked then packs for itself.
TEST(WeightsCache, NobodyWaitsForOtherWeights) {
  const Tensor slow = Weights(3), quick = Weights(4);
  WeightsCache cache(0, /*constant=*/true);
  std::atomic<bool> packing{false}, go_on{false};
  std::thread packer([&] {
    Execution execution;
    WeightsLease lease;
    const auto waits = [&](const void*, void* packed) {
      packing = true;
      while (!go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      memset(packed, 0, kCount * sizeof(float));
    };
    AbortUnless(
        cache.Take(execution.ctx(), slow, Request("a", 1, waits, kCount * sizeof(float)), &lease));
  });
  while (!packing) std::this_thread::yield();

  Execution execution;
  Doubling doubling;
  WeightsLease lease;
  AbortUnless(cache.Take(execution.ctx(), quick, Request("a", doubling), &lease));
  EXPECT_EQ(First(lease), 8);

  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    WeightsLease own;
    const bool taken = cache.Take(execution.ctx(), slow, Request("a", doubling), &own).ok();
    _exit(taken && First(own) == 6 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  go_on = true;
  packer.join();
}

}  // namespace
}  // namespace bd
