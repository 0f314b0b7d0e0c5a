// Sizes: blocks of 16 channels, rounding, and numbers of bytes and of work items that cannot
// overflow. Kernel files include this header: no std containers.
#pragma once

#include <cstdint>

namespace bd {

// Channels of a block of nChw16c, on every instruction set.
constexpr int64_t kBlock = 16;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// A number of bytes, elements or work items. What is negative or above kMost does not fit, nor does
// a sum or product with it. A plan whose sizes do not fit is refused.
class Size {
 public:
  // No process can address more bytes, nor finish so many tiles. Plans compute with what fits in
  // int64, where a few small factors more do no harm.
  static constexpr int64_t kMost = int64_t{1} << 47;
  // Of a list that a plan holds.
  static constexpr int64_t kMostEntries = int64_t{1} << 20;

  constexpr Size(int64_t size) : size_(size < 0 || size > kMost ? kMost + 1 : size) {}

  constexpr bool fits() const { return size_ <= kMost; }
  constexpr int64_t value() const { return size_; }  // kMost + 1 where it does not fit

  friend constexpr Size operator+(Size a, Size b) { return a.size_ + b.size_; }
  friend constexpr Size operator*(Size a, Size b) {
    int64_t product = -1;
    const bool fits = a.fits() && b.fits() && !__builtin_mul_overflow(a.size_, b.size_, &product);
    return fits ? product : -1;
  }
  friend constexpr bool operator<=(Size a, Size b) { return a.size_ <= b.size_; }

 private:
  int64_t size_;
};

}  // namespace bd
