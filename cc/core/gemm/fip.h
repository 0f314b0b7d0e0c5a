// The fast inner product (fip_kernel.h): what callers do with weights and sources for it.
//
// A pair adds x to y, so the sums keep the digits of both only where both are of one
// magnitude. Weights are multiplied by a power of two an output channel, which brings their
// root mean square to about 1, and by 2^e, where 2^e is about the root mean square of the
// source that a task reads, e being a multiple of kExponentStep. They are packed with the e
// of the source at hand then. A task with another e multiplies them by the difference first,
// which rounds nothing: a result does not depend on what was packed.
//
// So all pixels of a task share an exponent, and sums in pairs round relative to it, while a plain
// sum of products rounds relative to these. Rows (pixels, tiles) whose numbers are much smaller or
// larger than the task's, or of which a few exceed all others, stand apart: the register tiles that
// hold them multiply the same packed weights without pairs. The same holds for panels with
// such columns of weights. What is left of the error is bounded by a row's own numbers:
//
//   with r = a row's root mean square and m = the mean of its magnitudes, in units of 2^e,
//   not apart  <=>  r <= 32  and  m >= 1 / 32  and  m >= r max(0.15, 1.5 / sqrt(n))
//   error of a sum of n products in pairs  <=  c eps n (r^2 + 1) / 2 |w|  <=  c' eps sum |x| |w|
//
// where |w| stands for the mean of a column, which the third condition, of columns, ties to its
// root mean square. Infinities and NaN are apart, and so are rows of zeros, whose sums are exactly
// zero.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/function_ref.h"
#include "cc/base/memory/scratch.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/gemm/tiles/fip_kernel.h"

namespace bd {

// e of `count` numbers with that sum of squares.
int FipExponentOf(double squares, int64_t count);

// Of rows [rows][lanes] of weights, whole blocks of 16 lanes, every column times the power of two
// that brings its root mean square to about 2^exponent; unscale[lane] is what sums are to be
// multiplied by, 0 where all weights of the column are. Returns whether all columns may be
// multiplied in pairs.
bool ScaleFipColumns(Isa isa, int64_t rows, int64_t lanes, int exponent, float* weights,
                     float* unscale);

// The terms of a panel that may not be multiplied in pairs begin with NaN, for RunPanels.
void MarkPanelApart(float* channel_terms);

// n numbers are in shape for pairs where (sum of |x|)^2 >= FipShapeOf(n) sum of x^2, the third
// condition.
double FipShapeOf(int64_t n);
bool FipInShape(double squares, double sums, int64_t n);

// The largest sum of squares, and the least sum of magnitudes, of n numbers on a scale of
// 2^exponent, or of several such scales' sum.
float MostFipSquares(int64_t n, int exponent);
float LeastFipSum(int64_t n, double scales);

// apart[r]: row r of `rows`, each n numbers with that sum of squares and of magnitudes, is not to
// be multiplied in pairs on a scale of 2^exponent. Returns whether there is such a row; apart is
// written only then.
bool MarkApart(Isa isa, const float* squares, const float* sums, int64_t rows, int64_t n,
               int exponent, uint8_t* apart);

// Adds to terms[lane] - sum of s y1 y2 over the pairs of `taps` taps of 16 rows of weights.
void AddFipChannelTerms(Isa isa, const float* weights, int64_t lanes, int64_t taps, float* terms);

// A matrix [channels][lanes] by itself: scales it, and makes unscale and channel_terms.
void PackFipPlane(Isa isa, int64_t channels, int64_t lanes, float* weights, float* unscale,
                  float* channel_terms);

// Scales the pixels of each of `blocks` blocks, `a.taps` of them whole, to a root mean square of
// about 1, and makes their terms, and squares and sums of before; returns the exponent of what sums
// are to be multiplied by.
int PrepareFipPlane(Isa isa, const FipSourceArgs& a, int64_t blocks);

// Whether products that share a matrix gain from packing it for pairs on this CPU.
bool GainsFromFip(Isa isa);

// Row-major matrices as the A of the tiles: memory for copies of up to `rows` rows, each with a
// scale of its own; booked once, immutable.
struct FipRows {
  int64_t k = 0;
  std::vector<int64_t> tap_offsets;
  ScratchPiece<float> data, terms, squares, sums;
  ScratchPiece<uint8_t> apart;
  struct Scale {
    float factor;      // what sums are to be multiplied by, beside the scales of columns
    bool holds_apart;  // whether rows stand apart
  };
  ScratchPiece<Scale> scale;

  void Book(int64_t k, int64_t rows, int64_t copies, ScratchBook* book);

  // Brings the rows row_at(0) .. row_at(rows - 1) of k floats into copy `copy`.
  void Pack(Isa isa, const Scratch& scratch, int64_t copy, int64_t rows,
            FunctionRef<const float*(int64_t)> row_at) const;

  // Makes a copy's rows from `first_row` on the A of a call; returns where they begin.
  const float* Bind(const Scratch& scratch, int64_t copy, int64_t first_row,
                    PanelCall<Panel>* call) const;
  float Factor(const Scratch& scratch, int64_t copy) const {
    return scratch.Grant(scale, copy)->factor;
  }
};

}  // namespace bd
