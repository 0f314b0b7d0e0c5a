// What the layer benchmark rests on: its files, its turns, its check of results.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/cc/contestant.h"
#include "benchmarks/cc/shapes.h"
#include "benchmarks/cc/turns.h"

namespace bd::layers {
namespace {

class ShapeFile {
 public:
  explicit ShapeFile(const std::string& text) { std::ofstream(path_) << text; }
  ~ShapeFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = testing::TempDir() + "shapes" + std::to_string(getpid()) + ".txt";
};

std::string ErrorOf(const std::string& text) {
  const ShapeFile file(text);
  try {
    ReadShapes(file.path());
  } catch (const std::runtime_error& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.rfind(file.path(), 0), 0u) << what;
    return what.substr(file.path().size());
  }
  return "";
}

TEST(Shapes, ReadsRowsAndSkipsComments) {
  const ShapeFile file(
      "# name n ic ih iw oc kh kw sh sw top left bottom right groups count\n"
      "\n"
      "dw 2 32 112 56 64 3 3 2 2 0 0 1 1 32 4\n");
  const std::vector<Shape> shapes = ReadShapes(file.path());
  ASSERT_EQ(shapes.size(), 1u);
  const Shape& s = shapes[0];
  EXPECT_EQ(s.ToString(), "2x32x112x56 > 64x56x28 3x3/2 g32");
  EXPECT_EQ(s.count, 4);
  EXPECT_EQ(s.weights_floats(), 3 * 3 * 1 * 64);
  EXPECT_EQ(s.src_floats(), 2 * 32 * 112 * 56);
  EXPECT_EQ(s.dst_floats(), 2 * 64 * 56 * 28);
  EXPECT_EQ(s.flops(), 2.0 * 2 * 56 * 28 * 64 * 9);
}

TEST(Shapes, NamesTheLineThatIsWrong) {
  EXPECT_EQ(ErrorOf("# nothing\n"), ": has no shapes");
  EXPECT_EQ(ErrorOf("#\nc 1 3 8 8 16 3 3 1 1 1 1 1 1 1\n"), ":2: expected a name and 15 numbers");
  EXPECT_EQ(ErrorOf("c 1 3 8 8 16 3 3 1 1 1 1 1 1 1 1 1\n"), ":1: expected a name and 15 numbers");
  EXPECT_EQ(ErrorOf("c 1 4 8 8 16 3 3 1 1 1 1 1 1 3 1\n"), ":1: groups divides ic and oc");
  EXPECT_EQ(ErrorOf("c 1 4 8 8 16 3 3 0 1 1 1 1 1 1 1\n"),
            ":1: sizes, strides, groups and count are positive");
  EXPECT_EQ(ErrorOf("c 1 4 8 8 16 3 3 1 1 -1 1 1 1 1 1\n"), ":1: padding is not negative");
  EXPECT_EQ(ErrorOf("c 1 4 2 8 16 5 5 1 1 1 2 1 2 1 1\n"),
            ":1: the kernel fits into the padded source");
}

class Logger : public Contestant {
 public:
  Logger(char name, std::string* log) : name_(name), log_(log) {}
  std::string algorithm() const override { return ""; }
  void Run() override { *log_ += name_; }
  std::vector<float> Result() const override { return {}; }

 private:
  const char name_;
  std::string* log_;
};

TEST(Turns, AlternateAndStartInChangingOrder) {
  std::string log;
  Logger a('a', &log), b('b', &log);
  const std::vector<Timing> timings = TakeTurns({&a, &b}, {/*rounds=*/3, /*turn_us=*/0,
                                                           /*warm_us=*/0});
  // One call to warm up and two that count.
  EXPECT_EQ(log,
            "aaabbb"
            "bbbaaa"
            "aaabbb");
  for (const Timing& timing : timings) {
    ASSERT_EQ(timing.us.size(), 6u);
    EXPECT_LE(timing.min(), timing.median());
  }
}

TEST(LargestDifference, IsRelativeToTheRootMeanSquareAndKeepsNan) {
  EXPECT_EQ(LargestDifference({3, 4}, {3, 4}), 0);
  EXPECT_FLOAT_EQ(LargestDifference({3, 5, 0}, {3, 4, 0}), 1 / std::sqrt(25.0 / 3));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(LargestDifference({nan, 5}, {3, 4})));
}

TEST(Ours, IsTheConvolutionOnEveryCopy) {
  // 1x1 over one pixel: dst = relu(src weights + bias).
  const Shape shape = {"c", 1, 5, 1, 1, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1};
  Problem problem = MakeProblem(shape);
  problem.weights_copies = 3;
  problem.activation_copies = 2;
  std::vector<float> expected = problem.bias;
  for (int o = 0; o < 3; ++o) {
    for (int i = 0; i < 5; ++i) expected[o] += problem.src[i] * problem.weights[i * 3 + o];
    expected[o] = std::max(expected[o], 0.f);
  }
  ThreadPool pool(1);
  const auto ours = MakeOurs(problem, DetectIsa(), ConvAlgorithm::kAuto, pool);
  for (int run = 0; run < 6; ++run) {
    ours->Run();
    const std::vector<float> result = ours->Result();
    ASSERT_EQ(result.size(), 3u);
    for (int o = 0; o < 3; ++o) EXPECT_NEAR(result[o], expected[o], 1e-6);
  }
}

}  // namespace
}  // namespace bd::layers
