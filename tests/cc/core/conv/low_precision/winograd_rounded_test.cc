// Winograd with planes of bfloat16 (AVX512_BF16) against its definition in double, in which only
// the planes are rounded; how far that is from direct sums; and that a large value changes no
// result whose window does not read it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cc/core/conv/conv.h"
#include "cc/core/conv/winograd/winograd.h"
#include "cc/core/gemm/low_precision_pack.h"
#include "tests/cc/core/conv/low_precision/low_precision_case.h"

namespace bd {
namespace {

constexpr double kEps = std::numeric_limits<float>::epsilon() / 2;
constexpr double kBfloat16Eps = 1. / 256;  // half a unit of bfloat16, relative, at most

float Rounded(float x) {
  const Bfloat16 rounded = RoundToBfloat16(x);
  return LoadAsFloatRef(bf16, &rounded, 0);
}

// An axis of F(2, r): y = A^T [(G g) . (B^T d)], of some pixels of a patch and some taps.
struct Axis {
  std::vector<int> pixels, taps;
  std::vector<std::vector<float>> b;   // [plane][pixel]
  std::vector<std::vector<double>> g;  // [plane][tap]
};
// Those whose products add up, at stride 1 and 2, and A^T.
const std::vector<Axis> kAxes[] = {
    {{{0, 1, 2, 3},
      {0, 1, 2},
      {{-1, 0, 1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}},
      {{-1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}}}},
    {{{0, 2, 4}, {0, 2}, {{1, -1, 0}, {0, 1, 0}, {0, -1, 1}}, {{1, 0}, {1, 1}, {0, 1}}},
     {{1, 3}, {1}, {{1, 0}, {0, 0}, {0, 1}}, {{1}, {0}, {1}}}}};
constexpr int kTile = 2, kMostPlanes = 4;
constexpr double kA[2][kTile][kMostPlanes] = {{{1, 1, 1, 0}, {0, 1, -1, 1}},
                                              {{1, 1, 0, 0}, {0, 1, 1, 0}}};

// Results of one tile and output channel, and the sums of |V| |U| after them.
struct Tile {
  double y[kTile][kTile] = {}, magnitude[kTile][kTile] = {};
};

class WinogradRoundedTest : public ::testing::TestWithParam<Isa> {
 public:
  struct Problem {
    ConvShape shape;
    std::vector<float> src, weights;  // [n][c][h][w] and hwio, numbers of bfloat16
    std::vector<float> dst;           // [n][o][h][w]

    float Src(int64_t n, int64_t c, int64_t h, int64_t w) const {
      if (h < 0 || w < 0 || h >= shape.ih || w >= shape.iw) return 0.f;
      return src[((n * shape.ic + c) * shape.ih + h) * shape.iw + w];
    }
    float Weight(int64_t kh, int64_t kw, int64_t c, int64_t o) const {
      return weights[((kh * shape.kw + kw) * shape.ic + c) * shape.oc + o];
    }
    float Dst(int64_t n, int64_t o, int64_t h, int64_t w) const {
      return dst[((n * shape.oc + o) * shape.oh + h) * shape.ow + w];
    }
  };

 protected:
  Problem Make(ConvShape shape) {
    shape.algorithm = ConvAlgorithm::kWinograd;
    Problem p = {shape, {}, {}, {}};
    p.src.resize(shape.n * shape.ic * shape.ih * shape.iw);
    p.weights.resize(WeightFloats(shape));
    for (float& x : p.src) x = Rounded(normal_(rng_));
    for (float& x : p.weights) x = Rounded(normal_(rng_));
    return p;
  }

  void SetUp() override {
    if (!MultipliesBfloat16(GetParam())) GTEST_SKIP() << "nothing is rounded";
  }

  void Run(Problem* p) {
    const ConvShape& s = p->shape;
    ConvDesc d = s;
    d.src = TensorView(bf16, d.src.layout(), d.src.dims());
    d.types.weights = bf16;
    const Guard guard = ++turn_ % 2 == 0 ? Guard::kAtEnd : Guard::kAtStart;
    const int threads = 1 + turn_ % 2;
    ThreadPool pool(threads);
    ConvPlan plan;
    const std::vector<Algorithm>& rows = ConvAlgorithms();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Algorithm& a) {
      return std::string(a.name) == "winograd2x2" && WhyNot(a, d, GetParam()).empty();
    });
    ASSERT_NE(row, rows.end());
    ASSERT_EQ(MakeConvPlanBy(*row, d, GetParam(), threads, &plan), "");
    ASSERT_TRUE(plan.Own<WinogradPlan>().bf16());
    GuardedArray src(d.src.bytes(), guard), weights(2 * WeightFloats(s), guard);
    GuardedArray dst(d.dst.bytes(), guard);
    for (int64_t n = 0; n < s.n; ++n) {
      for (int64_t c = 0; c < d.src.blocks() * d.src.lanes(); ++c) {
        for (int64_t i = 0; i < s.ih * s.iw; ++i) {
          const float x = c < s.ic ? p->Src(n, c, i / s.iw, i % s.iw) : 0.f;
          StoreFloatRef(bf16, x, src.data(), d.src.element(n, c, i));
        }
      }
    }
    for (int64_t i = 0; i < WeightFloats(s); ++i) {
      StoreFloatRef(bf16, p->weights[i], weights.data(), i);
    }
    PackAndRun(plan, src.data(), weights.data(), nullptr, dst.data(), pool, nullptr, nullptr,
               guard);
    p->dst.resize(s.n * s.oc * s.oh * s.ow);
    for (int64_t i = 0; i < static_cast<int64_t>(p->dst.size()); ++i) {
      const int64_t plane = s.oh * s.ow, n = i / plane / s.oc, o = i / plane % s.oc;
      p->dst[i] = dst.As<float>()[d.dst.element(n, o, i % plane)];
    }
  }

