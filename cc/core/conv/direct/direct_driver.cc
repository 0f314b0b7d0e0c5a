// Runs tasks of register tiles: strips into scratch, tiles or dots over them.
#include <algorithm>
#include <cstring>

#include "cc/base/threads/parallel_units.h"
#include "cc/core/conv/direct/direct.h"
#include "cc/core/conv/direct/direct_fip.h"
#include "cc/core/conv/direct/direct_kernel.h"

namespace bd {
namespace {

TaskRange Locate(const ConvRun& run, int64_t task) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const int64_t split = task % p.group_splits, strip = task / p.group_splits % p.strips;
  const int64_t count = p.groups.size();
  TaskRange r;
  r.n = task / p.group_splits / p.strips;
  r.begin = strip * p.strip_pixels;
  r.end = std::min(run.plane(), r.begin + p.strip_pixels);
  r.group_begin = count * split / p.group_splits;
  r.ahead_end = r.group_end = count * (split + 1) / p.group_splits;
  return r;
}

PlainPart PlainPartOf(const ConvRun& run, const TaskRange& r) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const int64_t first = p.groups[r.group_begin].first_block * kBlock;
  const OutputGroup& last = p.groups[r.group_end - 1];
  const int64_t end = std::min(run.d.oc(), (last.first_block + last.blocks) * kBlock);
  return {r.n, r.begin, r.end, first, end - first};
}

// A real zero of src.
int32_t ZeroOf(const ConvRun& run) {
  return run.d.src.dtype() == DataType::u8 ? run.d.types.src_quantization.zero_point : 0;
}

// Zeros of src as tiles read them.
void FillZeros(const ConvRun& run, float* dst, int64_t dwords) {
  const int32_t zero = ZeroOf(run);
  if (run.plan.Own<DirectPlan>().words()) {
    std::fill_n(reinterpret_cast<int16_t*>(dst), 2 * dwords, static_cast<int16_t>(zero));
  } else {
    std::memset(dst, zero, dwords * sizeof(float));
  }
}

// GatherArgs of bytes.
void GatherWords(const ConvRun& run, const GatherArgs& a) {
  DirectKernelsFor(run.plan.isa)
      .gather_words({reinterpret_cast<const uint8_t*>(a.src), reinterpret_cast<int16_t*>(a.dst),
                     a.px, a.first, a.stride, a.size, static_cast<int16_t>(ZeroOf(run))});
}

// GatherArgs of narrow types.
void GatherNarrow(const ConvRun& run, const GatherArgs& a) {
  const int64_t pixel = run.plan.Own<DirectPlan>().pixel;
  const int64_t after = a.src == nullptr || a.size <= a.first
                            ? 0
                            : std::min(a.px, CeilDiv(a.size - a.first, a.stride));
  const int64_t begin = std::min(after, a.first >= 0 ? 0 : CeilDiv(-a.first, a.stride));
  FillZeros(run, a.dst, begin * pixel);
  const float* from = begin < after ? a.src + (a.first + begin * a.stride) * pixel : nullptr;
  float* const to = a.dst + begin * pixel;
  if (a.stride == 1 && begin < after) {
    std::memcpy(to, from, (after - begin) * pixel * sizeof(float));
  } else {
    for (int64_t p = 0; p < after - begin; ++p) {
      std::memcpy(to + p * pixel, from + p * a.stride * pixel, pixel * sizeof(float));
    }
  }
  FillZeros(run, a.dst + after * pixel, (a.px - after) * pixel);
}

