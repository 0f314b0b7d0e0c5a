// An attention, its tensors beside pages without access, and what it must give.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cc/core/attention/attention.h"
#include "tests/cc/convert_ref.h"
#include "tests/cc/core/attention/attention_ref.h"
#include "tests/cc/guarded_buffer.h"

namespace bd {

enum class Order {
  kHeadsLast,
  kHeadsFirst,
  kRowsFirst
};  // [B, T, N, H], [B, N, T, H], [T, B, N, H]

inline AttentionStrides Dense(Order order, int64_t batch, int64_t heads, int64_t rows,
                              int64_t size) {
  if (order == Order::kRowsFirst) return {heads * size, size, batch * heads * size};
  if (order == Order::kHeadsFirst) return {heads * rows * size, rows * size, size};
  return {heads * rows * size, size, heads * size};
}

// Which of the dimensions a bias or mask has.
struct Broadcast {
  int64_t sequences = 1;
  bool heads = false, rows = false, keys = true;
};

struct Case {
  int64_t batch = 1, heads = 2, kv_heads = 2, queries = 5, keys = 5, head_size = 8, value_size = 8;
  Order order = Order::kHeadsLast;
  bool causal = false;
  std::vector<Broadcast> biases;
  std::vector<Broadcast> mask;  // one at most
  float masked = -1e9f, soft_cap = 0.f;
  bool zero_masked = false;
  int late_biases = 0;
  bool rounds = false;

  std::string Name(Isa isa) const {
    std::string name = IsaName(isa);
    for (int64_t size : {batch, heads, kv_heads, queries, keys, head_size, value_size}) {
      name += " " + std::to_string(size);
    }
    const char* orders[] = {" BTNH", " BNTH", " TBNH"};
    return name + orders[static_cast<int>(order)] + (causal ? " causal " : " ") +
           std::to_string(biases.size()) + " biases, late " + std::to_string(late_biases) +
           (soft_cap > 0.f ? ", capped" : "") + (mask.empty() ? "" : ", mask") +
           (rounds ? ", rounded" : "");
  }

  AttentionBias Bias(const Broadcast& b) const {
    AttentionBias bias;
    bias.sequences = b.sequences;
    const int64_t rows = b.rows ? queries : 1, of_heads = b.heads ? heads : 1;
    const int64_t row = b.keys ? keys : 1;
    bias.strides = {of_heads * rows * row, b.heads ? rows * row : 0, b.rows ? row : 0};
    bias.key_stride = b.keys;
    return bias;
  }
  int64_t BiasSize(const Broadcast& b) const {
    return b.sequences * (b.heads ? heads : 1) * (b.rows ? queries : 1) * (b.keys ? keys : 1);
  }

  AttentionDesc Desc() const {
    AttentionDesc d;
    d.batch = batch;
    d.heads = heads;
    d.kv_heads = kv_heads;
    d.queries = queries;
    d.keys = keys;
    d.head_size = head_size;
    d.value_size = value_size;
    d.q = Dense(order, batch, heads, queries, head_size);
    d.k = Dense(order, batch, kv_heads, keys, head_size);
    d.v = Dense(order, batch, kv_heads, keys, value_size);
    d.dst = Dense(order, batch, heads, queries, value_size);
    d.soft_cap = soft_cap;
    d.late_biases = late_biases;
    d.scale = 0.25f;
    d.causal = causal;
    d.num_biases = static_cast<int>(biases.size());
    for (int i = 0; i < d.num_biases; ++i) d.biases[i] = Bias(biases[i]);
    d.has_mask = !mask.empty();
    if (d.has_mask) d.mask = Bias(mask[0]);
    d.masked = masked;
    d.zero_masked = zero_masked;
    d.rounds = rounds;
    return d;
  }
};

// All tensors of a case, each beside a page without access.
struct Tensors {
  explicit Tensors(const Case& c, GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd)
      : c(c),
        q(c.batch * c.queries * c.heads * c.head_size, guard),
        k(c.batch * c.keys * c.kv_heads * c.head_size, guard),
        v(c.batch * c.keys * c.kv_heads * c.value_size, guard),
        dst(c.batch * c.queries * c.heads * c.value_size, guard),
        mask_memory(c.mask.empty() ? 0 : (c.BiasSize(c.mask[0]) + 3) / 4) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0.f, 1.f);
    for (GuardedBuffer* tensor : {&q, &k, &v}) {
      for (float& x : *tensor) {
        x = normal(random);
        if (c.rounds) x = Decode(kBfloat16, Encode(kBfloat16, x));  // which is then exact
      }
    }
    for (const Broadcast& b : c.biases) {
      biases.push_back(std::make_unique<GuardedBuffer>(c.BiasSize(b), guard));
      for (float& x : *biases.back()) x = normal(random);
    }
    if (!c.mask.empty()) {
      const int64_t bytes = c.BiasSize(c.mask[0]);
      mask = reinterpret_cast<uint8_t*>(mask_memory.end()) - bytes;
      for (int64_t i = 0; i < bytes; ++i) mask[i] = random() % 3 != 0;
    }
  }

  AttentionBuffers Buffers(float* to) {
    AttentionBuffers buffers;
    buffers.q = q.data();
    buffers.k = k.data();
    buffers.v = v.data();
    for (size_t i = 0; i < biases.size(); ++i) buffers.biases[i] = biases[i]->data();
    buffers.mask = mask;
    buffers.dst = to;
    return buffers;
  }

  void Run(Isa isa, int threads) {
    AttentionPlan plan;
    ASSERT_EQ(MakeAttentionPlan(c.Desc(), isa, threads, &plan), "");
    GuardedBuffer scratch(static_cast<int64_t>(plan.scratch.bytes() / sizeof(float)));
    AttentionBuffers buffers = Buffers(dst.data());
    buffers.scratch = scratch.data();
    RunAttention(plan, buffers, ThreadPool::Shared(threads));
  }

  // Whether dst is the definition's, with its NaNs and infinities.
  void ExpectLikeReference(double most = 6e-6) {
    std::vector<float> expected(dst.size());
    AttentionRef(c.Desc(), Buffers(expected.data()));
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::isfinite(expected[i])) {
        ASSERT_NEAR(dst[i], expected[i], most) << "element " << i;
      } else if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(dst[i])) << "element " << i << " is " << dst[i];
      } else {
        ASSERT_EQ(dst[i], expected[i]) << "element " << i;
      }
    }
  }

  Case c;
  GuardedBuffer q, k, v, dst;
  std::vector<std::unique_ptr<GuardedBuffer>> biases;
  GuardedBuffer mask_memory;
  uint8_t* mask = nullptr;
};

// Weights are within some 20 units of 2^-24 of theirs (the scores of these tensors are below 10),
// and add up to 1. Rounded ones are within 2^-8 of themselves.
inline void ExpectLikeReference(Case c, Isa isa, int threads = 1) {
  for (bool rounds : {false, true}) {
    c.rounds = rounds;
    SCOPED_TRACE(c.Name(isa));
    for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
      Tensors tensors(c, guard);
      tensors.Run(isa, threads);
      float largest = 0.f;
      for (float v : tensors.v) largest = std::max(largest, std::fabs(v));
      tensors.ExpectLikeReference(6e-6 + (rounds ? 0x1p-8 * largest : 0.));
    }
  }
}

}  // namespace bd
