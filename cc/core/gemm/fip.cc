#include "cc/core/gemm/fip.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cc/base/cpu/cpu_model.h"

namespace bd {
namespace {

// Sums in pairs round at most (r + 1 / r) / 2 times as much where the source's root mean
// square is r times the weights', so within a step, r <= 4, by a factor of about 2.
constexpr int kExponentStep = 4;
constexpr int kMaxExponent = 48;  // its square, twice, is still a float

// In units of the scale, a row's root mean square is at most this, and the mean of its magnitudes
// at least the inverse.
constexpr double kMost = 32;

float TwoTo(int exponent) { return std::ldexp(1.f, exponent); }

// n numbers are in shape for pairs where (sum of |x|)^2 >= ShapeOf(n) sum of x^2.
double ShapeOf(int64_t n) { return std::max(0.15 * 0.15 * n, 1.5 * 1.5); }

}  // namespace

int FipExponentOf(double squares, int64_t count) {
  if (count == 0 || squares == 0 || !std::isfinite(squares)) return 0;
  constexpr double kMostSteps = kMaxExponent / kExponentStep;
  const double steps = std::round(0.5 * std::log2(squares / count) / kExponentStep);
  return kExponentStep * static_cast<int>(std::clamp(steps, -kMostSteps, kMostSteps));
}

bool GainsFromFip(Isa isa) { return FipKernelsFor(isa).tile_pixels > 0 && AddsBesideMultiplies(); }

void PackFip(Isa isa, int64_t rows, int64_t pair_taps, int64_t lanes, float* weights,
             float* unscale, float* column_terms) {
  const FipKernels& kernels = FipKernelsFor(isa);
  bool in_shape = true;
  for (int64_t b = 0; b < lanes; b += kBlock) {
    double squares[kBlock], sums[kBlock];
    float factors[kBlock];
    kernels.column_sums(rows, lanes, weights + b, squares, sums);
    for (int64_t i = 0; i < kBlock; ++i) {
      in_shape &= sums[i] * sums[i] >= ShapeOf(rows) * squares[i];
      const bool scales = squares[i] > 0 && std::isfinite(squares[i]);
      const double to_one = scales ? std::round(-0.5 * std::log2(squares[i] / rows)) : 0;
      const int e = static_cast<int>(std::clamp(to_one, -60., 60.));
      unscale[b + i] = squares[i] == 0 ? 0.f : TwoTo(-e);
      factors[i] = TwoTo(e);
    }
    kernels.scale_columns(rows, lanes, factors, weights + b);
    kernels.column_terms(pair_taps, lanes, weights + b, column_terms + b);
  }
  if (!in_shape) column_terms[0] = std::numeric_limits<float>::quiet_NaN();
}

void FipRows::Book(int64_t rows, int64_t planes, int64_t copies, ScratchBook* book) {
  rows_ = rows;
  sums_ = book->Book<float>("terms", (planes + 3) * rows, copies);
  unpaired_ = book->Book<uint8_t>("unpaired", rows, copies);
  calls_ = book->Book<FipCall>("scale", rows > 0 ? planes : 0, copies);
}

void FipRows::Prepare(Isa isa, const Scratch& scratch, int64_t copy, const FipSource& a) const {
  const FipKernels& kernels = FipKernelsFor(isa);
  FipCall* const calls = scratch.Grant(calls_, copy);
  float* const terms = scratch.Grant(sums_, copy);
  float* const squares = terms + a.planes * rows_;
  float* const sums = squares + rows_;
  float* const all = sums + rows_;
  uint8_t* const unpaired = scratch.Grant(unpaired_, copy);
  const int64_t n = a.taps * kBlock;
  FipRangeArgs range = {squares, all, all, a.rows, 0, static_cast<float>(ShapeOf(n)), -1, unpaired};
  double scales = 0;
  bool any = false;
  std::fill_n(unpaired, a.rows, uint8_t{0});
  for (int64_t plane = 0; plane < a.planes; ++plane, range.sums = sums) {
    float* const of_plane = terms + plane * rows_;
    const double total =
        kernels.source_terms({a.src + plane * a.plane_stride, a.tap_offsets, a.taps, a.rows,
                              of_plane, squares, plane == 0 ? all : sums});
    const int e = a.exponent != nullptr ? *a.exponent : FipExponentOf(total, a.rows * n);
    const float up = TwoTo(e), down = TwoTo(-e);
    FipCall& call = calls[plane] = FipCall();
    call.terms = of_plane;
    call.exponent = e;
    if (a.own == nullptr) call.of_weights = TwoTo(e - a.of_packed);
    call.of_sums = a.own == nullptr ? TwoTo(a.of_packed - e) : up;
    if (a.own != nullptr && e != 0) {
      for (int64_t t = 0; t < a.all_taps; ++t) {
        float* const block = a.own + plane * a.plane_stride + a.tap_offsets[t];
        kernels.scale(block, down, a.rows * kBlock, block);
      }
      for (int64_t p = 0; p < a.rows; ++p) of_plane[p] *= down * down;
    }
    scales += up;
    range.most = static_cast<float>(n * kMost * kMost * up * up);
    if (plane + 1 == a.planes) range.least = static_cast<float>(n * scales / kMost);
    any |= kernels.mark_unpaired(range);
  }
  for (int64_t plane = 0; any && plane < a.planes; ++plane) calls[plane].unpaired = unpaired;
}

void FipRows::BookCopied(int64_t k, int64_t rows, int64_t copies, ScratchBook* book) {
  k_ = k;
  // Of an odd number of cache lines, so that blocks begin in different sets of L1.
  const int64_t blocks = CeilDiv(k, kBlock), block_floats = (rows | 1) * kBlock;
  tap_offsets_.clear();
  for (int64_t b = 0; b < blocks; ++b) tap_offsets_.push_back(b * block_floats);
  data_ = book->Book<float>("rows in pairs", blocks * block_floats, copies);
  Book(rows, 1, copies, book);
}

void FipRows::Copy(Isa isa, const Scratch& scratch, int64_t copy, int64_t rows,
                   FunctionRef<const float*(int64_t)> row_at) const {
  float* const data = scratch.Grant(data_, copy);
  const int64_t whole = k_ / kBlock, tail = k_ % kBlock;
  for (int64_t i = 0; i < rows; ++i) {
    const float* from = row_at(i);
    float* to = data + i * kBlock;
    for (int64_t b = 0; b < whole; ++b) {
      std::memcpy(to + tap_offsets_[b], from + b * kBlock, kBlock * sizeof(float));
    }
    if (tail > 0) {
      float* last = to + tap_offsets_[whole];
      std::memset(last, 0, kBlock * sizeof(float));
      std::memcpy(last, from + whole * kBlock, tail * sizeof(float));
    }
  }
  Prepare(isa, scratch, copy, {data, data, tap_offsets_.data(), whole, CeilDiv(k_, kBlock), rows});
}

const float* FipRows::Bind(const Scratch& scratch, int64_t copy, int64_t first_row, FipCall* pairs,
                           PanelCall<Panel>* call) const {
  *pairs = Call(scratch, copy);
  pairs->Advance(first_row);
  call->family = TileFamily::kFip;
  call->pairs = pairs;
  call->tap_offsets = tap_offsets_.data();
  call->taps = k_ / kBlock;
  call->tail_length = k_ % kBlock;
  call->tail_taps = call->tail_length > 0;
  call->px_stride = kBlock;
  return scratch.Grant(data_, copy) + first_row * kBlock;
}

}  // namespace bd
