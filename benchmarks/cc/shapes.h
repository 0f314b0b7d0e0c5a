// The shape files of benchmarks/shapes: a row for each distinct convolution of a network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bd::layers {

// The columns are those of the files' header line; `count` is how often the network has the layer.
struct Shape {
  std::string name;
  int64_t n, ic, ih, iw, oc, kh, kw, sh, sw, pad_top, pad_left, pad_bottom, pad_right, groups,
      count;

  int64_t oh() const { return (ih + pad_top + pad_bottom - kh) / sh + 1; }
  int64_t ow() const { return (iw + pad_left + pad_right - kw) / sw + 1; }
  int64_t src_floats() const { return n * ih * iw * ic; }
  int64_t weights_floats() const { return kh * kw * (ic / groups) * oc; }
  int64_t dst_floats() const { return n * oh() * ow() * oc; }
  // Floating-point operations of the definition, including taps on padding, whatever runs.
  double flops() const { return 2.0 * n * oh() * ow() * weights_floats(); }
  // "64x56x56 > 256x28x28 3x3/2 g32"; without "/1" and "g1".
  std::string ToString() const;
};

// Throws a std::runtime_error that names the file and the line.
std::vector<Shape> ReadShapes(const std::string& path);

}  // namespace bd::layers
