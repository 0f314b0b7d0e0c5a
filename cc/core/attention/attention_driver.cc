#include <algorithm>

#include "cc/base/machine.h"
#include "cc/core/attention/attention.h"

namespace bd {
namespace {

// Some heads that share keys and values, of one sequence.
struct Group {
  int64_t b, g;
};

// Some rows of a group: queries of one head, or heads of one query.
struct Block {
  int64_t n, t, rows;
};

class Worker {
 public:
  // For group number `group`.
  Worker(const AttentionPlan& plan, const AttentionBuffers& buffers, int thread, int64_t group)
      : plan_(plan),
        d_(plan.desc),
        buffers_(buffers),
        group_({group / d_.kv_heads, group % d_.kv_heads}) {
    const Scratch scratch(buffers.scratch);
    const int64_t packed = plan.parts > 1 ? group : thread;
    keys_ = scratch.Grant(plan.packed_keys, packed);
    values_ = scratch.Grant(plan.packed_values, packed);
    rounded_keys_ = scratch.Grant(plan.rounded_keys, thread);
    queries_ = scratch.Grant(plan.query_rows, thread);
    scores_ = scratch.Grant(plan.score_rows, thread);
  }

  // Of keys and values a share that is one of plan.parts.
  void PackPart(int64_t part) const {
    const int64_t panels = static_cast<int64_t>(plan_.scores.panels.size());
    const auto key = [&](int64_t panel) {
      return panel < panels ? plan_.scores.panels[panel].first_block * kBlock : d_.keys;
    };
    Pack(key(panels * part / plan_.parts), key(panels * (part + 1) / plan_.parts));
  }

  // The blocks of a part.
  void Run(int64_t part) const {
    const int64_t blocks = plan_.lines * plan_.line_blocks;
    const int64_t begin = blocks * part / plan_.parts, end = blocks * (part + 1) / plan_.parts;
    int64_t keys = 0;
    for (int64_t i = begin; i < end; ++i) keys = std::max(keys, Keys(At(i)));
    if (plan_.packs && plan_.parts == 1) Pack(0, keys);
    for (int64_t i = begin; i < end; ++i) RunBlock(At(i));
  }

 private:
  Block At(int64_t i) const {
    const int64_t line = i / plan_.line_blocks, part = i % plan_.line_blocks;
    const int64_t begin = plan_.line_rows * part / plan_.line_blocks;
    const int64_t end = plan_.line_rows * (part + 1) / plan_.line_blocks;
    const int64_t head = group_.g * (d_.heads / d_.kv_heads);
    if (plan_.along_heads) return {head + begin, line, end - begin};
    return {head + line, begin, end - begin};
  }

  // The keys that the rows of a block need: those of its last query.
  int64_t Keys(const Block& block) const {
    if (!d_.causal) return d_.keys;
    const int64_t last = block.t + (plan_.along_heads ? 0 : block.rows - 1);
    return std::min(d_.keys, last + 1);
  }

  int64_t RowStride(const AttentionStrides& strides) const {
    return plan_.along_heads ? strides.head : strides.row;
  }

  // Rows of bfloat16 in dwords, which may lie where those of floats did.
  void RoundRows(const float* src, int64_t src_stride, int64_t rows, int64_t columns, float* dst,
                 int64_t dst_stride) const {
    const auto round = Bf16TileKernelsFor(plan_.isa).row;
    for (int64_t r = 0; r < rows; ++r) {
      round({DataType::f32, src + r * src_stride, columns, dst + r * dst_stride, nullptr, nullptr});
    }
  }

