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

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bd {

// `copies` arrays of `count` T, one for each thread if need be.
template <typename T>
struct ScratchPiece {
  size_t offset = 0;  // bytes from the base to the first copy
  size_t stride = 0;  // bytes from one copy to the next
  int64_t count = 0;
};

class ScratchBook {
 public:
  // Every copy begins on a cache line of its own.
  static constexpr size_t kAlignment = 64;

  struct Entry {
    const char* name;
    size_t offset;
    size_t bytes;  // of all copies
    int64_t copies;
  };

  // `name` must be a literal. Nothing is booked for a count or copies of zero.
  template <typename T>
  ScratchPiece<T> Book(const char* name, int64_t count, int64_t copies = 1) {
    ScratchPiece<T> piece;
    piece.count = count;
    piece.stride = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    piece.offset = Reserve(name, piece.stride, copies);
    return piece;
  }

  // What one execution needs; 0 is common, and then the base may be null.
  size_t bytes() const { return bytes_; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  size_t Reserve(const char* name, size_t bytes_a_copy, int64_t copies);

  size_t bytes_ = 0;
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
