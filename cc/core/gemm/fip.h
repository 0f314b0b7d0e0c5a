// The fast inner product (tiles/fip_kernel.h) for whoever calls RunPanels: B is packed by PackFip,
// FipRows prepares A, and PanelCall::pairs says so.
//
// A pair adds x to y, so the sums keep the digits of both only where both are of one magnitude.
// Each output channel's weights are packed times the power of two that brings their root mean
// square to about 1. Rows of A that are prepared together share a scale 2^e of about their root
// mean square, e being a multiple of 4: either they are divided by it, or, where A has to stay as
// it is, weights are multiplied by it once more. Neither rounds anything. Where one matrix of
// weights meets sources of one magnitude call after call, they may be kept times that power of two.
//
// So sums in pairs round relative to the scale that rows share, while a plain sum of products
// rounds relative to these. Rows (pixels, tiles) whose numbers are much smaller or larger than the
// scale, or of which a few exceed all others, stay unpaired: the register tiles that hold them
// multiply the same packed weights without pairs. The same holds for panels with such columns of
// weights. What is left of the error is bounded by a row's own numbers:
//
//   with r = a row's root mean square and m = the mean of its magnitudes, in units of 2^e,
//   paired  <=>  r <= 32  and  m >= 1 / 32  and  m >= r max(0.15, 1.5 / sqrt(n))
//   error of a sum of n products in pairs  <=  c eps n (r^2 + 1) / 2 |w|  <=  c' eps sum |x| |w|
//
// where |w| stands for the mean of a column, which the third condition, of columns, ties to its
// root mean square. Infinities and NaN stay unpaired, and so are rows of zeros, whose sums are
// exactly zero. Of several matrices whose products end in the same outputs (Winograd's planes), m
// is that of a row in all of them: a plane of small numbers may round more than these alone would
// allow.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/function_ref.h"
#include "cc/base/memory/scratch.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/gemm/tiles/fip_kernel.h"

namespace bd {

// Whether products that share a matrix gain from packing it for pairs on this CPU.
bool GainsFromFip(Isa isa);

// e of `count` numbers with that sum of squares.
int FipExponentOf(double squares, int64_t count);

// Scales a packed panel of `lanes` columns and `rows` rows, of which the first pair_taps times 16
// are multiplied in pairs; writes the panel's share of FipCall::unscale and column_terms.
void PackFip(Isa isa, int64_t rows, int64_t pair_taps, int64_t lanes, float* weights,
             float* unscale, float* column_terms);

// A by taps, as tiles read it; of several matrices, plane_stride floats apart.
struct FipSource {
  const float* src;
  float* own;  // src, where its numbers may be divided by the scale; null: weights are multiplied
  const int64_t* tap_offsets;
  int64_t taps = 0, all_taps = 0;  // whole ones, which are in pairs; with those after them
  int64_t rows = 0, planes = 1, plane_stride = 0;
  const int* exponent = nullptr;  // e, where these are some of the rows that share it
  int of_packed = 0;              // weights are packed times 2^of_packed; where own is null
};

// Memory for what tiles need beside A; booked once, immutable. A copy is for one thread, or for
// some of A's rows.
class FipRows {
 public:
  // A lies in place: up to `rows` rows of each of `planes` matrices.
  void Book(int64_t rows, int64_t planes, int64_t copies, ScratchBook* book);
  void Prepare(Isa isa, const Scratch& scratch, int64_t copy, const FipSource& a) const;

  // A is row-major, of k floats a row, and is copied.
  void BookCopied(int64_t k, int64_t rows, int64_t copies, ScratchBook* book);
  void Copy(Isa isa, const Scratch& scratch, int64_t copy, int64_t rows,
            FunctionRef<const float*(int64_t)> row_at) const;
  // Makes a copy's rows from `first_row` on the A of a call; returns where they begin.
  const float* Bind(const Scratch& scratch, int64_t copy, int64_t first_row, FipCall* pairs,
                    PanelCall<Panel>* call) const;

  // What is left to say is where unscale and column_terms are, and `scaled` if weights take e.
  FipCall Call(const Scratch& scratch, int64_t copy, int64_t plane = 0) const {
    return scratch.Grant(calls_, copy)[plane];
  }

 private:
  int64_t rows_ = 0, k_ = 0;
  std::vector<int64_t> tap_offsets_;  // of copied rows
  ScratchPiece<float> data_;
  ScratchPiece<float> sums_;  // terms of each plane; squares, magnitudes, magnitudes of all planes
  ScratchPiece<uint8_t> unpaired_;
  ScratchPiece<FipCall> calls_;  // one a plane
};

}  // namespace bd
