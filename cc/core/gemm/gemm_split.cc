#include "cc/core/gemm/gemm_split.h"

#include <algorithm>
#include <limits>

#include "cc/core/gemm/gemm_panels.h"

namespace bd {

Range PartOfRows(int64_t rows, int64_t tile, int64_t i, int64_t n) {
  const int64_t tiles = CeilDiv(rows, tile);
  return {tiles * i / n * tile, std::min(rows, tiles * (i + 1) / n * tile)};
}

Cuts CutEvenly(int64_t panels, int64_t row_tiles, int64_t most, int64_t threads) {
  Cuts best;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (int64_t p = std::min(panels, most); p > 0; --p) {
    const int64_t of_rows = std::min(row_tiles, most / p);
    for (int64_t r = 1; r <= of_rows; r += std::max<int64_t>(1, of_rows - 1)) {
      const int64_t busiest = CeilDiv(p * r, threads) * CeilDiv(panels, p) * CeilDiv(row_tiles, r);
      if (busiest >= fewest) continue;
      fewest = busiest;
      best = {p, r};
    }
  }
  return best;
}

}  // namespace bd
