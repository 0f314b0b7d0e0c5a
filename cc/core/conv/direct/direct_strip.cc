// Strips: what tiles read of the source that does not lie as they read it, or not in one piece.
#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "cc/core/conv/direct/direct.h"
#include "cc/core/conv/direct/direct_kernel.h"

namespace bd {
namespace {

// A real zero of src.
int32_t ZeroOf(const ConvRun& run) {
  return run.d.src.dtype() == DataType::u8 ? run.d.types.src_quantization.zero_point : 0;
}

// Zeros of src as tiles read them.
void FillZeros(const ConvRun& run, float* dst, int64_t bytes) {
  const int32_t zero = ZeroOf(run);
  if (run.plan.Own<DirectPlan>().words()) {
    std::fill_n(As<int16_t>(dst), bytes / 2, static_cast<int16_t>(zero));
  } else {
    std::memset(dst, zero, bytes);
  }
}

// Whole vectors of 16 bytes. Rows of small planes take less time than calls to move them would.
void FillVectors(__m128i value, int64_t count, char* dst) {
  for (int64_t i = 0; i < count; ++i) _mm_storeu_si128(As<__m128i>(dst) + i, value);
}
void CopyVectors(const char* src, int64_t count, char* dst) {
  constexpr int64_t kShort = 16;
  if (count > kShort) {
    std::memcpy(dst, src, static_cast<size_t>(count) * sizeof(__m128i));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const __m128i v = _mm_loadu_si128(As<const __m128i>(src) + i);
    _mm_storeu_si128(As<__m128i>(dst) + i, v);
  }
}

// `count` rows of one block from source row ih0 on, with the zeros around them.
void PadRows(const ConvRun& run, const float* block, int64_t ih0, int64_t count, float* strip) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const ConvDesc& d = run.d;
  const int64_t pixel = p.pixel * sizeof(float) / sizeof(__m128i);  // vectors
  const int64_t all = p.strip_columns * pixel;
  const int64_t left = std::min(all, d.pad_left() * pixel);
  const int64_t inside = std::min(all - left, d.iw() * pixel);
  const __m128i zero = _mm_set1_epi8(static_cast<char>(ZeroOf(run)));
  constexpr int64_t kVector = sizeof(__m128i);
  char* dst = As<char>(strip);
  for (int64_t ih = ih0; ih < ih0 + count; ++ih) {
    if (ih < 0 || ih >= d.ih()) {
      FillVectors(zero, all, dst);
    } else {
      FillVectors(zero, left, dst);
      const char* src = As<const char>(block) + ih * d.iw() * pixel * kVector;
      CopyVectors(src, inside, dst + left * kVector);
      FillVectors(zero, all - left - inside, dst + (left + inside) * kVector);
    }
    dst += all * kVector;
  }
}

// Copies the rows that output rows [h0, h0 + rows) need of source blocks
// [b0, b1) into the strip, one copy a kernel column so that pixels of
// neighbouring rows follow each other for every tap.
void FillStrip(const ConvRun& run, int64_t n, int64_t h0, int64_t rows, int64_t b0, int64_t b1,
               float* strip) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const ConvDesc& d = run.d;
  const DirectKernels& kernels = DirectKernelsFor(run.plan.isa);
  const auto gather = p.words() ? kernels.gather_words : kernels.gather[run.plan.src_bytes / 2];
  const uint8_t zero = static_cast<uint8_t>(ZeroOf(run));
  const int64_t row = d.ow() * p.pixel;
  const int64_t pixel_bytes = kBlock * run.plan.src_bytes;
  // Rows that are copied whole, or are pixels, are copied as one.
  const bool whole = d.kw() == 1 && d.sw() == 1 && d.pad_left() == 0 && d.ow() == d.iw() &&
                     (d.sh() == 1 || d.iw() == 1);
  for (int64_t b = b0; b < b1; ++b) {
    const float* block = run.SrcBlock(n, b);
    if (d.pointwise()) {  // words of what is in place else: rows follow each other
      const int64_t pixels = rows * d.ow();
      gather({BytesFrom(block, h0 * d.iw() * pixel_bytes), strip, pixels, 0, 1, pixels, zero});
      strip += p.rows_per_column * row;
      continue;
    }
    if (p.padded) {
      const int64_t row_dwords = p.strip_columns * p.pixel;
      const int64_t count = (rows - 1) * d.sh() + (d.kh() - 1) * d.dh() + 1;
      const int64_t ih0 = h0 * d.sh() - d.pad_top();
      if (!p.words()) PadRows(run, block, ih0, count, strip);
      for (int64_t r = 0; r < count && p.words(); ++r) {
        const bool inside = ih0 + r >= 0 && ih0 + r < d.ih();
        const float* src = inside ? BytesFrom(block, (ih0 + r) * d.iw() * pixel_bytes) : nullptr;
        gather({src, strip + r * row_dwords, p.strip_columns, -d.pad_left(), 1, d.iw(), zero});
      }
      strip += p.rows_per_column * row_dwords;
      continue;
    }
    for (int64_t w = 0; w < d.kw(); ++w, strip += p.rows_per_column * row) {
      for (int64_t phase = 0; phase < d.sh(); ++phase) {
        const int64_t unused = p.strip_rows - rows;  // the last strip may be shorter
        const int64_t depth = p.phase_row[phase + 1] - p.phase_row[phase] - unused;
        for (int64_t q = 0; q < (whole ? std::min<int64_t>(1, depth) : depth); ++q) {
          const int64_t ih = (h0 + q) * d.sh() + phase - d.pad_top();
          GatherArgs a = {};
          a.zero = zero;
          a.dst = strip + (p.phase_row[phase] + q) * row;
          if (whole) {
            a.src = block;
            a.px = depth * d.ow();
            a.first = ih * d.iw();
            a.stride = d.sh();
            a.size = d.ih() * d.iw();
          } else {
            a.src = ih >= 0 && ih < d.ih() ? BytesFrom(block, ih * d.iw() * pixel_bytes) : nullptr;
            a.px = d.ow();
            a.first = w * d.dw() - d.pad_left();
            a.stride = d.sw();
            a.size = d.iw();
          }
          gather(a);
        }
      }
    }
  }
}

