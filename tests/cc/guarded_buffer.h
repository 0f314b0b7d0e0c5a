// A float buffer that makes every out-of-bounds access show.
//
//   GuardedBuffer a(n);                              [ slack | n floats ]# no access
//   GuardedBuffer b(n, GuardedBuffer::kAtStart);     no access #[ n floats | slack ]
//
// One end touches a page without access: reading or writing one float beyond
// it ends the test with SIGSEGV. The slack up to the page boundary on the other
// side holds a pattern that the destructor checks, so a stray write there fails
// the test. The floats start as NaN: whatever a kernel forgets to write, or
// wrongly reads, shows in the result.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace bd {

class GuardedBuffer {
 public:
  enum Guard { kAtEnd, kAtStart };

  // Zero floats are legal: data() then points at the guard page.
  explicit GuardedBuffer(int64_t num_floats, Guard guard = kAtEnd)
      : size_(static_cast<size_t>(num_floats)) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = size_ * sizeof(float);
    usable_ = (bytes + page - 1) / page * page;
    mapped_ = usable_ + 2 * page;
    void* map = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) abort();
    map_ = static_cast<unsigned char*>(map);
    if (mprotect(map_, page, PROT_NONE) != 0) abort();
    if (mprotect(map_ + page + usable_, page, PROT_NONE) != 0) abort();

    first_ = map_ + page;
    memset(first_, kSlack, usable_);
    data_ = reinterpret_cast<float*>(guard == kAtStart ? first_ : first_ + usable_ - bytes);
    Fill(std::numeric_limits<float>::quiet_NaN());
  }

  ~GuardedBuffer() {
    EXPECT_TRUE(SlackIntact()) << "wrote outside a GuardedBuffer of " << size_ << " floats";
    munmap(map_, mapped_);
  }

  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  float* data() { return data_; }
  const float* data() const { return data_; }
  size_t size() const { return size_; }
  float* begin() { return data_; }
  float* end() { return data_ + size_; }
  const float* begin() const { return data_; }
  const float* end() const { return data_ + size_; }
  float& operator[](size_t i) { return data_[i]; }
  float operator[](size_t i) const { return data_[i]; }

  void Fill(float value) {
    for (float& x : *this) x = value;
  }

  // data[i] = (i * 7 + seed) mod 17 - 8: small integers, so that sums of up to
  // 2^18 products are exact in float and results compare with zero tolerance.
  void FillIntegers(int64_t seed = 0) {
    for (size_t i = 0; i < size_; ++i) {
      data_[i] = static_cast<float>((static_cast<int64_t>(i) * 7 + seed) % 17 - 8);
    }
  }

 private:
  static constexpr unsigned char kSlack = 0xa5;

  bool SlackIntact() const {
    const auto* data_begin = reinterpret_cast<const unsigned char*>(data_);
    const unsigned char* data_end = data_begin + size_ * sizeof(float);
    for (const unsigned char* p = first_; p != first_ + usable_; ++p) {
      if ((p < data_begin || p >= data_end) && *p != kSlack) return false;
    }
    return true;
  }

  size_t size_;
  size_t usable_;
  size_t mapped_;
  unsigned char* map_;
  unsigned char* first_;
  float* data_;
};

}  // namespace bd