  // Keys [begin, end) and their values; a panel begins at `begin`.
  void Pack(int64_t begin, int64_t end) const {
    const float* k = buffers_.k + d_.k.offset(group_.b, group_.g, 0);
    for (const Panel& panel : plan_.scores.panels) {
      const int64_t first = panel.first_block * kBlock;
      if (first < begin || first >= end) continue;
      const int64_t columns = std::min(panel.blocks * kBlock, d_.keys - first);
      GemmB rows = {k + first * d_.k.row, 1, d_.k.row};
      if (plan_.rounds) {
        RoundRows(k + first * d_.k.row, d_.k.row, columns, d_.head_size, rounded_keys_,
                  plan_.scores.k_dwords);
        rows = {rounded_keys_, 1, plan_.scores.k_dwords};
      }
      PackPanel(rows, plan_.scores.k_dwords, columns, panel.blocks, keys_ + panel.offset);
    }
    const float* v = buffers_.v + d_.v.offset(group_.b, group_.g, begin);
    const int64_t rows = end - begin, before = begin / PerDword(plan_.values.family);
    for (const Panel& panel : plan_.values.panels) {
      const int64_t first = panel.first_block * kBlock;
      const int64_t width = panel.blocks * kBlock, columns = std::min(width, d_.value_size - first);
      float* const to = values_ + panel.offset + before * width;
      if (plan_.rounds) {
        plan_.kernels->pair(v + first, d_.v.row, rows, columns, width, to);
      } else {
        PackPanel({v + first, d_.v.row, 1}, rows, columns, panel.blocks, to);
      }
    }
  }

  void RunBlock(const Block& block) const {
    const int64_t keys = Keys(block);
    plan_.kernels->scale(buffers_.q + d_.q.offset(group_.b, block.n, block.t), RowStride(d_.q),
                         block.rows, d_.head_size,
                         d_.soft_cap == 0.f ? d_.scale : d_.scale / d_.soft_cap, queries_);
    if (!plan_.packs) return RunUnpacked(block, keys);
    if (plan_.rounds) {
      RoundRows(queries_, d_.head_size, block.rows, d_.head_size, queries_, plan_.scores.k_dwords);
    }
    MultiplyByKeys(block, keys);
    Weigh(block, keys);
    if (plan_.rounds) {
      RoundRows(scores_, plan_.scores_stride, block.rows, keys, scores_, plan_.scores_stride);
    }
    MultiplyByValues(block, keys);
  }

  // The keys that row r of a block does not end with as masked: a cache has room for those to come,
  // whose scores need not be read out of it.
  int64_t KeysBeforeMasked(const Block& block, int64_t r, int64_t keys) const {
    if (!d_.has_mask || d_.mask.key_stride != 1) return keys;
    const uint8_t* mask =
        buffers_.mask + d_.mask.offset(group_.b, block.n, block.t) + r * RowStride(d_.mask.strides);
    while (keys > 0 && mask[keys - 1] == 0) --keys;
    return keys;
  }

  void RunUnpacked(const Block& block, int64_t keys) const {
    const float* k = buffers_.k + d_.k.offset(group_.b, group_.g, 0);
    const float* v = buffers_.v + d_.v.offset(group_.b, group_.g, 0);
    float* dst = buffers_.dst + d_.dst.offset(group_.b, block.n, block.t);
    for (int64_t r = 0; r < block.rows; ++r) {
      float* const scores = scores_ + r * plan_.scores_stride;
      const int64_t scored = KeysBeforeMasked(block, r, keys);
      plan_.kernels->dots(queries_ + r * d_.head_size, k, d_.k.row, scored, d_.head_size, scores);
      std::fill(scores + scored, scores + keys, 0.f);  // the mask's number comes there
    }
    Weigh(block, keys);
    for (int64_t r = 0; r < block.rows; ++r) {
      plan_.kernels->combine(scores_ + r * plan_.scores_stride, v, d_.v.row, keys, d_.value_size,
                             dst + r * RowStride(d_.dst));
    }
  }

  PanelCall<Panel> Call(const GemmPlan& plan, const float* packed, int64_t k) const {
    PanelCall<Panel> call;
    call.isa = plan.isa;
    call.family = plan.family;
    call.panels = plan.panels.data();
    call.end = static_cast<int64_t>(plan.panels.size());
    call.packed = packed;
    call.tap_offsets = plan.tap_offsets.data();
    const int64_t dwords = CeilDiv(k, PerDword(plan.family));
    call.tap_length = plan.tap_offsets.size() > 1 ? kGemmTap : std::max<int64_t>(1, dwords);
    call.taps = dwords / call.tap_length;
    call.tail_length = dwords % call.tap_length;
    call.tail_taps = call.tail_length > 0;
    call.pass_taps = plan.pass_taps;
    // What was packed a moment ago is in L2, unless it is larger.
    call.asks_ahead = plan.packed_bytes > ThisMachine().l2_bytes / 2;
    return call;
  }

