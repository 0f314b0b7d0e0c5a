#include "cc/core/shuffle/shuffle_program.h"

#include <algorithm>
#include <cstring>

namespace bd {
namespace {

// Bytes from the row's first; `lane` is the item's place in the vector of dst.
struct Wanted {
  int64_t src;
  int32_t lane;
};

class Writer {
 public:
  Writer(const ShuffleRow& row, const Permuter& permuter, FunctionRef<int64_t(int64_t)> src_of,
         ShuffleProgramData* program)
      : row_(row), permuter_(permuter), src_of_(src_of), program_(*program) {}

  void Write() {
    const int64_t vector = permuter_.vector_bytes;
    for (int64_t piece = 0; piece < row_.pieces; ++piece) {
      // The last vector reaches back over the one before it.
      for (int64_t at = 0; at < row_.piece_bytes; at += vector) {
        WriteVector(piece, std::min(at, row_.piece_bytes - vector));
      }
    }
    // Vectors that read the same windows come one after another.
    std::stable_sort(
        program_.vectors.begin(), program_.vectors.end(),
        [&](const ShuffleVector& a, const ShuffleVector& b) { return FirstSrc(a) < FirstSrc(b); });
    program_.run = permuter_.run;
  }

 private:
  int64_t FirstSrc(const ShuffleVector& v) const {
    return v.num_steps == 0 ? 0 : program_.srcs[v.first_step];
  }

  int64_t Address(int64_t item) const {
    const int64_t items = row_.piece_bytes / row_.item_bytes;
    return item / items * row_.piece_stride + item % items * row_.item_bytes;
  }

  void WriteVector(int64_t piece, int64_t at) {
    const int64_t first = (piece * row_.piece_bytes + at) / row_.item_bytes;
    const int32_t lanes = permuter_.vector_bytes / static_cast<int32_t>(row_.item_bytes);
    wanted_.clear();
    for (int32_t lane = 0; lane < lanes; ++lane) {
      const int64_t item = src_of_(first + lane);
      if (item >= 0) wanted_.push_back({Address(item), lane});
    }
    std::sort(wanted_.begin(), wanted_.end(),
              [](const Wanted& a, const Wanted& b) { return a.src < b.src; });
    const int32_t first_step = static_cast<int32_t>(program_.srcs.size());
    // An aligned load is cheaper than one across two cache lines.
    const bool aligned = ListWindows(/*aligned=*/true) <= ListWindows(/*aligned=*/false);
    ListWindows(aligned);
    size_t next = 0;
    for (int64_t window : windows_) {
      program_.srcs.push_back(window);
      next = WriteControl(window, next);
    }
    program_.vectors.push_back(
        {piece * row_.piece_stride + at, first_step, static_cast<int32_t>(windows_.size())});
  }

  // Finds the fewest vectors of src that hold all wanted items, aligned to vectors within their
  // piece or not, and returns how many there are.
  size_t ListWindows(bool aligned) {
    const int64_t vector = permuter_.vector_bytes;
    windows_.clear();
    for (const Wanted& item : wanted_) {
      if (!windows_.empty() && item.src + row_.item_bytes <= windows_.back() + vector) continue;
      const int64_t piece = item.src / row_.piece_stride * row_.piece_stride;
      int64_t at = item.src - piece;
      if (aligned) at -= at % vector;
      windows_.push_back(piece + std::min(at, row_.piece_bytes - vector));
    }
    return windows_.size();
  }

  // Writes the control of the window at `window`, for wanted_[next] and the following items
  // that lie in the window. Returns the first item that does not.
  size_t WriteControl(int64_t window, size_t next) {
    const int64_t vector = permuter_.vector_bytes, lane_bytes = permuter_.lane_bytes;
    const auto inside = [&](const Wanted& w) { return w.src + row_.item_bytes <= window + vector; };
    if (lane_bytes == 0) return next + 1;
    const size_t control = program_.controls.size();
    program_.controls.resize(control + vector, 0xff);
    for (; next < wanted_.size() && inside(wanted_[next]); ++next) {
      const Wanted& w = wanted_[next];
      for (int64_t part = 0; part < row_.item_bytes / lane_bytes; ++part) {
        // Little endian, and below 128: the other bytes of the number are zero.
        uint8_t* number =
            &program_.controls[control + w.lane * row_.item_bytes + part * lane_bytes];
        memset(number, 0, lane_bytes);
        *number = static_cast<uint8_t>((w.src - window) / lane_bytes + part);
      }
    }
    return next;
  }

  const ShuffleRow& row_;
  const Permuter& permuter_;
  FunctionRef<int64_t(int64_t)> src_of_;
  ShuffleProgramData& program_;
  std::vector<Wanted> wanted_;    // of the vector being written, by src
  std::vector<int64_t> windows_;  // likewise
};

}  // namespace

void WriteShuffleProgram(const ShuffleRow& row, const Permuter& permuter,
                         FunctionRef<int64_t(int64_t item)> src_of, ShuffleProgramData* program) {
  Writer(row, permuter, src_of, program).Write();
}

}  // namespace bd