// One number of each pixel, which has so many.
void CopyHalves(const float* src, int64_t src_pixel, int64_t pixels, int64_t dst_pixel,
                float* dst) {
  const auto* from = As<const uint16_t>(src);
  auto* to = As<uint16_t>(dst);
  for (int64_t i = 0; i < pixels; ++i) to[i * dst_pixel] = from[i * src_pixel];
}

// Pixels of an NHWC source as they lie in a strip.
void CopyPixels(const ConvRun& run, const float* src, int64_t pixels, float* dst) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const int64_t ic = run.d.ic();
  if (p.words()) {
    return Int8TileKernelsFor(run.plan.isa)
        .words.row({DataType::u8, src, pixels * ic, dst, nullptr, nullptr});
  }
  if (p.channels == ic) {
    std::memcpy(dst, src, pixels * ic * p.unit);
    return;
  }
  std::memset(dst, 0, pixels * p.channels * p.unit);
  CopyHalves(src, ic, pixels, p.channels, dst);
}

// The same of an NHWC source: whole rows, or a part of the only one, zeros around them.
void FillPlainStrip(const ConvRun& run, const TaskRange& r, float* strip) {
  const ConvDesc& d = run.d;
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const int64_t pixel = p.channels * p.unit;
  const int64_t src_row = d.iw() * d.ic() * run.plan.src_bytes;
  const int64_t h0 = r.begin / d.ow(), w0 = r.begin % d.ow();
  const int64_t rows = p.is_line ? 1 : (r.end - r.begin) / d.ow();
  const int64_t count = (rows - 1) * d.sh() + (d.kh() - 1) * d.dh() + 1;
  const int64_t columns = p.is_line ? p.SourceColumns(d, r.end - r.begin) : p.strip_columns;
  const int64_t first = w0 * d.sw() - d.pad_left();  // column of the source
  const int64_t left = std::clamp<int64_t>(-first, 0, columns);
  const int64_t end = std::clamp(d.iw() - first, left, columns);  // of the columns inside
  for (int64_t i = 0; i < count; ++i) {
    float* const row = BytesFrom(strip, i * columns * pixel);
    const int64_t ih = h0 * d.sh() - d.pad_top() + i;
    if (ih < 0 || ih >= d.ih()) {
      FillZeros(run, row, columns * pixel);
      continue;
    }
    FillZeros(run, row, left * pixel);
    const int64_t inside =
        ((r.n * d.ih() + ih) * src_row) + (first + left) * d.ic() * run.plan.src_bytes;
    CopyPixels(run, BytesFrom(run.buffers.src, inside), end - left, BytesFrom(row, left * pixel));
    FillZeros(run, BytesFrom(row, end * pixel), (columns - end) * pixel);
  }
  if (!p.odd_taps()) return;
  const int64_t repeated = p.last_channels * p.unit, last = (p.channels - 1) * p.unit;
  float* const zeros = BytesFrom(strip, repeated);
  std::memset(zeros, 0, p.strip.count * sizeof(float) - repeated);
  CopyHalves(BytesFrom(strip, last), p.channels, count * columns, p.channels,
             BytesFrom(zeros, last));
}

}  // namespace

const float* SourceFor(const ConvRun& run, const TaskRange& r, int64_t b0, int64_t b1, int thread) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const ConvDesc& d = run.d;
  const bool plain_src = !p.blocked();
  if (p.in_place && plain_src) {
    return BytesFrom(run.buffers.src, (r.n * d.ih() * d.iw() + r.begin) * p.channels * p.unit);
  }
  if (p.in_place) {
    const int64_t first = p.by_row ? r.begin / d.ow() * d.sh() * d.iw() : r.begin;
    return run.SrcBlock(r.n, b0) + first * p.pixel;
  }
  const int64_t h0 = r.begin / d.ow(), rows = (r.end - r.begin) / d.ow();
  float* strip = run.scratch.Grant(p.strip, thread);
  if (plain_src) {
    FillPlainStrip(run, r, strip);
  } else {
    FillStrip(run, r.n, h0, rows, b0, b1, strip);
  }
  return strip;
}

}  // namespace bd