// Copies the rows that output rows [h0, h0 + rows) need of source blocks
// [b0, b1) into the strip, one copy a kernel column so that pixels of
// neighbouring rows follow each other for every tap.
void FillStrip(const ConvRun& run, int64_t n, int64_t h0, int64_t rows, int64_t b0, int64_t b1,
               float* strip) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const auto gather = DirectKernelsFor(run.plan.isa).gather;
  const ConvDesc& d = run.d;
  const int64_t row = d.ow() * p.pixel;
  const int64_t pixel_bytes = kBlock * run.plan.src_bytes;
  for (int64_t b = b0; b < b1; ++b) {
    const float* block = run.SrcBlock(n, b);
    if (d.pointwise()) {  // words of what is in place else: rows follow each other
      const int64_t pixels = rows * d.ow();
      GatherWords(run, {BytesFrom(block, h0 * d.iw() * pixel_bytes), strip, pixels, 0, 1, pixels});
      strip += p.rows_per_column * row;
      continue;
    }
    if (p.padded) {
      const int64_t row_dwords = p.strip_columns * p.pixel;
      const int64_t count = (rows - 1) * d.sh() + (d.kh() - 1) * d.dh() + 1;
      for (int64_t r = 0; r < count; ++r) {
        const int64_t ih = h0 * d.sh() - d.pad_top() + r;
        const bool inside = ih >= 0 && ih < d.ih();
        const GatherArgs a = {inside ? BytesFrom(block, ih * d.iw() * pixel_bytes) : nullptr,
                              strip + r * row_dwords, p.strip_columns, -d.pad_left(), 1, d.iw()};
        p.words() ? GatherWords(run, a) : GatherNarrow(run, a);
      }
      strip += p.rows_per_column * row_dwords;
      continue;
    }
    for (int64_t w = 0; w < d.kw(); ++w, strip += p.rows_per_column * row) {
      for (int64_t phase = 0; phase < d.sh(); ++phase) {
        const int64_t unused = p.strip_rows - rows;  // the last strip may be shorter
        const int64_t depth = p.phase_row[phase + 1] - p.phase_row[phase] - unused;
        for (int64_t q = 0; q < depth; ++q) {
          const int64_t ih = (h0 + q) * d.sh() + phase - d.pad_top();
          GatherArgs a;
          a.src = ih >= 0 && ih < d.ih() ? BytesFrom(block, ih * d.iw() * pixel_bytes) : nullptr;
          a.dst = strip + (p.phase_row[phase] + q) * row;
          a.px = d.ow();
          a.first = w * d.dw() - d.pad_left();
          a.stride = d.sw();
          a.size = d.iw();
          if (p.words()) {
            GatherWords(run, a);
          } else {
            p.narrow() ? GatherNarrow(run, a) : gather(a);
          }
        }
      }
    }
  }
}

// The same of an NHWC source: whole rows, zeros around them.
void FillPlainStrip(const ConvRun& run, int64_t n, int64_t h0, int64_t rows, float* strip) {
  const ConvDesc& d = run.d;
  const int64_t columns = run.plan.Own<DirectPlan>().strip_columns;
  const int64_t count = (rows - 1) * d.sh() + (d.kh() - 1) * d.dh() + 1;
  const int64_t left = std::min(d.pad_left(), columns);
  const int64_t end = std::clamp(d.iw() + d.pad_left(), left, columns);  // of the columns inside
  for (int64_t r = 0; r < count; ++r, strip += columns * d.ic()) {
    const int64_t ih = h0 * d.sh() - d.pad_top() + r;
    if (ih < 0 || ih >= d.ih()) {
      std::fill_n(strip, columns * d.ic(), 0.f);
      continue;
    }
    std::fill_n(strip, left * d.ic(), 0.f);
    std::copy_n(run.buffers.src + (n * d.ih() + ih) * d.iw() * d.ic(), (end - left) * d.ic(),
                strip + left * d.ic());
    std::fill_n(strip + end * d.ic(), (columns - end) * d.ic(), 0.f);
  }
}

// Pixels of an NHWC source of bytes as words.
void WidenPixels(const ConvRun& run, const void* src, int64_t pixels, float* dst) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const int64_t ic = run.d.ic();
  if (ic % 2 == 0) {
    const auto widen = Int8TileKernelsFor(run.plan.isa).words.row;
    return widen({DataType::u8, src, pixels * ic, dst, nullptr});
  }
  const uint8_t* from = static_cast<const uint8_t*>(src);
  int16_t* to = reinterpret_cast<int16_t*>(dst);
  for (; pixels > 0; --pixels, from += ic, to += 2 * p.channels) {
    for (int64_t c = 0; c < ic; ++c) to[c] = from[c];
    to[ic] = 0;  // as are the weights behind the last channel
  }
}

