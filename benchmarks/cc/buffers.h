// Memory of the contestants, who all use the same pages.
#ifndef BENCHMARKS_CC_BUFFERS_H_
#define BENCHMARKS_CC_BUFFERS_H_

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace bd::layers {

// Zeroed floats, on 2 MB pages if the system grants them.
class Buffer {
 public:
  explicit Buffer(int64_t floats) {
    constexpr int64_t kPage = 2 << 20;
    const int64_t bytes = (floats * 4 + kPage) / kPage * kPage;
    data_.reset(static_cast<float*>(std::aligned_alloc(kPage, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    madvise(data_.get(), bytes, MADV_HUGEPAGE);
    std::memset(data_.get(), 0, bytes);
  }
  float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> data_;
};

// Copies of a tensor, which are used in turn.
class Copies {
 public:
  Copies(int64_t floats, int64_t count)
      : stride_((floats + 15) / 16 * 16), count_(count), buffer_(stride_ * count) {}

  int64_t count() const { return count_; }
  float* operator[](int64_t i) const { return buffer_.data() + i * stride_; }
  // Makes the others equal to the first.
  void Replicate() {
    for (int64_t i = 1; i < count_; ++i) std::memcpy((*this)[i], (*this)[0], 4 * stride_);
  }

 private:
  int64_t stride_;
  int64_t count_;
  Buffer buffer_;
};

}  // namespace bd::layers

#endif  // BENCHMARKS_CC_BUFFERS_H_
