// Numbers of any type that end, or begin, at a guard page: see guarded_buffer.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "tests/cc/guarded_buffer.h"

namespace bd {

// All bytes are 0xa5 at first, or `fill`.
class GuardedArray {
 public:
  explicit GuardedArray(int64_t bytes, GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd,
                        int fill = 0xa5)
      : bytes_(bytes), floats_((bytes + 3) / 4, guard) {
    const int64_t whole = static_cast<int64_t>(floats_.size()) * 4;
    data_ = reinterpret_cast<char*>(floats_.data());
    std::memset(data_, fill, whole);
    if (guard == GuardedBuffer::kAtEnd) data_ += whole - bytes;
  }

  int64_t bytes() const { return bytes_; }
  template <typename T>
  T* As() {
    return reinterpret_cast<T*>(data_);
  }
  void* data() { return data_; }

 private:
  int64_t bytes_;
  GuardedBuffer floats_;
  char* data_;
};

}  // namespace bd