// Pixels of so many bytes, fewer than a Word's and more than half of them, as Words with zeros
// behind. Nothing beyond the last pixel is read.
template <typename Word>
void PadPixels(const void* src, int64_t bytes, int64_t pixels, float* dst) {
  const char* from = static_cast<const char*>(src);
  Word* const to = reinterpret_cast<Word*>(dst);
  const Word mask = (Word{1} << (8 * bytes)) - 1;
  for (int64_t i = 0; i + 1 < pixels; ++i, from += bytes) {
    Word word;
    std::memcpy(&word, from, sizeof word);
    word &= mask;
    std::memcpy(to + i, &word, sizeof word);
  }
  if (pixels > 0) {
    Word last = 0;
    std::memcpy(&last, from, static_cast<size_t>(bytes));
    std::memcpy(to + pixels - 1, &last, sizeof last);
  }
}

// Pixels of any other number of bytes, as that many dwords.
void CopyPixels(const void* src, int64_t bytes, int64_t pixels, int64_t dwords, float* dst) {
  const char* from = static_cast<const char*>(src);
  for (; pixels > 0; --pixels, from += bytes, dst += dwords) {
    dst[dwords - 1] = 0.f;  // behind the last channel weights are zero, and so are these
    std::memcpy(dst, from, static_cast<size_t>(bytes));
  }
}

// And of an NHWC source of a narrow type, whose pixels become whole dwords.
void FillNarrowPlainStrip(const ConvRun& run, int64_t n, int64_t h0, int64_t rows, float* strip) {
  const ConvDesc& d = run.d;
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const int64_t columns = p.strip_columns, pixel_bytes = d.ic() * run.plan.src_bytes;
  const int64_t count = (rows - 1) * d.sh() + (d.kh() - 1) * d.dh() + 1;
  const int64_t left = std::min(d.pad_left(), columns);
  const int64_t end = std::clamp(d.iw() + d.pad_left(), left, columns);  // of the columns inside
  const bool whole = d.ic() % PerDword(p.family) == 0;
  for (int64_t r = 0; r < count; ++r, strip += columns * p.channels) {
    const int64_t ih = h0 * d.sh() - d.pad_top() + r;
    if (ih < 0 || ih >= d.ih()) {
      FillZeros(run, strip, columns * p.channels);
      continue;
    }
    FillZeros(run, strip, left * p.channels);
    const float* src = BytesFrom(run.buffers.src, (n * d.ih() + ih) * d.iw() * pixel_bytes);
    float* to = strip + left * p.channels;
    if (p.words()) {
      WidenPixels(run, src, end - left, to);
    } else if (whole) {
      std::memcpy(to, src, (end - left) * pixel_bytes);
    } else if (p.channels == 1 && pixel_bytes > 2) {
      PadPixels<uint32_t>(src, pixel_bytes, end - left, to);
    } else if (p.channels == 2) {
      PadPixels<uint64_t>(src, pixel_bytes, end - left, to);
    } else {
      CopyPixels(src, pixel_bytes, end - left, p.channels, to);
    }
    FillZeros(run, strip + end * p.channels, (columns - end) * p.channels);
  }
}

