// Neighbouring elements of a tensor of any type as floats, and back.
//
// Rooms whose kernels compute in float read and write other types through slices that stay in L1:
// a new type costs them nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/base/bytes.h"
#include "cc/base/cpu/isa.h"
#include "cc/base/quantization.h"
#include "cc/core/reorder/reorder_kernel.h"

namespace bd {

// Elements of a slice on the stack: 8 KB of floats.
constexpr int64_t kSliceFloats = 2048;

inline void ConvertSlice(Isa isa, const ElementType& from, const void* src, const ElementType& to,
                         void* dst, int64_t n) {
  ReorderTileKernelsFor(isa).convert({src, dst, {1, n, n}, {n, 1, 1}, from, to});
}

inline void LoadSlice(Isa isa, const ElementType& from, const void* src, float* dst, int64_t n) {
  ConvertSlice(isa, from, src, ElementType(), dst, n);
}

inline void StoreSlice(Isa isa, const float* src, const ElementType& to, void* dst, int64_t n) {
  ConvertSlice(isa, ElementType(), src, to, dst, n);
}

// Rows of src as kernels read them, and a row of dst as they write it: in memory where that is
// float32, else copies. For one task at a time.
class FloatRows {
 public:
  FloatRows(Isa isa, const ElementType& src_type, const void* src, const ElementType& dst_type,
            void* dst)
      : isa_(isa),
        src_type_(src_type),
        dst_type_(dst_type),
        src_(static_cast<const char*>(src)),
        dst_(static_cast<char*>(dst)) {}

  // `count` runs of `floats` elements, `stride` elements apart, from element `first` of src on;
  // they are *step floats apart. Good until the next call.
  const float* Src(int64_t first, int64_t count, int64_t stride, int64_t floats, int64_t* step) {
    const int64_t bytes = SizeOf(src_type_.dtype);
    const char* from = src_ + first * bytes;
    *step = src_type_ == ElementType() ? stride : floats;
    if (src_type_ == ElementType()) return As<const float>(from);
    src_copy_.resize(count * floats);
    for (int64_t i = 0; i < count; ++i, from += stride * bytes) {
      LoadSlice(isa_, src_type_, from, src_copy_.data() + i * floats, floats);
    }
    return src_copy_.data();
  }

  // Where `floats` elements from element `first` of dst on are to be written; Store() brings them
  // there.
  float* Dst(int64_t first, int64_t floats) {
    to_ = dst_ + first * SizeOf(dst_type_.dtype);
    floats_ = floats;
    if (dst_type_ == ElementType()) return As<float>(to_);
    dst_copy_.resize(floats);
    return dst_copy_.data();
  }
  // `count` elements from element `first` of src on as dst stores them: in memory where src does,
  // too, else a copy.
  const float* SrcAsDst(int64_t first, int64_t count) {
    const char* from = src_bytes(first);
    if (src_type_ == dst_type_) return As<const float>(from);
    src_copy_.resize(count);
    ConvertSlice(isa_, src_type_, from, dst_type_, src_copy_.data(), count);
    return src_copy_.data();
  }
  const char* src_bytes(int64_t first) const { return src_ + first * SizeOf(src_type_.dtype); }
  char* dst_bytes(int64_t first) const { return dst_ + first * SizeOf(dst_type_.dtype); }
  void Store() const {
    if (dst_type_ != ElementType()) StoreSlice(isa_, dst_copy_.data(), dst_type_, to_, floats_);
  }

 private:
  Isa isa_;
  ElementType src_type_, dst_type_;
  const char* src_;
  char* dst_;
  std::vector<float> src_copy_, dst_copy_;
  char* to_ = nullptr;
  int64_t floats_ = 0;
};

}  // namespace bd
