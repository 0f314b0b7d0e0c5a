#include "cc/layout/window.h"

#include <gtest/gtest.h>

#include "tests/cc/layouts.h"

namespace bd {
namespace {

Window1d Make(int64_t size, int64_t kernel, int64_t stride, int64_t dilation = 1,
              int64_t before = 0, int64_t after = 0) {
  return {size, kernel, stride, dilation, before, after, 0};
}

struct Case {
  Padding padding;
  Window1d window;
  int64_t out, before, after;
};

// Expected values are TensorFlow's.
TEST(Window, MatchesTensorFlow) {
  const Case cases[] = {
      // SAME stride 2 is asymmetric: the odd element goes after.
      {Padding::kSame, Make(224, 3, 2), 112, 0, 1},
      {Padding::kSame, Make(224, 7, 2), 112, 2, 3},
      {Padding::kSame, Make(225, 3, 2), 113, 1, 1},
      {Padding::kSame, Make(14, 3, 1), 14, 1, 1},
      {Padding::kSame, Make(14, 2, 1), 14, 0, 1},
      // SAME uses the dilated kernel size.
      {Padding::kSame, Make(14, 3, 1, 4), 14, 4, 4},
      {Padding::kSame, Make(7, 2, 1, 3), 7, 1, 2},
      // Stride larger than the kernel, kernel larger than the input.
      {Padding::kSame, Make(10, 1, 3), 4, 0, 0},
      {Padding::kSame, Make(3, 7, 2), 2, 3, 3},
      {Padding::kSame, Make(0, 3, 2), 0, 0, 0},
      {Padding::kValid, Make(112, 3, 2), 55, 0, 0},
      {Padding::kValid, Make(10, 2, 5), 2, 0, 0},
      {Padding::kValid, Make(9, 3, 1, 4), 1, 0, 0},
      {Padding::kValid, Make(3, 4, 1), 0, 0, 0},
      {Padding::kValid, Make(3, 6, 2), 0, 0, 0},  // exceeds by less than two strides
      {Padding::kValid, Make(0, 1, 1), 0, 0, 0},
      {Padding::kExplicit, Make(112, 3, 2, 1, 1, 1), 56, 1, 1},
      {Padding::kExplicit, Make(5, 3, 1, 2, 0, 4), 5, 0, 4},
      {Padding::kExplicit, Make(0, 2, 1, 1, 1, 1), 1, 1, 1},
  };
  for (const Case& c : cases) {
    Window1d w = c.window;
    SCOPED_TRACE(testing::Message() << "size " << w.size << " kernel " << w.kernel << " stride "
                                    << w.stride << " dilation " << w.dilation);
    EXPECT_EQ(ResolveWindow(c.padding, &w), "");
    EXPECT_EQ(w.out, c.out);
    EXPECT_EQ(w.pad_before, c.before);
    EXPECT_EQ(w.pad_after, c.after);
  }
}

// Every element counts in SAME, and no window is all padding.
TEST(Window, SameCoversEveryWindow) {
  for (int64_t size = 1; size < 20; ++size) {
    for (int64_t kernel = 1; kernel < 9; ++kernel) {
      for (int64_t stride = 1; stride < 6; ++stride) {
        Window1d w = Make(size, kernel, stride);
        ASSERT_EQ(ResolveWindow(Padding::kSame, &w), "");
        EXPECT_LT(w.pad_before, kernel);
        EXPECT_LT((w.out - 1) * stride - w.pad_before, size);
        EXPECT_LE(w.pad_after - w.pad_before, 1);
        EXPECT_GE(w.pad_after, w.pad_before);
      }
    }
  }
}

TEST(Window, IgnoresOldPadsUnlessExplicit) {
  Window1d w = Make(8, 3, 1, 1, -5, 100);
  EXPECT_EQ(ResolveWindow(Padding::kValid, &w), "");
  EXPECT_EQ(w.out, 6);
  EXPECT_EQ(w.pad_before, 0);
  EXPECT_EQ(w.pad_after, 0);
}

TEST(Window, NamesWhatIsWrong) {
  const struct {
    Padding padding;
    Window1d window;
    const char* words;
  } cases[] = {
      {Padding::kSame, Make(8, 0, 1), "kernel size must be between 1"},
      {Padding::kSame, Make(8, 3, 0), "stride must be between 1"},
      {Padding::kValid, Make(8, 3, -1), "stride must be between 1"},
      {Padding::kValid, Make(8, 3, 1, 0), "dilation must be between 1"},
      {Padding::kValid, Make(8, int64_t{1} << 40, 1), "kernel size must be between 1"},
      {Padding::kSame, Make(-1, 3, 1), "input size must not be negative"},
      {Padding::kExplicit, Make(8, 3, 1, 1, -1, 0), "padding before must be between 0"},
      {Padding::kExplicit, Make(8, 3, 1, 1, 0, -1), "padding after must be between 0"},
      {Padding::kValid, Make(3, 7, 2), "window of 7 elements does not fit into 3"},
      {Padding::kExplicit, Make(1, 3, 1, 4, 1, 1), "window of 9 elements does not fit into 3"},
  };
  for (const auto& c : cases) {
    Window1d w = c.window;
    w.out = 77;
    const std::string error = ResolveWindow(c.padding, &w);
    EXPECT_NE(error.find(c.words), std::string::npos) << "got: " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_EQ(w.out, 0);
  }
}

TEST(Windows, AbsentDimensionsHaveOneElement) {
  Windows windows;
  windows.w = Make(7, 3, 2);
  ASSERT_EQ(ResolveWindows(Padding::kSame, &windows), "");
  EXPECT_EQ(windows.in(), 7);
  EXPECT_EQ(windows.taps(), 3);
  EXPECT_EQ(windows.out(), 4);
  EXPECT_EQ(windows.OutSizes(1), Dims({4}));
  windows.h = Make(5, 5, 1);
  windows.d = Make(6, 2, 2);
  ASSERT_EQ(ResolveWindows(Padding::kValid, &windows), "");
  EXPECT_EQ(windows.OutSizes(3), Dims({3, 1, 3}));
  EXPECT_EQ(windows.OutSizes(2), Dims({1, 3}));
  EXPECT_EQ(windows.OutSizes(0), Dims());
  EXPECT_EQ(windows.out(), 9);
  EXPECT_EQ(windows.taps(), 30);
}

TEST(Window, CoversAll) {
  const struct {
    Padding padding;
    Window1d window;
    bool covers;
  } cases[] = {
      {Padding::kValid, Make(8, 8, 8), true},
      {Padding::kSame, Make(2, 3, 2), true},
      {Padding::kExplicit, Make(3, 4, 2, 1, 1, 1), true},
      {Padding::kValid, Make(8, 7, 2), false},
      {Padding::kSame, Make(2, 3, 1), false},
      {Padding::kValid, Make(7, 4, 9, 2), false},
  };
  for (const auto& c : cases) {
    Window1d w = c.window;
    ASSERT_EQ(ResolveWindow(c.padding, &w), "");
    EXPECT_EQ(w.covers_all(), c.covers) << w.size << " kernel " << w.kernel;
  }
}

}  // namespace
}  // namespace bd
