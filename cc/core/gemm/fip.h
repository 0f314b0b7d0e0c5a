// The fast inner product (fip_kernel.h): what callers do with weights and sources for it.
//
// A pair adds x to y, so the sums keep the digits of both only where both are of one
// magnitude. Weights are multiplied by a power of two an output channel, which brings their
// root mean square to about 1, and by 2^e, where 2^e is about the root mean square of the
// source that a task reads, e being a multiple of kExponentStep. They are packed with the e
// of the source at hand then. A task with another e multiplies them by the difference first,
// which rounds nothing: a result does not depend on what was packed. A source that reads as
// zeros gives exactly zero.
//
// So all pixels of a task share an exponent, and a pixel's error is relative to the root
// mean square of what its task reads, not to its own. Beyond 2^-50 and 2^50 the exponent
// stays behind and sums keep fewer digits; pairs of source channels beyond 2^60 overflow.
#ifndef CC_CORE_GEMM_FIP_H_
#define CC_CORE_GEMM_FIP_H_

#include <cstdint>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/function_ref.h"
#include "cc/base/memory/scratch.h"
#include "cc/core/gemm/fip_kernel.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {

// e of `count` numbers with that sum of squares.
int FipExponentOf(double squares, int64_t count);

// Of rows [rows][lanes] of weights, whole blocks of 16 lanes, every column times the power of two
// that brings its root mean square to about 2^exponent; unscale[lane] is what sums are to be
// multiplied by, 0 where all weights of the column are.
void ScaleFipColumns(Isa isa, int64_t rows, int64_t lanes, int exponent, float* weights,
                     float* unscale);

// Adds to terms[lane] - sum of s y1 y2 over the pairs of `taps` taps of 16 rows of weights.
void AddFipChannelTerms(Isa isa, const float* weights, int64_t lanes, int64_t taps, float* terms);

// A matrix [channels][lanes] by itself: scales it, and makes unscale and channel_terms.
void PackFipPlane(Isa isa, int64_t channels, int64_t lanes, float* weights, float* unscale,
                  float* channel_terms);

// Scales the pixels of each of `blocks` blocks, `a.taps` of them whole, to a root mean square of
// about 1, and makes their terms; returns what sums are to be multiplied by.
float PrepareFipPlane(Isa isa, const FipSourceArgs& a, int64_t blocks);

// Whether products that share a matrix gain from packing it for pairs on this CPU.
bool GainsFromFip(Isa isa);

// Row-major matrices as the A of the tiles: memory for copies of up to `rows` rows, each with a
// scale of its own; booked once, immutable.
struct FipRows {
  int64_t k = 0;
  std::vector<int64_t> tap_offsets;
  ScratchPiece<float> data, terms, factor;

  void Book(int64_t k, int64_t rows, int64_t copies, ScratchBook* book);

  // Brings the rows row_at(0) .. row_at(rows - 1) of k floats into copy `copy`.
  void Pack(Isa isa, const Scratch& scratch, int64_t copy, int64_t rows,
            FunctionRef<const float*(int64_t)> row_at) const;

  // Makes a copy's rows from `first_row` on the A of a call; returns where they begin.
  const float* Bind(const Scratch& scratch, int64_t copy, int64_t first_row,
                    PanelCall<Panel>* call) const;
  // What sums are to be multiplied by, beside the scales of columns.
  float Factor(const Scratch& scratch, int64_t copy) const { return *scratch.Grant(factor, copy); }
};

}  // namespace bd

#endif  // CC_CORE_GEMM_FIP_H_
