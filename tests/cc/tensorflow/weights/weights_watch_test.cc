// Whether a variable has changed: what was assigned, what was written where it is, and what was
// not.
#include "cc/tensorflow/weights/weights_watch.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/cc/tensorflow/weights/support.h"

namespace bd {
namespace {

// A watch of one variable.
struct Watching {
  explicit Watching(const Tensor& value) : variable(new tensorflow::Var(tensorflow::DT_FLOAT)) {
    *variable->tensor() = value;
    variable->Ref();
    watch.Add(WeightsWatch::Variable(variable), value);
  }
  ~Watching() { variable->Unref(); }
  float* data() { return variable->tensor()->flat<float>().data(); }

  tensorflow::Var* const variable;
  WeightsWatch watch;
};

TEST(WeightsWatch, OtherValuesAreAChange) {
  Watching one(Weights(1));
  EXPECT_FALSE(one.watch.Changed());
  *one.variable->tensor() = Weights(2);
  EXPECT_TRUE(one.watch.Changed());
  EXPECT_TRUE(one.watch.Changed());  // until somebody reads them
}

TEST(WeightsWatch, TheSameValuesElsewhereAreNone) {
  Watching one(Weights(1));
  *one.variable->tensor() = Weights(1);
  EXPECT_FALSE(one.watch.Changed());
  // The watch holds these values now, and what is held TensorFlow writes elsewhere, so it does not
  // look at them.
  one.data()[kCount - 1] = 2;
  EXPECT_FALSE(one.watch.Changed());
}

TEST(WeightsWatch, OtherShapesAreAChange) {
  Watching one(Weights(1));
  Tensor other(tensorflow::DT_FLOAT, TensorShape({50}));
  other.flat<float>().setConstant(1);
  *one.variable->tensor() = other;
  EXPECT_TRUE(one.watch.Changed());
}

TEST(WeightsWatch, TheValueIsHeld) {
  Watching one(Weights(1));
  EXPECT_FALSE(one.variable->tensor()->RefCountIsOne());
}

// Sparse updates write where the variable is, of which TensorFlow reads copies.
TEST(WeightsWatch, WrittenWhereItIs) {
  Watching one(Weights(1));
  *one.variable->tensor() = Weights(1);
  one.variable->copy_on_read_mode.store(true);
  EXPECT_FALSE(one.watch.Changed());
  one.data()[kCount - 1] = 2;
  EXPECT_TRUE(one.watch.Changed());
  one.data()[kCount - 1] = 1;
  EXPECT_FALSE(one.watch.Changed());
}

TEST(WeightsWatch, MemoryOfOthers) {
  alignas(64) float values[kCount] = {};
  const tensorflow::core::RefCountPtr<Borrowed> buffer(new Borrowed(values));
  Watching one(Tensor(tensorflow::DT_FLOAT, TensorShape({kCount}), buffer.get()));
  EXPECT_FALSE(one.watch.Changed());
  values[50] = 2;
  EXPECT_TRUE(one.watch.Changed());
  values[50] = 0;
  EXPECT_FALSE(one.watch.Changed());
}

TEST(WeightsWatch, ManyThreadsLook) {
  Watching one(Weights(1));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) EXPECT_FALSE(one.watch.Changed());
    });
  }
  for (int i = 0; i < 1000; ++i) {
    const Tensor same = Weights(1);
    const tensorflow::mutex_lock lock(*one.variable->mu());
    *one.variable->tensor() = same;
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace bd
