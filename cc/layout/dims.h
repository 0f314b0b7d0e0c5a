// A short list of sizes: the dimensions, strides or indices of a tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace bd {

class Dims {
 public:
  // Six logical dimensions (grouped 3D weights), two of them cut into blocks.
  static constexpr int kCapacity = 8;

  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(values.begin(), values.size()) {}
  // At most kCapacity values; check what comes from outside.
  Dims(const int64_t* values, size_t count) : size_(static_cast<int>(count)) {
    if (count > kCapacity) abort();
    std::copy_n(values, count, values_);
  }
  static Dims Filled(int count, int64_t value) {
    Dims dims;
    dims.size_ = count;
    std::fill_n(dims.values_, count, value);
    return dims;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void push_back(int64_t value) { values_[size_++] = value; }

  int64_t& operator[](int i) { return values_[i]; }
  int64_t operator[](int i) const { return values_[i]; }
  const int64_t* data() const { return values_; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + size_; }

  bool operator==(const Dims& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }
  bool operator!=(const Dims& other) const { return !(*this == other); }

  // "[2, 17, 5, 4]"
  std::string ToString() const {
    std::string text = "[";
    for (int i = 0; i < size_; ++i) text += (i > 0 ? ", " : "") + std::to_string(values_[i]);
    return text + "]";
  }

 private:
  int64_t values_[kCapacity] = {};
  int size_ = 0;
};

}  // namespace bd
