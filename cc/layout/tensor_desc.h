// Where the elements of a tensor lie in memory.
//
// One formula serves every layout. Dimension d is cut into blocks of block[d]
// elements (1 if it is not), which are strides[d] apart; inside a block neighbours
// are inner_strides[d] apart:
//
//   offset(i) = offset + sum over d of (i[d] / block[d]) * strides[d]
//                                    + (i[d] % block[d]) * inner_strides[d]
//
// Counts, strides and offsets are in elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cc/base/quantization.h"
#include "cc/layout/dims.h"
#include "cc/layout/layout.h"

namespace bd {

// Logical indices of the dimensions of a 2D activation.
enum Dim { kN, kC, kH, kW };

class TensorDesc {
 public:
  TensorDesc() = default;  // one with no dimensions, for Make to fill

  // Dense in `layout`. Ends the process for arguments that Make refuses.
  TensorDesc(const Dims& dims, DataType dtype, Layout layout);

  // `layout` gives the order and the blocks, `strides` the distances between
  // neighbours (of a dimension in blocks, between its blocks); either may be left
  // out, as nullopt or empty. Without a layout nothing is cut into blocks, without
  // strides the tensor is dense. `offset` is that of the first element.
  //
  // Returns an empty string, or one line that names what is wrong. Sizes of zero
  // are legal, and so are strides of zero, by which elements share memory.
  static std::string Make(const Dims& dims, DataType dtype, std::optional<Layout> layout,
                          const Dims& strides, int64_t offset, TensorDesc* desc);

  // The part of this tensor that starts at the element `offsets` and has `dims`
  // elements: a description of the same memory. Where a dimension is cut, a part
  // starts at a whole block and ends at one, or with the dimension.
  std::string submemory(const Dims& dims, const Dims& offsets, TensorDesc* part) const;

  int rank() const { return dims_.size(); }
  const Dims& dims() const { return dims_; }
  DataType dtype() const { return dtype_; }
  // None if the tensor was described by strides alone.
  std::optional<Layout> layout() const { return layout_; }

  const Dims& blocks() const { return blocks_; }
  const Dims& strides() const { return strides_; }
  const Dims& inner_strides() const { return inner_strides_; }

  // dims() rounded up to whole blocks.
  const Dims& padded_dims() const { return padded_dims_; }

  // Of the first element, and of the one with these indices. Indices may reach
  // into the tail, up to padded_dims().
  int64_t offset() const { return offset_; }
  template <typename... Indices>
  int64_t offset(int64_t first, Indices... rest) const {
    const int64_t index[] = {first, static_cast<int64_t>(rest)...};
    return OffsetOf(index);
  }
  int64_t OffsetOf(const int64_t* index) const {
    int64_t at = offset_;
    for (int d = 0; d < rank(); ++d) {
      at += index[d] / blocks_[d] * strides_[d] + index[d] % blocks_[d] * inner_strides_[d];
    }
    return at;
  }

  // From the start of the memory to the last element, tail included: what a
  // buffer must hold.
  int64_t size() const { return size_; }
  int64_t size_bytes() const { return size_ * SizeOf(dtype_); }

  // No holes between the elements, the tail being elements too. (Strides that
  // let elements overlap are the caller's affair.)
  bool is_dense() const;

  // The strides and the offset are those that the layout alone gives. Such a
  // tensor has the shape of the layout; any other is a flat piece of memory.
  bool is_whole() const { return whole_; }
  Dims shape() const;

  bool operator==(const TensorDesc& other) const;
  bool operator!=(const TensorDesc& other) const { return !(*this == other); }

  // "float32 nChw8c [2, 17, 5, 4]", with strides and offset where not whole.
  std::string ToString() const;

 private:
  std::string SetBlocks();
  std::string SetSize();

  Dims dims_, blocks_, padded_dims_, strides_, inner_strides_;
  int64_t offset_ = 0, size_ = 0;
  DataType dtype_ = DataType::f32;
  std::optional<Layout> layout_;
  bool whole_ = false;
};

// Returns an empty string, or one line that says why no numbers of this type stand for that.
std::string CheckQuantization(const char* name, DataType dtype, const Quantization& quantization);

}  // namespace bd