  void MultiplyByKeys(const Block& block, int64_t keys) const {
    PanelCall<Panel> call = Call(plan_.scores, keys_, d_.head_size);
    while (call.panels[call.end - 1].first_block * kBlock >= keys) --call.end;
    call.px_stride = plan_.scores.k_dwords;
    const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
      a->epilogue.tensors = plan_.scores.desc.tensors;
      a->dst = scores_ + plan_.scores.panels[g].first_block * kBlock;
      a->epilogue.row_major = 1;
      a->epilogue.valid_lanes = kBlock;
      a->epilogue.dst_step = plan_.scores_stride;
    };
    RunPanels(call, bind, EvenRows(queries_, block.rows, call.px_stride));
  }

  void Weigh(const Block& block, int64_t keys) const {
    AttentionRows rows = {};
    rows.scores = scores_;
    rows.rows = block.rows;
    rows.stride = plan_.scores_stride;
    rows.columns = keys;
    rows.taking_part = d_.causal ? std::min(keys, block.t + 1) : keys;
    rows.growth = d_.causal && !plan_.along_heads;
    rows.soft_cap = d_.soft_cap;
    rows.biases = d_.num_biases;
    rows.late_bias = d_.num_biases - d_.late_biases;
    for (int i = 0; i < d_.num_biases; ++i) {
      const AttentionBias& bias = d_.biases[i];
      rows.bias[i] = buffers_.biases[i] + bias.offset(group_.b, block.n, block.t);
      rows.bias_stride[i] = RowStride(bias.strides);
      rows.bias_step[i] = bias.key_stride;
    }
    if (d_.has_mask) {
      rows.mask = buffers_.mask + d_.mask.offset(group_.b, block.n, block.t);
      rows.mask_stride = RowStride(d_.mask.strides);
      rows.mask_step = d_.mask.key_stride;
      rows.masked = d_.masked;
      rows.zero_masked = d_.zero_masked;
    }
    plan_.kernels->weigh(rows);
  }

  void MultiplyByValues(const Block& block, int64_t keys) const {
    PanelCall<Panel> call = Call(plan_.values, values_, keys);
    call.px_stride = plan_.scores_stride;
    float* dst = buffers_.dst + d_.dst.offset(group_.b, block.n, block.t);
    const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
      const Panel& panel = plan_.values.panels[g];
      const int64_t first = panel.first_block * kBlock;
      a->epilogue.tensors = plan_.values.desc.tensors;
      a->dst = dst + first;
      a->epilogue.row_major = 1;
      a->epilogue.valid_lanes = static_cast<int32_t>(
          std::min(kBlock, d_.value_size - first - (panel.blocks - 1) * kBlock));
      a->epilogue.dst_step = RowStride(d_.dst);
    };
    RunPanels(call, bind, EvenRows(scores_, block.rows, call.px_stride));
  }

  const AttentionPlan& plan_;
  const AttentionDesc& d_;
  const AttentionBuffers& buffers_;
  const Group group_;
  float *keys_, *values_, *rounded_keys_, *queries_, *scores_;
};

void FillWithZeros(const AttentionDesc& d, float* dst) {
  for (int64_t b = 0; b < d.batch; ++b) {
    for (int64_t n = 0; n < d.heads; ++n) {
      for (int64_t t = 0; t < d.queries; ++t) {
        std::fill_n(dst + d.dst.offset(b, n, t), d.value_size, 0.f);
      }
    }
  }
}

}  // namespace

void RunAttention(const AttentionPlan& plan, const AttentionBuffers& buffers, ThreadPool& pool) {
  const AttentionDesc& d = plan.desc;
  if (d.keys == 0) return FillWithZeros(d, buffers.dst);
  const int64_t items = d.batch * d.kv_heads * plan.parts;
  if (plan.packs && plan.parts > 1) {  // once for all parts of a group
    pool.ParallelFor(items, [&](int64_t item, int thread) {
      Worker(plan, buffers, thread, item / plan.parts).PackPart(item % plan.parts);
    });
  }
  pool.ForRanges(items, plan.tasks, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t item = begin; item < end; ++item) {
      Worker(plan, buffers, thread, item / plan.parts).Run(item % plan.parts);
    }
  });
}

}  // namespace bd
