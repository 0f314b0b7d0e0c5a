#include "cc/core/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

enum class Order { kHeadsLast, kHeadsFirst };  // [B, T, N, H] or [B, N, T, H]

AttentionStrides Dense(Order order, int64_t heads, int64_t rows, int64_t size) {
  if (order == Order::kHeadsFirst) return {heads * rows * size, rows * size, size};
  return {heads * rows * size, size, heads * size};
}

// Which of the dimensions a bias or mask has.
struct Broadcast {
  int64_t sequences = 1;
  bool heads = false, rows = false;
};

struct Case {
  int64_t batch = 1, heads = 2, kv_heads = 2, queries = 5, keys = 5, head_size = 8, value_size = 8;
  Order order = Order::kHeadsLast;
  bool causal = false;
  std::vector<Broadcast> biases;
  std::vector<Broadcast> mask;  // one at most
  float masked = -1e9f;

  std::string Name(Isa isa) const {
    std::string name = IsaName(isa);
    for (int64_t size : {batch, heads, kv_heads, queries, keys, head_size, value_size}) {
      name += " " + std::to_string(size);
    }
    return name + (order == Order::kHeadsFirst ? " BNTH" : " BTNH") + (causal ? " causal" : "") +
           " " + std::to_string(biases.size()) + " biases" + (mask.empty() ? "" : " mask");
  }

  AttentionBias Bias(const Broadcast& b) const {
    AttentionBias bias;
    bias.sequences = b.sequences;
    const int64_t rows = b.rows ? queries : 1, of_heads = b.heads ? heads : 1;
    bias.strides = {of_heads * rows * keys, b.heads ? rows * keys : 0, b.rows ? keys : 0};
    return bias;
  }
  int64_t BiasSize(const Broadcast& b) const {
    return b.sequences * (b.heads ? heads : 1) * (b.rows ? queries : 1) * keys;
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
    d.q = Dense(order, heads, queries, head_size);
    d.k = Dense(order, kv_heads, keys, head_size);
    d.v = Dense(order, kv_heads, keys, value_size);
    d.dst = Dense(order, heads, queries, value_size);
    d.scale = 0.25f;
    d.causal = causal;
    d.num_biases = static_cast<int>(biases.size());
    for (int i = 0; i < d.num_biases; ++i) d.biases[i] = Bias(biases[i]);
    d.has_mask = !mask.empty();
    if (d.has_mask) d.mask = Bias(mask[0]);
    d.masked = masked;
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
      for (float& x : *tensor) x = normal(random);
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

  std::vector<float> Expected() {
    std::vector<float> expected(dst.size());
    AttentionRef(c.Desc(), Buffers(expected.data()));
    return expected;
  }

  Case c;
  GuardedBuffer q, k, v, dst;
  std::vector<std::unique_ptr<GuardedBuffer>> biases;
  GuardedBuffer mask_memory;
  uint8_t* mask = nullptr;
};

// Weights are within some 20 units of 2^-24 of theirs (the scores of these tensors are below 10),
// and add up to 1.
void ExpectLikeReference(const Case& c, Isa isa, int threads = 1) {
  SCOPED_TRACE(c.Name(isa));
  for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
    Tensors tensors(c, guard);
    tensors.Run(isa, threads);
    const std::vector<float> expected = tensors.Expected();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(tensors.dst[i], expected[i], 6e-6) << "element " << i;
    }
  }
}

TEST(Attention, EverySizeBesideGuardPages) {
  for (Isa isa : TestIsas()) {
    for (int64_t queries : {1, 2, 5, 13, 14, 15, 31, 49, 65}) {
      for (int64_t keys : {1, 3, 15, 16, 17, 33, 49, 65, 130}) {
        Case c;
        c.queries = queries;
        c.keys = keys;
        ExpectLikeReference(c, isa);
      }
    }
    for (int64_t head_size : {0, 1, 7, 16, 33, 64, 65, 130}) {
      for (int64_t value_size : {1, 8, 15, 16, 17, 40, 64, 65}) {
        Case c;
        c.queries = 17;
        c.keys = 19;
        c.head_size = head_size;
        c.value_size = value_size;
        c.order = value_size % 2 ? Order::kHeadsFirst : Order::kHeadsLast;
        ExpectLikeReference(c, isa);
      }
    }
  }
}

