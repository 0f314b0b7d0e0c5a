#include <algorithm>
#include <cstring>

#include "cc/base/function_ref.h"
#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/shuffle/shuffle.h"

namespace bd {
namespace {

// Bytes that a task moves, some 4 us of work from the third level cache. A second thread
// pays from twice as many bytes on.
constexpr int64_t kTaskBytes = 128 * 1024;

// Bytes of a plain tensor that one program works through at a time: enough to pay for
// loading the program into registers, and few enough for the L2 cache.
constexpr int64_t kPlainTileBytes = 32 * 1024;
// The same of one channel block: a page, since the prefetchers stop at its end.
constexpr int64_t kBlockedTileBytes = 4 * 1024;

// Entries of at least so many bytes are copied one by one.
constexpr int64_t kRowBytes = 256;
// An axis of more bytes would make a program larger than the caches.
constexpr int64_t kLongAxisBytes = 16 * 1024;

// Least vectors in a row of a plain tensor's program: part of the last one is done twice, which
// must not count for much.
constexpr int64_t kPlainRowVectors = 4;

std::string Check(const ShuffleDesc& d) {
  if (d.block != 1 && d.block != 8 && d.block != 16) {
    return StrCat("shuffle knows blocks of 8 and 16 channels, not of ", d.block);
  }
  if (d.element_bytes != 1 && d.element_bytes != 2 && d.element_bytes != 4 &&
      d.element_bytes != 8) {
    return StrCat("shuffle knows elements of 1, 2, 4 and 8 bytes, not of ", d.element_bytes);
  }
  Size bytes = d.block * d.element_bytes;
  for (int64_t size : {d.outer, d.num_blocks(), d.inner}) bytes = bytes * (size == 0 ? 1 : size);
  if (d.channels < 0 || !bytes.fits() || (d.block > 1 && d.channels > Size::kMostEntries)) {
    return "shuffle of a negative size, or one that is too large";
  }
  if (d.group < 1) return StrCat("group must be at least 1, got ", d.group);
  if (d.channels % d.group != 0) {
    return StrCat("group = ", d.group, " must divide the ", d.channels, " entries of the axis");
  }
  return "";
}

// The base-2 logarithm of the largest item, of at most 8 bytes, that divides `bytes`. It is also
// the index of the permuter for such items.
int Log2Item(int64_t bytes) {
  int log2 = 0;
  while (log2 < 3 && bytes % (int64_t{2} << log2) == 0) ++log2;
  return log2;
}

// The best permuter whose vector fits into `bytes`.
const Permuter& PermuterFor(Isa isa, int log2_item, int64_t bytes) {
  for (; isa != Isa::kGeneric; isa = static_cast<Isa>(static_cast<int>(isa) - 1)) {
    const Permuter& permuter = ShuffleKernelsFor(isa).permuters[log2_item];
    if (permuter.vector_bytes <= bytes) return permuter;
  }
  return ShuffleKernelsFor(isa).permuters[log2_item];
}

// A row of the program: `pieces` pieces of `piece_bytes` bytes, each contiguous, one
// every `piece_stride` bytes, in src and in dst.
struct ShuffleRow {
  int64_t pieces = 0, piece_bytes = 0, piece_stride = 0;
  int64_t item_bytes = 0;  // 1, 2, 4 or 8, which the permuter is for
};

// Bytes from the row's first; `lane` is the item's place in the vector of dst.
struct Wanted {
  int64_t src;
  int32_t lane;
};

// Writes a program: src_of(item) is the item of src that `item` of dst is, or -1 for a zero; items
// are counted through the pieces. A piece must hold one vector of the permuter at least.
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

void PlanProgram(Isa isa, ShufflePlan* plan) {
  const ShuffleDesc& d = plan->desc;
  const bool plain = d.block == 1;
  const int64_t entry_bytes = plain ? d.inner * d.element_bytes : d.element_bytes;
  const int log2_item = Log2Item(entry_bytes);
  const int64_t item_bytes = int64_t{1} << log2_item, entry_items = entry_bytes / item_bytes;

  // A row of a blocked tensor is a pixel, with a piece for each block; one of a plain
  // tensor is a single piece.
  plan->rows = plain ? d.outer : d.inner;
  plan->images = plain ? 1 : d.outer;
  plan->image_bytes = d.size_bytes() / plan->images;
  const int64_t piece_entries = plain ? d.channels : d.block;
  const int64_t row_bytes = piece_entries * entry_bytes;  // of a piece
  const bool is_long = d.channels * entry_bytes > kLongAxisBytes;
  const Permuter& permuter =
      PermuterFor(is_long ? Isa::kGeneric : isa, log2_item, plan->rows * row_bytes);
  const int64_t wanted_bytes = permuter.vector_bytes * (plain ? kPlainRowVectors : 1);
  const int64_t rows_at_once = std::min(plan->rows, CeilDiv(wanted_bytes, row_bytes));

  ShuffleRow row;
  row.pieces = CeilDiv(d.channels, piece_entries);
  row.piece_bytes = rows_at_once * row_bytes;
  row.piece_stride = plan->rows * row_bytes;
  row.item_bytes = item_bytes;
  const int64_t row_items = piece_entries * entry_items, piece_items = rows_at_once * row_items;
  const auto src_of = [&](int64_t item) -> int64_t {
    const int64_t r = item % piece_items / row_items, part = item % entry_items;
    const int64_t c = item / piece_items * piece_entries + item % row_items / entry_items;
    if (c >= d.channels) return -1;
    const int64_t from = d.SrcOf(c);
    return from / piece_entries * piece_items + r * row_items + from % piece_entries * entry_items +
           part;
  };
  Writer(row, permuter, src_of, &plan->program).Write();
  plan->program.rows_at_once = rows_at_once;
  plan->program.stride = row.piece_bytes;

  const int64_t tile_bytes = plain ? kPlainTileBytes : kBlockedTileBytes;
  plan->tile_rows = rows_at_once * std::max<int64_t>(1, tile_bytes / row.piece_bytes);
  plan->tiles = CeilDiv(plan->rows / rows_at_once * rows_at_once, plan->tile_rows);
}

void CutIntoTasks(int64_t units, ShufflePlan* plan) {
  const int64_t bytes = plan->desc.size_bytes();
  plan->units = units;
  plan->tasks = bytes < 2 * kTaskBytes ? 1 : std::min(units, CeilDiv(bytes, kTaskBytes));
}

}  // namespace

std::string MakeShufflePlan(const ShuffleDesc& desc, Isa isa, ShufflePlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  *plan = ShufflePlan();
  plan->desc = desc;
  const int64_t bytes = desc.size_bytes();
  if (bytes == 0) return "";

  const bool plain = desc.block == 1;
  const int64_t entry_bytes = desc.inner * desc.element_bytes;
  const bool is_long = desc.channels * entry_bytes > kLongAxisBytes;
  if ((desc.group == 1 || desc.group == desc.channels) && desc.channels % desc.block == 0) {
    plan->method = ShuffleMethod::kCopy;
    CutIntoTasks(bytes, plan);
  } else if (plain && entry_bytes >= kRowBytes) {
    plan->method = ShuffleMethod::kCopyEntries;
    CutIntoTasks(desc.outer * desc.channels, plan);
  } else if (plain && is_long) {
    plan->method = ShuffleMethod::kTranspose;
    CutIntoTasks(desc.outer * CeilDiv(desc.channels / desc.group, kTransposeTileU) *
                     CeilDiv(desc.group, kTransposeTileV),
                 plan);
  } else {
    plan->method = ShuffleMethod::kPermute;
    PlanProgram(isa, plan);
    CutIntoTasks(plan->images * plan->tiles, plan);
  }
  return "";
}

}  // namespace bd
