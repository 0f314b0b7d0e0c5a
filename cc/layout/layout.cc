#include "cc/layout/layout.h"

#include <cctype>
#include <cstdlib>

namespace bd {
namespace {

#define BD_LAYOUT_NAME(name) #name,
constexpr const char* kNames[] = {BD_LAYOUTS(BD_LAYOUT_NAME)};
#undef BD_LAYOUT_NAME

// The dimension a letter of a layout's name stands for.
Dim DimOf(char letter) {
  switch (tolower(letter)) {
    case 'n':
      return kN;
    case 'c':
      return kC;
    case 'h':
      return kH;
    default:
      return kW;
  }
}

}  // namespace

const char* LayoutName(Layout layout) { return kNames[static_cast<int>(layout)]; }

bool ParseLayout(const std::string& name, Layout* layout) {
  int index = 0;
  for (const char* known : kNames) {
    if (name == known) {
      *layout = static_cast<Layout>(index);
      return true;
    }
    ++index;
  }
  return false;
}

int64_t ChannelBlock(Layout layout) {
  const char* block = LayoutName(layout) + kNumDims;
  return *block == '\0' ? 1 : atoi(block);
}

TensorDesc::TensorDesc(const Dims& dims, Layout layout)
    : dims_(dims), block_(ChannelBlock(layout)), layout_(layout) {
  // From the innermost dimension outwards; inside it lies the block.
  const char* order = LayoutName(layout);
  const Dims padded = padded_dims();
  int64_t stride = block_;
  for (int i = kNumDims - 1; i >= 0; --i) {
    const Dim dim = DimOf(order[i]);
    strides_[dim] = stride;
    stride *= dim == kC ? padded[kC] / block_ : padded[dim];
  }
}

Dims TensorDesc::padded_dims() const {
  Dims padded = dims_;
  padded[kC] = (dims_[kC] + block_ - 1) / block_ * block_;
  return padded;
}

int64_t TensorDesc::size() const {
  const Dims padded = padded_dims();
  for (int64_t count : padded) {
    if (count == 0) return 0;
  }
  return 1 + offset(padded[kN] - 1, padded[kC] - 1, padded[kH] - 1, padded[kW] - 1);
}

bool TensorDesc::is_dense() const {
  int64_t elements = 1;
  for (int64_t count : padded_dims()) elements *= count;
  return size() == elements;
}

}  // namespace bd
