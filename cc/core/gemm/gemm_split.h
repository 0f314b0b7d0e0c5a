// How a product is cut for threads and caches.
#pragma once

#include <cstdint>

namespace bd {

struct Range {
  int64_t begin, end;
};

// Part i of n of some rows, of whole tiles but for the last rows.
Range PartOfRows(int64_t rows, int64_t tile, int64_t i, int64_t n);

// Into how many ranges panels and rows are cut.
struct Cuts {
  int64_t panels = 1, rows = 1;
};

// At most `most` tasks, so that the busiest thread has as few tiles as can be: 12 panels in 8 tasks
// keep one of two threads for 7 of them. Panels are cut before rows, since each weight is read by
// one task then, and among equals there are many tasks: one of the threads may be slowed.
Cuts CutEvenly(int64_t panels, int64_t row_tiles, int64_t most, int64_t threads);

}  // namespace bd
