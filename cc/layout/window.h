// TensorFlow's window arithmetic: output size and padding of 1 to 3 spatial dimensions, shared by
// convolution, pooling and the shape functions.
#pragma once

#include <cstdint>
#include <string>

#include "cc/layout/dims.h"

namespace bd {

enum class Padding { kSame, kValid, kExplicit };

// A window of `kernel` taps, `dilation` elements apart, that moves over `size`
// elements by `stride`. Output o reads the elements
//   o * stride - pad_before + k * dilation,  k in [0, kernel).
struct Window1d {
  int64_t size = 0;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad_before = 0, pad_after = 0;
  int64_t out = 0;

  // Elements from the first tap to the last, both included.
  int64_t extent() const { return (kernel - 1) * dilation + 1; }

  // The only window reads all of the elements.
  bool covers_all() const {
    return out == 1 && dilation == 1 && pad_before >= 0 && kernel - pad_before >= size;
  }
};

// A window over depth, height and width. What a tensor of fewer spatial dimensions does not have
// has one element and a window of one, so loops over three dimensions serve all.
struct Windows {
  static constexpr Window1d kAbsent = {1, 1, 1, 1, 0, 0, 1};
  Window1d d = kAbsent, h = kAbsent, w = kAbsent;

  int64_t in() const { return d.size * h.size * w.size; }
  int64_t taps() const { return d.kernel * h.kernel * w.kernel; }
  int64_t out() const { return d.out * h.out * w.out; }
  // The last `rank` of the output's sizes in the order d, h, w.
  Dims OutSizes(int rank) const;
};

// Fills out, pad_before and pad_after:
//   SAME       out = ceil(size / stride); the padding that the last window needs
//              is split in two halves, the odd element goes after
//   VALID      no padding; only windows inside the input
//   EXPLICIT   as VALID over pad_before + size + pad_after, set by the caller
// Returns an empty string, or one line that names what is wrong; out is then 0.
// As in TensorFlow, a window that exceeds the padded input gives out = 0 as long
// as it exceeds it by less than two strides, and an error beyond.
std::string ResolveWindow(Padding padding, Window1d* window);

}  // namespace bd