  // The tile whose first result is (y, x); `patch` keeps the planes of its source for the next o.
  static Tile Expected(const Problem& p, int64_t n, int64_t o, int64_t y, int64_t x,
                       std::vector<float>* patch) {
    const bool is_first = patch->empty();
    size_t at = 0;
    const int64_t stride = p.shape.sh;
    double m[kMostPlanes][kMostPlanes] = {}, magnitude[kMostPlanes][kMostPlanes] = {};
    for (const Axis& h : kAxes[stride - 1]) {
      for (const Axis& w : kAxes[stride - 1]) {
        for (int64_t c = 0; c < p.shape.ic; ++c) {
          for (size_t i = 0; i < h.b.size(); ++i) {
            for (size_t j = 0; j < w.b.size(); ++j) {
              float v = 0;
              for (size_t b = 0; is_first && b < w.pixels.size(); ++b) {
                float column = 0;
                for (size_t a = 0; a < h.pixels.size(); ++a) {
                  column += h.b[i][a] * p.Src(n, c, y * stride + h.pixels[a] - p.shape.pad_top,
                                              x * stride + w.pixels[b] - p.shape.pad_left);
                }
                v += column * w.b[j][b];
              }
              double u = 0;
              for (size_t t = 0; t < h.taps.size() * w.taps.size(); ++t) {
                const size_t a = t / w.taps.size(), b = t % w.taps.size();
                u += h.g[i][a] * w.g[j][b] * p.Weight(h.taps[a], w.taps[b], c, o);
              }
              if (is_first) patch->push_back(Rounded(v));
              const double product = double{(*patch)[at++]} * Rounded(static_cast<float>(u));
              m[i][j] += product;
              magnitude[i][j] += std::fabs(product);
            }
          }
        }
      }
    }
    Tile tile;
    for (int i = 0; i < kTile * kTile * kMostPlanes * kMostPlanes; ++i) {
      const int row = i / kTile % kTile, column = i % kTile;
      const int a = i / kTile / kTile / kMostPlanes, b = i / kTile / kTile % kMostPlanes;
      const double factor = kA[stride - 1][row][a] * kA[stride - 1][column][b];
      tile.y[row][column] += factor * m[a][b];
      tile.magnitude[row][column] += std::fabs(factor) * magnitude[a][b];
    }
    return tile;
  }

  void Check(const ConvShape& shape) {
    Problem p = Make(shape);
    ASSERT_NO_FATAL_FAILURE(Run(&p));
    const ConvShape& s = p.shape;
    const int64_t columns = (s.ow + 1) / kTile, tiles = (s.oh + 1) / kTile * columns;
    for (int64_t t = 0; t < s.n * tiles; ++t) {
      const int64_t n = t / tiles, top = t % tiles / columns * kTile, left = t % columns * kTile;
      std::vector<float> patch;
      for (int64_t o = 0; o < s.oc; o += 3) {
        const Tile tile = Expected(p, n, o, top, left, &patch);
        for (int64_t i = 0; i < kTile * kTile; ++i) {
          const int64_t y = top + i / kTile, x = left + i % kTile;
          if (y >= s.oh || x >= s.ow) continue;
          ASSERT_NEAR(p.Dst(n, o, y, x), tile.y[i / kTile][i % kTile],
                      40 * kEps * tile.magnitude[i / kTile][i % kTile])
              << ConvDesc(s).src.ToString() << " " << n << " " << o << " " << y << " " << x;
        }
      }
    }
  }

  std::mt19937 rng_{5};
  std::normal_distribution<float> normal_;
  int turn_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Isas, WinogradRoundedTest, ::testing::ValuesIn(TestIsas(Isa::kAvx512Amx)),
                         IsaParam);

ConvShape Window(int64_t stride, const Dims& src, int64_t oc, int64_t pad) {
  return ConvOf(src, oc, 3, stride, 1, {pad, pad / 2}, {pad, pad - pad / 2});
}

