#include <algorithm>
#include <cmath>
#include <utility>

#include "cc/base/machine.h"
#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/attention/attention.h"

namespace bd {
namespace {

// Scores of a block stay in L1 beside a panel where two tiles of rows allow it, and else in a half
// of L2.
constexpr int64_t kL1ScoresBytes = 24 << 10;
// A task of less than some 20 us is not worth a thread (thread_pool.h): about so many products; of
// few rows, which wait for keys and values, half as long, with so much of these.
constexpr int64_t kTaskProducts = 1 << 20, kTaskBytes = 128 << 10;
// Of many threads one that wakes late leaves its part to many others: a fourth is worth it.
constexpr int kManyThreads = 8;
// Tasks for each thread, so that one that is held up costs little. More of them pack more.
constexpr int64_t kTasksPerThread = 2;
// Fewer rows that share keys do not pay for packing them.
constexpr int64_t kFewestPackedRows = 4;

std::string Check(const AttentionDesc& d) {
  const auto size = [&](int64_t heads, int64_t rows) {
    Size product = Size(d.head_size) + d.value_size + 1;
    for (int64_t by : {d.batch, heads, rows}) product = product * (by == 0 ? 1 : by);
    return product * sizeof(float);
  };
  if (!size(d.heads, d.queries).fits() || !size(d.kv_heads, d.keys).fits()) {
    return StrCat("attention of ", d.queries, " queries to ", d.keys,
                  " keys: sizes must not be negative, nor too large");
  }
  if (d.heads > 0 && (d.kv_heads == 0 || d.heads % d.kv_heads != 0)) {
    return StrCat("attention: ", d.heads, " heads are no multiple of the ", d.kv_heads,
                  " heads of keys and values");
  }
  if (d.num_biases < 0 || d.num_biases > kMaxAttentionBiases) {
    return StrCat("attention adds at most ", kMaxAttentionBiases, " biases, not ", d.num_biases);
  }
  if (d.late_biases < 0 || d.late_biases > d.num_biases) {
    return StrCat("attention: ", d.late_biases, " late biases are not among its ", d.num_biases);
  }
  if (!std::isfinite(d.soft_cap) || d.soft_cap < 0.f) {
    return "attention: soft_cap must be positive, or 0 for none";
  }
  const auto fits = [&](const AttentionBias& bias) {
    return bias.sequences > 0 && d.batch % bias.sequences == 0;
  };
  if (!std::all_of(d.biases, d.biases + d.num_biases, fits) || (d.has_mask && !fits(d.mask))) {
    return StrCat("attention: the sequences of a bias or mask must divide the ", d.batch,
                  " of the queries");
  }
  return "";
}

// Rows of scores of a block, whole tiles of them.
int64_t MostRows(const AttentionPlan& p) {
  const int64_t tile = RowsTogether(p.isa, p.scores.family, p.scores.panels[0].blocks);
  const int64_t row_bytes = p.scores_stride * static_cast<int64_t>(sizeof(float));
  const int64_t tiles = std::max<int64_t>(2, kL1ScoresBytes / row_bytes / tile);
  const int64_t within_l2 = ThisMachine().l2_bytes / 2 / row_bytes / tile;
  return tile * std::clamp<int64_t>(within_l2, 1, tiles);
}

}  // namespace

std::string MakeAttentionPlan(const AttentionDesc& desc, Isa isa, int threads,
                              AttentionPlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  AttentionPlan p;
  p.desc = desc;
  p.isa = isa;
  p.kernels = &AttentionKernelsFor(isa);
  const AttentionDesc& d = p.desc;
  const bool empty = d.batch == 0 || d.heads == 0 || d.queries == 0 || d.value_size == 0;
  if (empty || d.keys == 0) {
    *plan = std::move(p);
    return "";
  }
  // Columns after the last key are computed and not read, so that all blocks are whole.
  const int64_t key_blocks = CeilDiv(d.keys, kBlock);
  const int64_t group = d.heads / d.kv_heads;
  p.packs = group * d.queries >= kFewestPackedRows;
  p.rounds = d.rounds && p.packs;
  GemmDesc scores, values;
  scores.k = d.head_size;
  scores.n = key_blocks * kBlock;
  values.k = d.keys;
  values.n = d.value_size;
  for (GemmDesc* product : {&scores, &values}) {
    product->a = product->b = p.rounds ? DataType::bf16 : DataType::f32;
  }
  std::string error = MakeGemmPlan(scores, isa, &p.scores);
  if (error.empty()) error = MakeGemmPlan(values, isa, &p.values);
  if (!error.empty()) return error;
  // Rows an odd number of lines apart do not share sets of the cache.
  p.scores_stride = (key_blocks | 1) * kBlock;

  p.along_heads = d.queries < group;
  p.lines = p.along_heads ? d.queries : group;
  p.line_rows = p.along_heads ? group : d.queries;
  p.line_blocks = CeilDiv(p.line_rows, MostRows(p));
  const int64_t groups = d.batch * d.kv_heads, blocks = p.lines * p.line_blocks;
  const double products =
      static_cast<double>(d.batch) * d.heads * d.queries * d.keys * (d.head_size + d.value_size);
  const double read = static_cast<double>(groups) * d.keys * (d.head_size + d.value_size) * 4;
  const double of_task = threads > kManyThreads ? kTaskProducts / 4 : kTaskProducts;
  const double wanted = std::max(products / of_task, p.packs ? 0. : read / kTaskBytes);
  const int64_t useful =
      static_cast<int64_t>(std::clamp(wanted, 1., static_cast<double>(kTasksPerThread * threads)));
  p.parts = std::min(blocks, CeilDiv(useful, groups));
  p.tasks = useful == 1 ? 1 : groups * p.parts;

  const int64_t rows = CeilDiv(p.line_rows, p.line_blocks);
  const auto floats = [](const GemmPlan& gemm) {
    return gemm.packed_bytes / static_cast<int64_t>(sizeof(float));
  };
  if (p.packs) {
    // Where groups are fewer than tasks, their parts share what is packed.
    const int64_t copies = p.parts > 1 ? groups : threads;
    p.packed_keys = p.scratch.Book<float>("packed keys", floats(p.scores), copies);
    p.packed_values = p.scratch.Book<float>("packed values", floats(p.values), copies);
  }
  if (p.rounds) {
    const int64_t columns = p.scores.panels[0].blocks * kBlock;
    p.rounded_keys = p.scratch.Book<float>("keys", columns * p.scores.k_dwords, threads);
  }
  p.query_rows = p.scratch.Book<float>("queries", rows * d.head_size, threads);
  p.score_rows = p.scratch.Book<float>("scores", rows * p.scores_stride, threads);
  *plan = std::move(p);
  return plan->scratch.Check();
}

}  // namespace bd