// Brings source blocks [b0, b1) of a task within reach of the taps.
const float* SourceFor(const ConvRun& run, const TaskRange& r, int64_t b0, int64_t b1, int thread) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const ConvDesc& d = run.d;
  const bool plain_src = !p.blocked();
  if (p.in_place && plain_src) {
    return run.buffers.src + (r.n * d.ih() * d.iw() + r.begin) * p.channels + b0 * p.pixel;
  }
  if (p.in_place) {
    const int64_t first = p.by_row ? r.begin / d.ow() * d.sh() * d.iw() : r.begin;
    return run.SrcBlock(r.n, b0) + first * p.pixel;
  }
  const int64_t h0 = r.begin / d.ow(), rows = (r.end - r.begin) / d.ow();
  float* strip = run.scratch.Grant(p.strip, thread);
  if (plain_src && p.narrow()) {
    FillNarrowPlainStrip(run, r.n, h0, rows, strip);
  } else if (plain_src) {
    FillPlainStrip(run, r.n, h0, rows, strip);
  } else {
    FillStrip(run, r.n, h0, rows, b0, b1, strip);
  }
  return strip;
}

// What a thread has brought within reach of the taps: source blocks [b0, b1) of output pixels
// [begin, end) of image n.
struct PreparedSource {
  int64_t n = -1, begin = 0, end = 0, b0 = 0, b1 = 0;
  ChunkSource from;

  bool Has(const TaskRange& r, int64_t first, int64_t last) const {
    return n == r.n && begin <= r.begin && r.end <= end && b0 == first && b1 == last;
  }
};

// Source blocks [b0, b1) of a task or a part of it, with the terms of FIP; `exponent` as for
// PrepareFip.
ChunkSource Prepare(const ConvRun& run, const TaskRange& r, int64_t b0, int64_t b1, int thread,
                    PreparedSource* prepared, const int* exponent = nullptr) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  if (!prepared->Has(r, b0, b1)) {
    *prepared = {r.n, r.begin, r.end, b0, b1, {SourceFor(run, r, b0, b1, thread)}};
    if (p.fip()) {
      PrepareFip(run, b0, b1, r.end - r.begin, thread, exponent, &prepared->from);
    }
  }
  ChunkSource from = prepared->from;
  const int64_t pixels = r.begin - prepared->begin;
  from.src += p.by_row ? pixels / run.d.ow() * p.row_stride : pixels * p.px_stride;
  from.Advance(pixels);
  return from;
}

// Output groups that read the same source share its strip: all of them, but for grouped
// convolution, where each reads blocks of its own.
void RunChunks(const ConvRun& run, const TaskRange& r, const TileTarget& target, int thread,
               PreparedSource* prepared) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const bool shared = run.d.groups == 1 || !p.blocked();
  const int64_t together = shared ? r.group_end - r.group_begin : 1;
  for (int64_t g = r.group_begin; g < r.group_end; g += together) {
    const OutputGroup& group = p.groups[g];
    for (int64_t b0 = group.icb_begin; b0 < group.icb_end; b0 += p.icb_chunk) {
      const int64_t b1 = std::min(group.icb_end, b0 + p.icb_chunk);
      const ChunkSource from = Prepare(run, r, b0, b1, thread, prepared);
      RunChunk(run, r, g, g + together, b0, b1, from, target, thread);
    }
  }
}

void TileTask(const ConvRun& run, const TaskRange& r, int thread, PreparedSource* prepared) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const bool plain_dst = run.d.dst.channels_last();
  float* blocks = run.scratch.Grant(p.row, thread);
  const int64_t px = r.end - r.begin;
  const TileTarget target =
      plain_dst ? TileTarget{blocks, p.groups[r.group_begin].first_block, px * kBlock}
                : TileTarget{BytesFrom(run.DstBlock(r.n, 0),
                                       r.begin * kBlock * run.plan.tensors.dst_bytes),
                             0, run.plane() * kBlock};
  RunChunks(run, r, target, thread, prepared);
  if (plain_dst) {
    StorePlain(run, PlainPartOf(run, r), blocks, px * kBlock,
               blocks + p.strip_pixels * run.plan.ocb * kBlock);
  }
}

// What threads take of each other's tasks: groups, whose weights come alongside while the
// source stays; where there are few, tiles of pixels or rows of them, unless each of these would
// have to pack the weights again.
struct TaskUnits {
  static constexpr int64_t kFewGroups = 4;

