// Packed weights: who packs, what is kept and for how long, and that nobody waits for a lock.
#include "cc/tensorflow/weights/weights_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/cc/tensorflow/weights/support.h"

namespace bd {
namespace {

TEST(WeightsCache, ConstantWeightsArePackedOnceForAllKernels) {
  Execution execution;
  const Tensor weights = Weights(3);
  WeightsCache one(0, WeightsChange::kNever), other(0, WeightsChange::kNever);
  Doubling doubling;
  for (WeightsCache* cache : {&one, &other, &one}) {
    WeightsLease lease;
    AbortUnless(cache->Take(execution.ctx(), weights, Request("a", doubling), &lease));
    EXPECT_EQ(First(lease), 6);
    EXPECT_EQ(lease.bytes_packed(), 0);
  }
  EXPECT_EQ(doubling.packed(), 1);
}

// Of one weight there are as many packed forms as there are different requests, each found again.
TEST(WeightsCache, WhateverDiffersKeepsFormsApart) {
  Execution execution;
  const Tensor weights = Weights(3), other = Weights(3), more = Weights(4);
  Doubling doubling;
  std::vector<PackRequest> requests(9, Request("a", doubling));
  requests[1].key.algorithm = "b";
  requests[2].key.blocking = 2;
  requests[3].key.dtype = DataType::bf16;
  requests[4].key.op = "op";
  requests[5].shape[0] /= 2;
  requests[6].bytes += 64;
  requests[7].more = &other;
  requests[8].more = &more;
  std::vector<std::unique_ptr<WeightsCache>> caches;
  std::set<const float*> forms;
  for (int times = 0; times < 2; ++times) {
    for (const PackRequest& request : requests) {
      caches.push_back(std::make_unique<WeightsCache>(0, WeightsChange::kNever));
      WeightsLease lease;
      AbortUnless(caches.back()->Take(execution.ctx(), weights, request, &lease));
      forms.insert(lease.as<float>());
    }
  }
  EXPECT_EQ(forms.size(), requests.size());
  EXPECT_EQ(doubling.packed(), static_cast<int>(requests.size()));
}

TEST(WeightsCache, OffsetsKeepFormsApart) {
  Execution execution;
  Tensor weights = Weights(3);
  weights.flat<float>()(10) = 5;
  WeightsCache cache(0, WeightsChange::kNever), behind(10, WeightsChange::kNever);
  Doubling rest(10);
  WeightsLease all_of, rest_of;
  AbortUnless(cache.Take(execution.ctx(), weights, Request("a", rest), &all_of));
  AbortUnless(behind.Take(execution.ctx(), weights, Request("a", rest), &rest_of));
  EXPECT_EQ(First(all_of), 6);
  EXPECT_EQ(First(rest_of), 10);
}

TEST(WeightsCache, OtherWeightsAreKeptFromTheSecondTimeOn) {
  Execution execution;
  WeightsCache cache(0, WeightsChange::kOften);
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
  WeightsCache cache(0, WeightsChange::kOften);
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

// As often as the weights change; once they do so all the time, none is held.
TEST(WeightsCache, WeightsThatSeldomChangeAreKeptAtOnce) {
  Execution execution;
  WeightsCache cache(0, WeightsChange::kSeldom);
  Doubling doubling;
  Tensor kernel = Weights(0), recurrent = Weights(0);
  const auto take = [&] {
    PackRequest request = Request("a", doubling);
    request.more = &recurrent;
    WeightsLease lease;
    AbortUnless(cache.Take(execution.ctx(), kernel, request, &lease));
    return lease.bytes_packed() == 0;
  };
  for (int epoch = 0; epoch < 3; ++epoch) {
    kernel = Weights(1);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(take());
    EXPECT_EQ(doubling.packed(), epoch + 1);
  }
  const int before = doubling.packed();
  for (int step = 0; step < 5; ++step) {  // of the second matrix alone
    recurrent = Weights(static_cast<float>(step));
    EXPECT_EQ(take(), step == 0);
    EXPECT_EQ(doubling.packed(), before + step + 1);
  }
  EXPECT_TRUE(recurrent.RefCountIsOne());
  EXPECT_TRUE(take());
}

// The last of many weights changes, where no look at a few of them sees it.
TEST(WeightsCache, MemoryThatOthersWriteIsReadAgain) {
  Execution execution;
  alignas(64) float values[kCount] = {};
  const tensorflow::core::RefCountPtr<Borrowed> buffer(new Borrowed(values));
  const Tensor whole(tensorflow::DT_FLOAT, TensorShape({kCount}), buffer.get());
  const Tensor part = whole.Slice(16, kCount), own = Weights(1);
  EXPECT_TRUE(StaysWhileHeld(own) && StaysWhileHeld(own.Slice(16, kCount)));
  EXPECT_FALSE(StaysWhileHeld(whole) || StaysWhileHeld(part));
  int packs = 0;
  const auto pack = [&](const void*, void* packed) {
    memcpy(packed, values, sizeof values);
    ++packs;
  };
  for (const WeightsChange change : {WeightsChange::kSeldom, WeightsChange::kOften}) {
    for (const bool second : {false, true}) {
      WeightsCache cache(0, change);
      for (int step = 0; step < 12; ++step) {
        if (step % 4 == 0) values[kCount - 1] += 1;
        PackRequest request = Request("a", 1, pack, sizeof values);
        if (second) request.more = &part;
        const int before = packs;
        WeightsLease lease;
        AbortUnless(cache.Take(execution.ctx(), second ? own : part, request, &lease));
        EXPECT_EQ(lease.as<float>()[kCount - 1], values[kCount - 1]);
        EXPECT_FALSE(lease.lasts());
        if (step % 4 >= 2) EXPECT_EQ(packs, before) << step;  // it is kept as long as it is true
      }
    }
  }
}

// A bundle holds the weights of many ops, each of which looks at its own.
TEST(WeightsCache, OnlyWhatAnOpReadsTellsItsWeightsApart) {
  Execution execution;
  float values[kCount] = {};
  tensorflow::core::RefCountPtr<Borrowed> buffer(new Borrowed(values));
  const Tensor bundle(tensorflow::DT_FLOAT, TensorShape({kCount}), buffer.get());
  constexpr int kFirst = 100, kElements = 50;
  WeightsCache cache(kFirst, WeightsChange::kSeldom, kElements);
  int packs = 0;
  auto pack = [&](const void* plain, void* packed) {
    memcpy(packed, plain, kElements * sizeof(float));
    ++packs;
  };
  const auto packs_after = [&](int changed) {
    values[changed] += 1;
    WeightsLease lease;
    AbortUnless(cache.Take(execution.ctx(), bundle,
                           Request("a", 1, pack, kElements * sizeof(float)), &lease));
    EXPECT_EQ(memcmp(lease.data, values + kFirst, kElements * sizeof(float)), 0);
    return packs;
  };
  EXPECT_EQ(packs_after(0), 1);
  EXPECT_EQ(packs_after(kFirst - 1), 1);
  EXPECT_EQ(packs_after(kFirst + kElements), 1);
  EXPECT_EQ(packs_after(kFirst), 2);
  EXPECT_EQ(packs_after(kFirst + kElements - 1), 3);
}

TEST(WeightsCache, WhatNoExecutionWantsAnyMoreGoes) {
  Execution execution;
  const Tensor weights = Weights(3);
  WeightsCache cache(0, WeightsChange::kNever);
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
  WeightsCache cache(0, WeightsChange::kOften);
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
  WeightsCache cache(0, WeightsChange::kNever);
  Doubling doubling;
  const PackRequest request = Request("a", 1, doubling, int64_t{1} << 50);
  WeightsLease lease;
  const absl::Status status = cache.Take(execution.ctx(), Weights(1), request, &lease);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(doubling.packed(), 0);
}

TEST(WeightsCache, ManyThreadsPackOnce) {
  const Tensor weights = Weights(3);
  WeightsCache one(0, WeightsChange::kNever), other(0, WeightsChange::kNever);
  Doubling doubling;
  std::vector<std::thread> threads;
  constexpr int kThreadsOfACache = 4;
  // A thread that is late finds the first form still, since so few executions of others keep all.
  constexpr int kExecutions = 15;
  static_assert(kThreadsOfACache * kExecutions <= WeightsCache::kSettled);
  for (int t = 0; t < 2 * kThreadsOfACache; ++t) {
    threads.emplace_back([&, t] {
      Execution execution;
      for (int i = 0; i < kExecutions; ++i) {
        WeightsLease lease;
        AbortUnless((t % 2 ? one : other)
                        .Take(execution.ctx(), weights, Request("a", doubling, i / 3), &lease));
        EXPECT_EQ(First(lease), 6);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(doubling.packed(), 5);
}

}  // namespace
}  // namespace bd
