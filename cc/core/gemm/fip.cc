#include "cc/core/gemm/fip.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cc/base/cpu/cpu_model.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/gemm/tiles/fip_weights_kernel.h"

namespace bd {
namespace {

// Sums in pairs round at most (r + 1 / r) / 2 times as much where the source's root mean
// square is r times the weights', so within a step, r <= 4, by a factor of about 2.
constexpr int kExponentStep = 4;
constexpr int kMaxExponent = 48;  // its square, twice, is still a float

// In units of the task's scale, a row's root mean square is at most this, and the mean of its
// magnitudes at least the inverse.
constexpr double kMost = 32;

float TwoTo(int exponent) { return std::ldexp(1.f, exponent); }

}  // namespace

int FipExponentOf(double squares, int64_t count) {
  if (count == 0 || squares == 0 || !std::isfinite(squares)) return 0;
  constexpr double kMost = kMaxExponent / kExponentStep;
  const double steps = std::round(0.5 * std::log2(squares / count) / kExponentStep);
  return kExponentStep * static_cast<int>(std::clamp(steps, -kMost, kMost));
}

// By which squares are at most the square of a sum of magnitudes, of n numbers.
double FipShapeOf(int64_t n) { return std::max(0.15 * 0.15 * n, 1.5 * 1.5); }

bool FipInShape(double squares, double sums, int64_t n) {
  return sums * sums >= FipShapeOf(n) * squares;
}

float MostFipSquares(int64_t n, int exponent) {
  return static_cast<float>(n * kMost * kMost * std::ldexp(1., 2 * exponent));
}

float LeastFipSum(int64_t n, double scales) { return static_cast<float>(n * scales / kMost); }

bool MarkApart(Isa isa, const float* squares, const float* sums, int64_t rows, int64_t n,
               int exponent, uint8_t* apart) {
  const float least = LeastFipSum(n, TwoTo(exponent)), most = MostFipSquares(n, exponent);
  const float shape = static_cast<float>(FipShapeOf(n));
  const FipRangeArgs range = {squares, sums, rows, most, least, shape};
  const int64_t first = FipKernelsFor(isa).rows_in_range(range);
  if (first == rows) return false;
  std::fill(apart, apart + first, uint8_t{0});
  uint8_t any = 0;
  for (int64_t r = first; r < rows; ++r) {  // no branches; comparisons with NaN are false
    const uint8_t in_range =
        (sums[r] >= least) & (squares[r] <= most) & (sums[r] * sums[r] >= shape * squares[r]);
    apart[r] = in_range ^ 1;
    any |= apart[r];
  }
  return any != 0;
}

void MarkPanelApart(float* channel_terms) {
  channel_terms[0] = std::numeric_limits<float>::quiet_NaN();
}

void AddFipChannelTerms(Isa isa, const float* weights, int64_t lanes, int64_t taps, float* terms) {
  for (int64_t b = 0; b < lanes; b += kBlock) {
    FipWeightsKernelsFor(isa).add_terms(taps, lanes, weights + b, terms + b);
  }
}

bool ScaleFipColumns(Isa isa, int64_t rows, int64_t lanes, int exponent, float* weights,
                     float* unscale) {
  const FipWeightsKernels& kernels = FipWeightsKernelsFor(isa);
  bool in_shape = true;
  for (int64_t b = 0; b < lanes; b += kBlock) {
    double squares[kBlock], sums[kBlock];
    float factors[kBlock];
    kernels.squares(rows, lanes, weights + b, squares, sums);
    for (int64_t i = 0; i < kBlock; ++i) {
      in_shape &= FipInShape(squares[i], sums[i], rows);
      if (squares[i] == 0) {
        unscale[b + i] = 0.f;
        factors[i] = 1.f;
        continue;
      }
      const double to_one =
          std::isfinite(squares[i]) ? std::round(-0.5 * std::log2(squares[i] / rows)) : 0;
      const int e = exponent + static_cast<int>(std::clamp(to_one, -60., 60.));
      unscale[b + i] = TwoTo(-e);
      factors[i] = TwoTo(e);
    }
    kernels.scale(rows, lanes, factors, weights + b);
  }
  return in_shape;
}

void PackFipPlane(Isa isa, int64_t channels, int64_t lanes, float* weights, float* unscale,
                  float* channel_terms) {
  const bool in_shape = ScaleFipColumns(isa, channels, lanes, 0, weights, unscale);
  std::fill(channel_terms, channel_terms + lanes, 0.f);
  AddFipChannelTerms(isa, weights, lanes, channels / kBlock, channel_terms);
  if (!in_shape) MarkPanelApart(channel_terms);
}

int PrepareFipPlane(Isa isa, const FipSourceArgs& a, int64_t blocks) {
  const double squares = FipKernelsFor(isa).source_terms(a);
  const int exponent = FipExponentOf(squares, a.px * a.taps * kBlock);
  if (exponent == 0) return 0;
  const float down = TwoTo(-exponent);
  for (int64_t b = 0; b < blocks; ++b) {
    float* block = const_cast<float*>(a.src) + a.tap_offsets[b];
    FipKernelsFor(isa).scale({block, down, a.px * kBlock, block});
  }
  for (int64_t p = 0; p < a.px; ++p) a.terms[p] *= down * down;
  return exponent;
}

namespace {

// Columns [16 b, 16 b + 16) of row i go to packed + tap_offsets[b] + 16 i, zero behind the last of
// the k columns.
void CopyFipRows(int64_t rows, int64_t k, FunctionRef<const float*(int64_t)> row_at,
                 const int64_t* tap_offsets, float* packed) {
  const int64_t whole = k / kBlock, tail = k - whole * kBlock;
  for (int64_t i = 0; i < rows; ++i) {
    const float* from = row_at(i);
    float* to = packed + i * kBlock;
    for (int64_t b = 0; b < whole; ++b) {
      std::memcpy(to + tap_offsets[b], from + b * kBlock, kBlock * sizeof(float));
    }
    if (tail > 0) {
      float* last = to + tap_offsets[whole];
      std::memset(last, 0, kBlock * sizeof(float));
      std::memcpy(last, from + whole * kBlock, tail * sizeof(float));
    }
  }
}

}  // namespace

bool GainsFromFip(Isa isa) { return FipKernelsFor(isa).tile_pixels > 0 && AddsBesideMultiplies(); }

void FipRows::Book(int64_t columns, int64_t rows, int64_t copies, ScratchBook* book) {
  k = columns;
  // Of an odd number of cache lines, so that blocks begin in different sets of L1.
  const int64_t blocks = CeilDiv(k, kBlock), block_floats = (rows | 1) * kBlock;
  tap_offsets.clear();
  for (int64_t b = 0; b < blocks; ++b) tap_offsets.push_back(b * block_floats);
  data = book->Book<float>("rows in pairs", blocks * block_floats, copies);
  terms = book->Book<float>("terms of pairs", rows, copies);
  squares = book->Book<float>("squares of pairs", rows, copies);
  sums = book->Book<float>("magnitudes of pairs", rows, copies);
  apart = book->Book<uint8_t>("rows apart from pairs", rows, copies);
  scale = book->Book<Scale>("scales of pairs", 1, copies);
}

void FipRows::Pack(Isa isa, const Scratch& scratch, int64_t copy, int64_t rows,
                   FunctionRef<const float*(int64_t)> row_at) const {
  float* const packed = scratch.Grant(data, copy);
  CopyFipRows(rows, k, row_at, tap_offsets.data(), packed);
  const FipSourceArgs a = {packed,
                           tap_offsets.data(),
                           k / kBlock,
                           rows,
                           scratch.Grant(terms, copy),
                           scratch.Grant(squares, copy),
                           scratch.Grant(sums, copy)};
  const int exponent = PrepareFipPlane(isa, a, CeilDiv(k, kBlock));
  const bool holds_apart = MarkApart(isa, a.squares, a.sums, rows, a.taps * kBlock, exponent,
                                     scratch.Grant(apart, copy));
  *scratch.Grant(scale, copy) = {TwoTo(exponent), holds_apart};
}

const float* FipRows::Bind(const Scratch& scratch, int64_t copy, int64_t first_row,
                           PanelCall<Panel>* call) const {
  call->family = TileFamily::kFip;
  call->tap_offsets = tap_offsets.data();
  call->taps = k / kBlock;
  call->tail_length = k % kBlock;
  call->tail_taps = call->tail_length > 0;
  call->px_stride = kBlock;
  call->pixel_terms = scratch.Grant(terms, copy) + first_row;
  call->apart =
      scratch.Grant(scale, copy)->holds_apart ? scratch.Grant(apart, copy) + first_row : nullptr;
  return scratch.Grant(data, copy) + first_row * kBlock;
}

}  // namespace bd