TEST(Attention, LongRows) {
  for (Isa isa : TestIsas()) {
    for (int64_t keys : {500, 1500, 4096}) {
      Case c;
      c.heads = c.kv_heads = 1;
      c.queries = keys == 4096 ? 3 : 40;
      c.keys = keys;
      c.head_size = 24;
      c.causal = keys == 500;
      ExpectLikeReference(c, isa);
    }
  }
}

TEST(Attention, BiasesAndMasksOfEveryShape) {
  std::vector<Broadcast> shapes;
  for (int64_t sequences : {1, 2, 4}) {
    for (int bits = 0; bits < 4; ++bits) {
      shapes.push_back({sequences, (bits & 1) != 0, (bits & 2) != 0});
    }
  }
  for (Isa isa : TestIsas()) {
    for (const Broadcast& shape : shapes) {
      Case c;
      c.batch = 4;
      c.queries = 18;
      c.keys = 37;
      c.biases = {shape};
      ExpectLikeReference(c, isa);
      c.mask = {shape};
      ExpectLikeReference(c, isa);
      c.biases = {{1, true, true}, shape};
      c.causal = true;
      ExpectLikeReference(c, isa);
    }
  }
}

TEST(Attention, HeadsShareKeys) {
  for (Isa isa : TestIsas()) {
    for (int64_t kv_heads : {1, 2, 6}) {
      for (int64_t queries : {1, 2, 7, 50}) {  // rows of a block are heads, or queries
        for (bool causal : {false, true}) {
          Case c;
          c.batch = 2;
          c.heads = 6;
          c.kv_heads = kv_heads;
          c.queries = queries;
          c.keys = 21;
          c.causal = causal;
          c.biases = {{2, true, true}};
          c.mask = {{2, false, true}};
          c.order = causal ? Order::kHeadsFirst : Order::kHeadsLast;
          ExpectLikeReference(c, isa);
        }
      }
    }
  }
}

TEST(Attention, CausalQueriesBeforeAndBehindTheLastKey) {
  for (Isa isa : TestIsas()) {
    for (int64_t queries : {1, 20, 64, 90}) {
      for (int64_t keys : {1, 20, 64, 90}) {
        Case c;
        c.queries = queries;
        c.keys = keys;
        c.causal = true;
        ExpectLikeReference(c, isa);
      }
    }
  }
}

// Enough work for several tasks of each group; the result is that of one thread, bit by bit.
TEST(Attention, ManyTasks) {
  for (Isa isa : TestIsas()) {
    for (int64_t kv_heads : {1, 4}) {
      Case c;
      c.heads = 4;
      c.kv_heads = kv_heads;
      c.queries = 150;
      c.keys = 200;
      c.head_size = c.value_size = 64;
      c.causal = true;
      AttentionPlan plan;
      ASSERT_EQ(MakeAttentionPlan(c.Desc(), isa, 2, &plan), "");
      EXPECT_GT(plan.tasks, 2);
      EXPECT_EQ(plan.parts > 1, kv_heads == 1);
      ExpectLikeReference(c, isa, 2);
      Tensors one(c), two(c);
      one.Run(isa, 1);
      two.Run(isa, 2);
      EXPECT_EQ(memcmp(one.dst.data(), two.dst.data(), one.dst.size() * sizeof(float)), 0);
    }
  }
}

// Small integers and equal scores: the weights are 1 / 16 exactly.
TEST(Attention, EqualScoresGiveTheMeanExactly) {
  for (Isa isa : TestIsas()) {
    Case c;
    c.queries = 20;
    c.keys = 16;
    Tensors tensors(c);
    tensors.q.Fill(0.f);
    tensors.v.FillIntegers();
    tensors.Run(isa, 1);
    for (int64_t t = 0; t < c.queries; ++t) {
      for (int64_t i = 0; i < c.heads * c.value_size; ++i) {
        float sum = 0.f;
        for (int64_t s = 0; s < c.keys; ++s) sum += tensors.v[s * c.heads * c.value_size + i];
        ASSERT_EQ(tensors.dst[t * c.heads * c.value_size + i], sum / 16.f) << IsaName(isa);
      }
    }
  }
}

