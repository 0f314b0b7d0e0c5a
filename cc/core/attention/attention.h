// Scaled dot-product attention of many heads, with masks of every kind, as one primitive.
//
//   score[s] = scale * sum_h q[b][n][t][h] k[b][g][s][h]
//   score[s] = soft_cap * tanh(score[s] / soft_cap), with a soft cap
//   score[s] = score[s] + biases[..][b][n][t][s]
//   score[s] = masked value, where the mask is false
//   score[s] = score[s] + late biases[..][b][n][t][s]
//   weight   = softmax of score over s; 0, with zero_masked, where the mask is false
//   dst[b][n][t][h] = sum_s weight[s] v[b][g][s][h]
//
// b counts sequences, n heads, t queries, s keys; g = n / (heads / kv_heads), so that several heads
// may share keys and values (grouped-query attention). With `causal` only keys s <= t take part.
//
//   AttentionDesc -> MakeAttentionPlan -> AttentionPlan (immutable) -> RunAttention
//
// In IEEE arithmetic as the formula says: softmax subtracts the largest score; a row of nothing but
// -inf, with a NaN or with +inf is all NaN. A row that is masked by a finite number alone is what
// the formula makes of it: the mean of all values, or nearly. Keys that `causal` leaves out have
// the weight 0 whatever they hold, as long as their values are finite. Without keys dst is zero.
//
// With `rounds` q times its scale, k, weights and v are rounded to bfloat16 before they are
// multiplied, where keys and values are packed; sums and all between them are float32.
//
//   attention_plan.cc     checks, rows of a block, how the work is cut
//   attention_driver.cc   packs keys and values of a head, multiplies, weighs, multiplies
//   attention_kernel.cc   scores to weights; the products run on the tiles of cc/core/gemm
//
// tests/cc/core/attention/attention_ref.h has the definition, in double.
#pragma once

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/attention/attention_kernel.h"
#include "cc/core/gemm/gemm.h"

namespace bd {

// Where the rows of a tensor lie, in elements; elements of a row are neighbours. So [B, T, N, H],
// [B, N, T, H] and [T, B, N, H] are all read as they are.
struct AttentionStrides {
  int64_t sequence = 0, head = 0, row = 0;
  int64_t first = 0;  // the element of sequence 0, head 0, row 0

  int64_t offset(int64_t b, int64_t n, int64_t t) const {
    return first + b * sequence + n * head + t * row;
  }
};

// A bias or mask. A stride is 0 where it is the same for all. The `sequences` it has are met again
// and again: 1, all, or a divisor (windows of pictures).
struct AttentionBias {
  int64_t sequences = 1;
  AttentionStrides strides;
  int64_t key_stride = 1;  // or 0: one number for all keys

  int64_t offset(int64_t b, int64_t n, int64_t t) const {
    return strides.offset(b % sequences, n, t);
  }
};

struct AttentionDesc {
  int64_t batch = 0, heads = 1, kv_heads = 1;
  int64_t queries = 0, keys = 0;
  int64_t head_size = 0, value_size = 0;
  AttentionStrides q, k, v, dst;
  float scale = 1.f;
  float soft_cap = 0.f;  // 0: none
  bool causal = false;
  int num_biases = 0;
  AttentionBias biases[kMaxAttentionBiases];
  int late_biases = 0;  // the last so many of them
  bool has_mask = false;
  AttentionBias mask;
  float masked = 0.f;
  bool zero_masked = false;
  bool rounds = false;
};

// Immutable once made; safe to run on many threads.
struct AttentionPlan {
  AttentionDesc desc;
  Isa isa = Isa::kGeneric;
  const AttentionKernels* kernels = nullptr;
  GemmPlan scores, values;    // the keys, 16 columns a block; the values
  int64_t scores_stride = 0;  // floats of a row of scores
  bool packs = true;          // keys and values, for more than few queries
  bool rounds = false;        // what is multiplied is bfloat16
  bool along_heads = false;   // rows of a block are heads of one query, not queries of one head
  int64_t lines = 0;          // of a group of heads: blocks do not cross them
  int64_t line_rows = 0;      // rows of a line
  int64_t line_blocks = 0;    // and how many blocks they are
  int64_t parts = 1;          // tasks that share a group of heads, and what is packed of it
  int64_t tasks = 0;

  ScratchPiece<float> packed_keys, packed_values;  // of a group, for each; or for each thread
  ScratchPiece<float> rounded_keys;                // of a panel, for each thread
  ScratchPiece<float> query_rows, score_rows;      // of a block, for each thread
  ScratchBook scratch;
};

// Returns an empty string, or one line that names what is wrong: a negative size, heads that are
// no multiple of kv_heads, a soft cap that is negative or not finite, more biases than are
// possible, more late ones than biases, or a bias whose sequences do not divide the batch.
std::string MakeAttentionPlan(const AttentionDesc& desc, Isa isa, int threads, AttentionPlan* plan);

struct AttentionBuffers {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* biases[kMaxAttentionBiases] = {};
  const uint8_t* mask = nullptr;
  float* dst = nullptr;
  void* scratch = nullptr;  // plan.scratch.bytes()
};

// `pool` must have no more threads than the plan was made for.
void RunAttention(const AttentionPlan& plan, const AttentionBuffers& buffers, ThreadPool& pool);

}  // namespace bd
