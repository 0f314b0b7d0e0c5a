// B into panels: [panel][k][block of panel][16], zero after the last column; of low precision a
// dword is several k.
#include <xmmintrin.h>

#include <cstring>

#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/gemm.h"
#include "cc/core/gemm/low_precision_pack.h"

namespace bd {
namespace {

// Columns of a matrix whose rows are contiguous.
void CopyRows(const float* b, int64_t row_stride, int64_t rows, int64_t columns, int64_t width,
              float* out) {
  if (columns == kBlock && width == kBlock) {  // of a size that the compiler knows
    for (int64_t k = 0; k < rows; ++k) {
      std::memcpy(out + k * kBlock, b + k * row_stride, kBlock * sizeof(float));
    }
    return;
  }
  for (int64_t k = 0; k < rows; ++k, b += row_stride, out += width) {
    std::memcpy(out, b, columns * sizeof(float));
    std::memset(out + columns, 0, (width - columns) * sizeof(float));
  }
}

// Columns that are contiguous, column_stride apart: 4 x 4 transposes, 16 columns at a time, so that
// each cache line of `out` is filled at once.
void Transpose(const float* b, int64_t column_stride, int64_t rows, int64_t columns, int64_t width,
               float* out) {
  for (int64_t c0 = 0; c0 < width; c0 += kBlock) {
    const int64_t here = std::clamp<int64_t>(columns - c0, 0, kBlock);
    int64_t k = 0;
    for (; k + 4 <= rows; k += 4) {
      for (int64_t c = c0; c < c0 + kBlock; c += 4) {
        __m128 x[4];
        for (int64_t i = 0; i < 4; ++i) {
          x[i] =
              c + i < c0 + here ? _mm_loadu_ps(b + (c + i) * column_stride + k) : _mm_setzero_ps();
        }
        _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]);
        for (int64_t i = 0; i < 4; ++i) _mm_storeu_ps(out + (k + i) * width + c, x[i]);
      }
    }
    for (; k < rows; ++k) {
      for (int64_t c = 0; c < kBlock; ++c) {
        out[k * width + c0 + c] = c < here ? b[(c0 + c) * column_stride + k] : 0.f;
      }
    }
  }
}

void PackLowPrecisionPanel(const GemmPlan& plan, const GemmB& b, const Panel& panel,
                           int64_t columns, float* packed) {
  const int64_t column = panel.first_block * kBlock, width = panel.blocks * kBlock;
  const auto index_of = [&](int64_t k, int64_t c) {
    return c < columns ? k * b.row_stride + (column + c) * b.column_stride : -1;
  };
  int32_t* const sums =
      plan.family == TileFamily::kInt8 ? As<int32_t>(packed + plan.sums) + column : nullptr;
  if (sums != nullptr) std::fill_n(sums, width, 0);
  PackLowPrecision(plan.family, plan.desc.b, b.data, plan.desc.k, width, index_of,
                   packed + panel.offset, sums);
}

template <typename Number>
void PackLinesOf(DataType type, const GemmB& b, int64_t k, int64_t columns, float* out) {
  const auto* data = static_cast<const Number*>(b.data);
  auto* to = As<Number>(out);
  std::memset(out, 0, PanelFloats(type, k) * sizeof(float));
  const int64_t step = type == DataType::u8 ? 2 : 1;  // rows of an element
  for (int64_t row = 0; row < k; row += step, data += b.row_stride) {
    for (int64_t c = 0; c < columns; ++c) to[PanelIndex(type, row, c)] = data[c * b.column_stride];
  }
}

}  // namespace

void PackLines(DataType type, const GemmB& b, int64_t k, int64_t columns, float* out) {
  if (type == DataType::bf16) return PackLinesOf<uint16_t>(type, b, k, columns, out);
  PackLinesOf<uint8_t>(type, b, k, columns, out);
}

void PackPanel(const GemmB& b, int64_t rows, int64_t columns, int64_t blocks, float* out) {
  const int64_t width = blocks * kBlock;
  const auto* data = static_cast<const float*>(b.data);
  if (b.column_stride == 1) {
    CopyRows(data, b.row_stride, rows, columns, width, out);
  } else {
    Transpose(data, b.column_stride, rows, columns, width, out);
  }
}

void PackGemm(const GemmPlan& plan, const GemmB& b, float* packed, ThreadPool* pool) {
  const auto pack = [&](int64_t g, int) {
    const Panel& panel = plan.panels[g];
    const int64_t column = panel.first_block * kBlock;
    const int64_t columns = std::min(panel.blocks * kBlock, plan.desc.n - column);
    if (IsLowPrecision(plan.family)) return PackLowPrecisionPanel(plan, b, panel, columns, packed);
    const auto from = [&](int64_t c) {
      return GemmB{BytesFrom(b.data, c * b.column_stride * SizeOf(plan.desc.b)), b.row_stride,
                   b.column_stride};
    };
    if (plan.desc.widens) {
      for (int64_t c = 0; c < columns; c += kBlock) {
        PackLines(plan.desc.b, from(column + c), plan.desc.k, std::min(kBlock, columns - c),
                  packed + (column + c) / kBlock * PanelFloats(plan.desc.b, plan.desc.k));
      }
      return;
    }
    const GemmB of_panel = from(column);
    PackPanel(of_panel, plan.desc.k, columns, panel.blocks, packed + panel.offset);
    if (!plan.pairs) return;
    PackFip(plan.isa, plan.desc.k, plan.desc.k / kBlock, panel.blocks * kBlock,
            packed + panel.offset, packed + plan.unscale + column, packed + plan.terms + column);
  };
  const int64_t count = static_cast<int64_t>(plan.panels.size());
  if (pool == nullptr || plan.packed_bytes < (64 << 10)) {
    for (int64_t g = 0; g < count; ++g) pack(g, 0);
  } else {
    pool->ParallelFor(count, pack);
  }
}

}  // namespace bd