// Tails of channels, odd ones, tiles that hang over every edge, paddings of whole patches.
TEST_P(WinogradRoundedTest, ItsDefinition) {
  const int64_t cases[][5] = {// n, ic, oc, ih, iw
                              {1, 16, 16, 4, 4},  {2, 20, 41, 7, 9},   {1, 37, 33, 17, 18},
                              {2, 16, 16, 1, 1},  {1, 300, 100, 7, 7}, {3, 64, 64, 8, 8},
                              {1, 1, 16, 30, 31}, {1, 48, 16, 57, 3}};
  for (int64_t stride : {1, 2}) {
    for (const auto& [n, ic, oc, ih, iw] : cases) {
      for (int64_t pad : {0, 1, 2, 7}) {
        for (Layout layout : {Layout::nChw16c, Layout::nhwc}) {
          ConvShape d = Window(stride, {n, ic, ih, iw}, oc, pad);
          d.dst_layout = layout;
          if (d.oh > 0 && d.ow > 0 && ic * ih * (pad + 1) < 8000) Check(d);
        }
      }
    }
  }
}

// The direct sum of the same numbers, and of the products' magnitudes.
struct Direct {
  double y = 0, magnitude = 0;
};
Direct DirectSum(const WinogradRoundedTest::Problem& p, int64_t n, int64_t o, int64_t y,
                 int64_t x) {
  const ConvShape& s = p.shape;
  Direct sum;
  for (int64_t t = 0; t < s.kh * s.kw * s.ic; ++t) {
    const int64_t c = t % s.ic, kh = t / s.ic / s.kw, kw = t / s.ic % s.kw;
    const double product =
        double{p.Src(n, c, y * s.sh + kh - s.pad_top, x * s.sw + kw - s.pad_left)} *
        p.Weight(kh, kw, c, o);
    sum.y += product;
    sum.magnitude += std::fabs(product);
  }
  return sum;
}

// docs/algorithms.md has these numbers.
TEST_P(WinogradRoundedTest, WithinTheDocumentedBounds) {
  const struct {
    int stride, channels, size;
    double rms, largest;
  } cases[] = {{1, 64, 28, 4.5e-3, 5e-3}, {1, 512, 7, 4.5e-3, 5e-3}, {2, 64, 28, 4e-3, 5e-3}};
  for (const auto& c : cases) {
    Problem p = Make(Window(c.stride, {1, c.channels, c.size, c.size}, c.channels, 1));
    ASSERT_NO_FATAL_FAILURE(Run(&p));
    const ConvShape& s = p.shape;
    double error = 0, power = 0, worst = 0, largest = 0;
    for (int64_t o = 0; o < s.oc; o += 23) {
      for (int64_t i = 0; i < s.oh * s.ow; ++i) {
        const Direct sum = DirectSum(p, 0, o, i / s.ow, i % s.ow);
        const double off = p.Dst(0, o, i / s.ow, i % s.ow) - sum.y;
        error += off * off;
        power += sum.y * sum.y;
        worst = std::max(worst, std::fabs(off));
        largest = std::max(largest, std::fabs(sum.y));
      }
    }
    const double rms = std::sqrt(error / power);
    std::printf("stride %d %d channels %dx%d rms %.1e  largest %.1e\n", c.stride, c.channels,
                c.size, c.size, rms, worst / largest);
    EXPECT_LT(rms, c.rms);
    EXPECT_LT(worst / largest, c.largest);
  }
}

// Results whose windows do not read a large number have the bits that they have without it.
TEST_P(WinogradRoundedTest, LargeNumbersStayInTheirWindows) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [stride, factor] : std::initializer_list<std::pair<int64_t, float>>{
           {1, 1e2f}, {1, 1e30f}, {1, kInfinity}, {2, 1e2f}, {2, 1e30f}, {2, kInfinity}}) {
    Problem usual = Make(Window(stride, {1, 40, 9, 11}, 20, 1));
    Problem large = usual;
    const ConvShape& s = usual.shape;
    const int64_t h = 4, w = 5, c = 21;
    large.src[(c * s.ih + h) * s.iw + w] = Rounded(factor);
    turn_ = 0;
    ASSERT_NO_FATAL_FAILURE(Run(&usual));
    turn_ = 0;
    ASSERT_NO_FATAL_FAILURE(Run(&large));
    for (int64_t i = 0; i < s.oc * s.oh * s.ow; ++i) {
      const int64_t o = i / s.ow / s.oh, y = i / s.ow % s.oh, x = i % s.ow;
      const int64_t kh = h + s.pad_top - y * s.sh, kw = w + s.pad_left - x * s.sw;
      const bool reads = kh >= 0 && kh < s.kh && kw >= 0 && kw < s.kw;
      if (!reads) {
        ASSERT_EQ(large.Dst(0, o, y, x), usual.Dst(0, o, y, x)) << factor << " " << y << " " << x;
      } else if (std::isfinite(factor)) {
        const Direct sum = DirectSum(large, 0, o, y, x);
        // Every weight of the channel meets the number in some plane.
        const double most = sum.magnitude + 9. * factor * 4;
        ASSERT_NEAR(large.Dst(0, o, y, x), sum.y, 2 * kBfloat16Eps * most) << factor;
      }
    }
  }
}

}  // namespace
}  // namespace bd
