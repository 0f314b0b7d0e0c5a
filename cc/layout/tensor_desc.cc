#include "cc/layout/tensor_desc.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"

namespace bd {
namespace {

std::string TooLarge(const Dims& dims) {
  return "a tensor of dims " + dims.ToString() + " is too large: its size exceeds 2^47 bytes";
}

std::string NotNegative(const char* what, const Dims& values) {
  for (int64_t value : values) {
    if (value < 0) return StrCat(what, " must not be negative; got ", values.ToString());
  }
  return "";
}

// One value a dimension.
std::string OneEach(const char* what, const Dims& values, const Dims& dims) {
  if (values.size() == dims.size()) return "";
  return StrCat(what, " must be one number for each of the ", dims.size(), " dimensions; got ",
                values.ToString());
}

std::string CheckRank(const Dims& dims, std::optional<Layout> layout) {
  if (!layout) {
    if (dims.size() >= 1 && dims.size() <= kMaxRank) return "";
    return StrCat("a tensor has 1 to ", kMaxRank, " dimensions; got dims ", dims.ToString());
  }
  const LayoutParts parts = PartsOf(*layout);
  if (dims.size() == parts.rank) return "";
  std::string letters;
  for (int d = 0; d < parts.rank; ++d) letters += std::string(d > 0 ? ", " : "") + parts.letters[d];
  return StrCat("layout ", LayoutName(*layout), " has ", parts.rank,
                (parts.rank == 1 ? " dimension, " : " dimensions, "), letters, "; got dims ",
                dims.ToString());
}

// Those of a dense tensor; false if they do not fit.
bool LayoutStrides(const LayoutParts& parts, const Dims& padded, Dims* strides) {
  Size stride = 1;
  for (int i = 0; i < parts.num_inner; ++i) stride = stride * parts.inner_size[i];
  *strides = padded;
  for (int i = parts.rank - 1; i >= 0; --i) {
    const int d = parts.order[i];
    (*strides)[d] = stride.value();
    stride = stride * (padded[d] / parts.block(d));
  }
  return stride.fits();
}

}  // namespace

std::string TensorDesc::Make(const Dims& dims, DataType dtype, std::optional<Layout> layout,
                             const Dims& strides, int64_t offset, TensorDesc* desc) {
  if (!layout && strides.empty()) return "a tensor needs a layout, or strides";
  std::string error = CheckRank(dims, layout);
  if (error.empty()) error = NotNegative("dims", dims);
  if (error.empty() && !strides.empty()) error = OneEach("strides", strides, dims);
  if (error.empty()) error = NotNegative("strides", strides);
  if (error.empty() && offset < 0) {
    error = StrCat("offset must not be negative; got ", offset);
  }
  if (!error.empty()) return error;

  TensorDesc made;
  made.dims_ = dims;
  made.dtype_ = dtype;
  made.layout_ = layout;
  made.offset_ = offset;
  error = made.SetBlocks();
  if (!error.empty()) return error;
  if (layout) {
    if (!LayoutStrides(PartsOf(*layout), made.padded_dims_, &made.strides_)) {
      return TooLarge(dims);
    }
    made.whole_ = offset == 0 && (strides.empty() || strides == made.strides_);
  }
  if (!strides.empty()) made.strides_ = strides;
  error = made.SetSize();
  if (error.empty()) *desc = made;
  return error;
}

TensorDesc::TensorDesc(const Dims& dims, DataType dtype, Layout layout) {
  const std::string error = Make(dims, dtype, layout, {}, 0, this);
  if (error.empty()) return;
  fprintf(stderr, "tf_blockdnn: TensorDesc: %s\n", error.c_str());
  abort();
}

std::string TensorDesc::SetBlocks() {
  blocks_ = Dims::Filled(rank(), 1);
  inner_strides_ = Dims::Filled(rank(), 0);
  padded_dims_ = dims_;
  if (!layout_) return "";
  const LayoutParts parts = PartsOf(*layout_);
  int64_t stride = 1;
  for (int i = parts.num_inner - 1; i >= 0; --i) {
    const int d = parts.inner_dim[i];
    const int64_t block = parts.inner_size[i];
    blocks_[d] = block;
    inner_strides_[d] = stride;
    stride *= block;
    const Size padded = Size(dims_[d]) + (block - dims_[d] % block) % block;
    if (!padded.fits()) return TooLarge(dims_);
    padded_dims_[d] = padded.value();
  }
  return "";
}

std::string TensorDesc::SetSize() {
  Size elements = 1, size = Size(offset_) + 1;
  bool empty = false;
  for (int d = 0; d < rank(); ++d) {
    if (padded_dims_[d] == 0) {
      empty = true;
      continue;
    }
    elements = elements * padded_dims_[d];
    size = size + Size(padded_dims_[d] / blocks_[d] - 1) * strides_[d] +
           (blocks_[d] - 1) * inner_strides_[d];
  }
  if (!elements.fits() || !(size * SizeOf(dtype_)).fits()) return TooLarge(dims_);
  size_ = empty ? 0 : size.value();
  return "";
}

std::string TensorDesc::submemory(const Dims& dims, const Dims& offsets, TensorDesc* part) const {
  std::string error = OneEach("dims", dims, dims_);
  if (error.empty()) error = OneEach("offsets", offsets, dims_);
  if (error.empty()) error = NotNegative("dims", dims);
  if (error.empty()) error = NotNegative("offsets", offsets);
  if (!error.empty()) return "submemory: " + error;
  for (int d = 0; d < rank(); ++d) {
    const std::string range = StrCat(offsets[d], " + ", dims[d], " elements of dimension ", d);
    if (offsets[d] > dims_[d] - dims[d]) {
      return StrCat("submemory: ", range, " reach beyond its ", dims_[d]);
    }
    const int64_t end = offsets[d] + dims[d];
    if (offsets[d] % blocks_[d] == 0 && (end % blocks_[d] == 0 || end == dims_[d])) continue;
    return StrCat("submemory: ", range, " cut a block: it must start and end at a multiple of ",
                  blocks_[d], ", or end with the dimension, ", dims_[d]);
  }
  return Make(dims, dtype_, layout_, strides_, OffsetOf(offsets.data()), part);
}

bool TensorDesc::is_dense() const {
  int64_t elements = 1;
  for (int64_t count : padded_dims_) elements *= count;
  return elements == 0 || size_ - offset_ == elements;
}

Dims TensorDesc::shape() const { return whole_ ? PhysicalShape(*layout_, dims_) : Dims{size_}; }

bool TensorDesc::operator==(const TensorDesc& other) const {
  return dims_ == other.dims_ && dtype_ == other.dtype_ && layout_ == other.layout_ &&
         strides_ == other.strides_ && offset_ == other.offset_;
}

std::string TensorDesc::ToString() const {
  std::string text = DataTypeName(dtype_);
  if (layout_) text += StrCat(" ", LayoutName(*layout_));
  text += " " + dims_.ToString();
  if (!whole_) text += " strides " + strides_.ToString();
  if (offset_ != 0) text += StrCat(" offset ", offset_);
  return text;
}

std::string CheckQuantization(const char* name, DataType dtype, const Quantization& quantization) {
  if (quantization == Quantization()) return "";
  const std::string of = StrCat("the quantization of ", name);
  if (dtype != DataType::u8 && dtype != DataType::s8) {
    return of + " is for int8 and uint8; " + name + " is " + DataTypeName(dtype);
  }
  if (!(quantization.scale > 0) || !std::isfinite(quantization.scale) ||
      !std::isfinite(1 / quantization.scale)) {
    return StrCat(of, " has scale ", quantization.scale, ", not a positive number");
  }
  const int least = dtype == DataType::s8 ? -128 : 0;
  if (quantization.zero_point < least || quantization.zero_point > least + 255) {
    return StrCat(of, " has zero point ", quantization.zero_point, ", which is no number of type ",
                  DataTypeName(dtype));
  }
  return "";
}

}  // namespace bd