  explicit TaskUnits(const ConvRun& run)
      : p(run.plan.Own<DirectPlan>()), unit_pixels(p.strip_pixels) {
    const ConvPlan& plan = run.plan;
    const ConvDesc& d = plan.desc;
    if (p.icb_chunk < plan.icb || d.groups > 1) return;  // a task is one unit
    by_groups = p.packs_panels || p.group_splits > 1 || p.groups.size() >= kFewGroups;
    if (by_groups) return;
    unit_pixels =
        p.in_place && !p.by_row ? TilePixels(plan.isa, FamilyOf(p), p.groups[0].blocks) : d.ow();
  }

  int64_t Count(const TaskRange& r) const {
    return by_groups ? r.group_end - r.group_begin : CeilDiv(r.end - r.begin, unit_pixels);
  }

  TaskRange Of(TaskRange r, const Units& u) const {
    if (by_groups) {
      r.group_end = r.group_begin + u.end;
      r.group_begin += u.begin;
    } else {
      r.end = std::min(r.end, r.begin + u.end * unit_pixels);
      r.begin += u.begin * unit_pixels;
      if (u.begin > 0) r.ahead_end = 0;  // they have come with the first pixels
    }
    return r;
  }

  // All weights pass each time that a thread takes pixels, so it takes 6/9, 2/9 and 1/9.
  double Fraction() const { return by_groups ? 0 : 0.67; }
  int64_t Least() const { return by_groups ? 1 : CeilDiv(CeilDiv(p.strip_pixels, unit_pixels), 9); }

  const DirectPlan& p;
  bool by_groups = false;
  int64_t unit_pixels;
};

void DotTask(const ConvRun& run, int64_t task, int thread) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const TaskRange r = Locate(run, task);
  DotArgs a;
  a.src = SourceFor(run, r, 0, run.plan.icb, thread);
  a.tap_offsets = p.tap_offsets.data();
  a.taps = static_cast<int64_t>(p.tap_offsets.size());
  a.weights = run.buffers.packed;
  a.px = r.end - r.begin;
  a.oc = run.d.oc();
  a.bias = run.bias;
  a.dst = run.scratch.Grant(p.row, thread);
  DirectKernelsFor(run.plan.isa).dot(a);
  StorePlain(run, PlainPartOf(run, r), nullptr, 0, a.dst);
}

void RunTiles(const ConvRun& run, ThreadPool& pool) {
  const ConvPlan& plan = run.plan;
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const TaskUnits units(run);
  // With FIP all pixels of a task share an exponent, whoever computes them.
  const bool shares_exponent = p.fip() && !units.by_groups && p.icb_chunk == plan.icb;
  ParallelUnits(pool, plan.tasks, [&](UnitTaker& taker) {
    const int thread = taker.thread();
    PreparedSource prepared;
    for (int64_t task; taker.NextTask(&task);) {
      const TaskRange r = Locate(run, task);
      const int note =
          shares_exponent ? Prepare(run, r, 0, plan.icb, thread, &prepared).exponent : 0;
      taker.Offer(units.Count(r), note);
      for (Units u; taker.Next(units.Fraction(), units.Least(), &u);) {
        TileTask(run, units.Of(r, u), thread, &prepared);
      }
    }
    for (Units u; taker.Steal(units.Fraction(), units.Least(), &u);) {
      const TaskRange r = units.Of(Locate(run, u.task), u);
      if (shares_exponent) Prepare(run, r, 0, plan.icb, thread, &prepared, &u.note);
      TileTask(run, r, thread, &prepared);
    }
  });
}

}  // namespace

void RunDirect(const ConvRun& run, ThreadPool& pool) {
  if (run.plan.Own<DirectPlan>().variant != kDotLanes) return RunTiles(run, pool);
  pool.ParallelFor(run.plan.tasks, [&](int64_t t, int thread) { DotTask(run, t, thread); });
}

}  // namespace bd
