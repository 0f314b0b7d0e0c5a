#include "cc/tensorflow/attrs/layout_shapes.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bd {
namespace {

// Of float32 in the 2^47 bytes that a process can address.
constexpr int64_t kMostElements = int64_t{1} << 45;

bool Fits(const PartialTensorShape& shape, const Dims& expected) {
  if (shape.dims() != expected.size()) return false;
  for (int i = 0; i < expected.size(); ++i) {
    if (Differs(shape.dim_size(i), expected[i])) return false;
  }
  return true;
}

// What an error calls `size` indices of the dimension.
std::string Count(char letter, int64_t size) {
  const char* words = letter == 'o'   ? " output channels"
                      : letter == 'i' ? " input channels"
                      : letter == 'g' ? " groups"
                                      : " channels";
  return absl::StrCat(size, words);
}

// "nChw16c, [N, 2, H, W, 16] for 17 channels"
std::string Expected(Layout layout, const Dims& dims) {
  const LayoutParts parts = PartsOf(layout);
  std::string shape, counts;
  for (int i = 0; i < parts.rank; ++i) {
    const int d = parts.order[i];
    const int64_t block = parts.block(d);
    const std::string letter(1, static_cast<char>(toupper(parts.letters[d])));
    absl::StrAppend(&shape, i > 0 ? ", " : "");
    if (dims[d] >= 0) {
      absl::StrAppend(&shape, dims[d] / block + (dims[d] % block != 0));
    } else {
      absl::StrAppend(&shape,
                      block > 1 ? absl::StrCat("ceil(", letter, " / ", block, ")") : letter);
    }
    if (block > 1 && dims[d] >= 0) {
      absl::StrAppend(&counts, counts.empty() ? " for " : " and ",
                      Count(parts.letters[d], dims[d]));
    }
  }
  for (int i = 0; i < parts.num_inner; ++i) absl::StrAppend(&shape, ", ", parts.inner_size[i]);
  return absl::StrCat(LayoutName(layout), ", [", shape, "]", counts);
}

}  // namespace

absl::Status BuildShape(absl::Span<const int64_t> dims, PartialTensorShape* shape) {
  // Without its zeros: plans multiply the sizes of an empty tensor, too.
  int64_t elements = 1;
  const bool fits = std::all_of(dims.begin(), dims.end(), [&](int64_t dim) {
    return dim <= 0 ||
           (!__builtin_mul_overflow(elements, dim, &elements) && elements <= kMostElements);
  });
  if (fits && PartialTensorShape::BuildPartialTensorShape(dims, shape).ok()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a tensor of [", absl::StrJoin(dims, ","),
                   "] is larger than any memory: give smaller sizes"));
}

absl::Status ShapeOf(Layout layout, const Dims& dims, PartialTensorShape* shape) {
  const Dims sizes = PhysicalShape(layout, dims);
  return BuildShape(absl::MakeConstSpan(sizes.data(), sizes.size()), shape);
}

absl::Status ReadDims(const char* name, const PartialTensorShape& shape, Layout layout,
                      Dims* dims) {
  if (shape.unknown_rank()) return absl::OkStatus();
  if (!Fits(shape, PhysicalShape(layout, *dims))) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must be ", Expected(layout, *dims), "; got ", shape.DebugString()));
  }
  const LayoutParts parts = PartsOf(layout);
  for (int i = 0; i < parts.rank; ++i) {
    int64_t* dim = &(*dims)[parts.order[i]];
    if (parts.block(parts.order[i]) == 1 && *dim < 0) *dim = shape.dim_size(i);
  }
  return absl::OkStatus();
}

}  // namespace bd