// A row whose keys are all masked: by a finite number it is the mean; by -inf it is NaN.
TEST(Attention, FullyMaskedRows) {
  for (Isa isa : TestIsas()) {
    for (float masked : {-1e9f, std::numeric_limits<float>::lowest(), -100.f, -kInf}) {
      Case c;
      c.keys = 37;
      c.mask = {{1, false, true}};
      c.masked = masked;
      Tensors tensors(c);
      memset(tensors.mask + c.keys, 0, c.keys);  // of query 1
      for (int64_t t = 0; t < c.queries; ++t) tensors.mask[t * c.keys + 3] = t != 1;
      tensors.Run(isa, 1);
      const std::vector<float> expected = tensors.Expected();
      const int64_t row = c.heads * c.value_size;
      for (int64_t i = 0; i < c.queries * row; ++i) {
        ASSERT_EQ(std::isnan(expected[i]), i / row == 1 && masked == -kInf);
        if (std::isnan(expected[i])) {
          ASSERT_TRUE(std::isnan(tensors.dst[i])) << IsaName(isa);
        } else {
          ASSERT_NEAR(tensors.dst[i], expected[i], 6e-6) << IsaName(isa) << " " << masked;
        }
      }
    }
  }
}

// Wherever one stands: what is NaN is what the formula makes NaN. In the tails of all sizes.
TEST(Attention, NansAndInfinities) {
  for (Isa isa : TestIsas()) {
    for (int64_t size : {7, 17}) {
      Case c;
      c.heads = c.kv_heads = 1;
      c.queries = c.keys = c.head_size = c.value_size = size;
      c.biases = {{1, false, true}};
      c.mask = {{1, false, false}};
      for (float special : {kNan, kInf, -kInf}) {
        for (int tensor = 0; tensor < 4; ++tensor) {
          for (int64_t at : {int64_t{0}, size + 1, size * size - 1}) {
            Tensors tensors(c);
            memset(tensors.mask, 1, size);
            tensors.mask[1] = 0;
            GuardedBuffer* all[] = {&tensors.q, &tensors.k, &tensors.v, tensors.biases[0].get()};
            (*all[tensor])[at] = special;
            tensors.Run(isa, 1);
            const std::vector<float> expected = tensors.Expected();
            for (size_t i = 0; i < expected.size(); ++i) {
              SCOPED_TRACE(c.Name(isa) + " tensor " + std::to_string(tensor) + " at " +
                           std::to_string(at) + " element " + std::to_string(i));
              ASSERT_EQ(std::isnan(tensors.dst[i]), std::isnan(expected[i]));
              if (std::isinf(expected[i])) ASSERT_EQ(tensors.dst[i], expected[i]);
              if (std::isfinite(expected[i])) ASSERT_NEAR(tensors.dst[i], expected[i], 6e-6);
            }
          }
        }
      }
    }
  }
}

// Values next to the largest float: weights are normalised before they meet them.
TEST(Attention, LargeValuesAndScores) {
  for (Isa isa : TestIsas()) {
    Case c;
    c.keys = 100;
    Tensors tensors(c);
    tensors.v.Fill(3e38f);
    tensors.q.Fill(1e4f);
    tensors.Run(isa, 1);
    for (float x : tensors.dst) ASSERT_NEAR(x / 3e38f, 1.f, 1e-5f) << IsaName(isa);
  }
}

TEST(Attention, EmptyTensors) {
  for (int64_t Case::*empty : {&Case::batch, &Case::queries, &Case::keys, &Case::value_size}) {
    Case c;
    c.*empty = 0;
    Tensors tensors(c);
    tensors.Run(Isa::kGeneric, 1);
    for (float x : tensors.dst) EXPECT_EQ(x, 0.f);
  }
}

TEST(Attention, BadSizes) {
  AttentionPlan plan;
  const auto error = [&](const Case& c) {
    return MakeAttentionPlan(c.Desc(), Isa::kGeneric, 1, &plan);
  };
  Case c;
  c.queries = -1;
  EXPECT_EQ(error(c), "attention: sizes must not be negative");
  c = Case();
  c.heads = 5;
  EXPECT_EQ(error(c), "attention: 5 heads are no multiple of the 2 heads of keys and values");
  c = Case();
  c.batch = 3;
  c.biases = {{2, false, false}};
  EXPECT_EQ(error(c),
            "attention: the sequences of a bias or mask must divide the 3 of the queries");
  c = Case();
  c.keys = int64_t{1} << 40;
  EXPECT_EQ(error(c), "attention: 1099511627776 keys are more than 2147483648");
}

}  // namespace
}  // namespace bd
