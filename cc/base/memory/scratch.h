// Temporary memory of one execution: booked at planning, granted at execution.
//
//   ScratchBook book;                                        // in the plan
//   plan->acc = book.Book<float>("accumulator", oc * rows, num_threads);
//   plan->scratch_bytes = book.bytes();
//
//   const Scratch scratch(base);                             // in the run
//   float* acc = scratch.Grant(plan->acc, thread);
//
// The book is complete before anything runs, so its size can be asked and the
// memory may come from anybody; one plan runs on many threads at once, each run
// with a base of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/size.h"

namespace bd {

// `copies` arrays of `count` T, one for each thread if need be.
template <typename T>
struct ScratchPiece {
  int64_t offset = 0;  // bytes from the base to the first copy
  int64_t stride = 0;  // bytes from one copy to the next
  int64_t count = 0;
};

class ScratchBook {
 public:
  // Every copy begins on a cache line of its own.
  static constexpr int64_t kAlignment = 64;

  struct Entry {
    const char* name;
    int64_t offset;
    int64_t bytes;  // of all copies
    int64_t copies;
  };

  // `name` must be a literal. Nothing is booked for a count or copies of zero.
  template <typename T>
  ScratchPiece<T> Book(const char* name, Size count, Size copies = 1) {
    const int64_t stride = RoundUp((count * sizeof(T)).value(), kAlignment);
    return {Reserve(name, stride, copies), stride, count.value()};
  }

  // What one execution needs; 0 is common, and then the base may be null.
  int64_t bytes() const { return bytes_.value(); }
  // An empty string, or one line that says that it is more than a process can have.
  std::string Check() const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  int64_t Reserve(const char* name, Size bytes_a_copy, Size copies);

  Size bytes_ = 0;
  std::vector<Entry> entries_;
};

// Grants what was booked out of one block of memory, 64-byte aligned.
class Scratch {
 public:
  explicit Scratch(void* base) : base_(static_cast<char*>(base)) {}

  // Null for a piece of no elements.
  template <typename T>
  T* Grant(const ScratchPiece<T>& piece, int64_t copy = 0) const {
    if (piece.count == 0) return nullptr;
    return reinterpret_cast<T*>(base_ + piece.offset + copy * piece.stride);
  }

 private:
  char* base_;
};

}  // namespace bd
