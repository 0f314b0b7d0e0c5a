// What the machine can do, measured with the threads that compute, and memory on its large pages.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"

namespace bd::layers {

// Memory of contestants: zeroed floats on 2 MB pages if the system grants them.
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

struct Caches {
  int64_t l2_bytes;  // of a core
  int64_t l3_bytes;  // shared
};
Caches DetectCaches();

std::string CpuName();

// Multiply-adds of all threads together, in GFLOP/s: of float32, and of bfloat16 and of bytes as
// register tiles make them.
double MeasureFmaPeak(Isa isa, ThreadPool& pool);
double MeasureBf16Peak(Isa isa, ThreadPool& pool);
double MeasureInt8Peak(Isa isa, ThreadPool& pool);

// Reading four times the L3 cache with all threads, in GB/s.
double MeasureReadBandwidth(Isa isa, ThreadPool& pool);

}  // namespace bd::layers
