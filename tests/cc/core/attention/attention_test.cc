#include "cc/core/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cc/core/attention/attention_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

TEST(Attention, EverySizeBesideGuardPages) {
  for (Isa isa : TestIsas(Isa::kAvx512Amx)) {
    for (int64_t queries : {1, 2, 5, 13, 14, 15, 31, 49, 65}) {
      for (int64_t keys : {1, 3, 15, 16, 17, 33, 49, 65, 130}) {
        Case c;
        c.queries = queries;
        c.keys = keys;
        ExpectLikeReference(c, isa);
      }
    }
    for (int64_t head_size : {0, 1, 3, 20, 33, 64, 80, 130}) {
      for (int64_t value_size : {1, 3, 8, 15, 16, 20, 40, 96}) {
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
  for (Isa isa : TestIsas(Isa::kAvx512Amx)) {
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
    for (int bits = 0; bits < 8; ++bits) {
      shapes.push_back({sequences, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
    }
  }
  for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
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
      c.zero_masked = shape.heads;
      ExpectLikeReference(c, isa);
    }
  }
}

TEST(Attention, CapsScoresAndAddsBiasesBehindTheMask) {
  for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
    for (int late : {0, 1, 2}) {
      for (int64_t queries : {2, 21}) {
        Case c;
        c.batch = 3;
        c.order = Order::kRowsFirst;
        c.queries = queries;
        c.keys = 35;
        c.soft_cap = late == 1 ? 0.f : 2.f;
        c.masked = -2.f;  // which a bias after it moves
        c.biases = {{1, true, true}, {3, false, true}};
        c.mask = {{3, false, false}};
        c.late_biases = late;
        ExpectLikeReference(c, isa);
        c.causal = true;
        ExpectLikeReference(c, isa);
      }
    }
  }
}

TEST(Attention, HeadsShareKeys) {
  for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
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
  for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
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
  for (Isa isa : TestIsas(Isa::kAvx512Amx)) {
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

TEST(Attention, EmptyTensors) {
  for (int64_t Case::*empty : {&Case::batch, &Case::queries, &Case::keys, &Case::value_size}) {
    Case c;
    c.*empty = 0;
    Tensors tensors(c);
    for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
      tensors.dst.Fill(1.f);
      tensors.Run(isa, 1);
      for (float x : tensors.dst) EXPECT_EQ(x, 0.f) << IsaName(isa);
    }
  }
}

TEST(Attention, BadSizes) {
  AttentionPlan plan;
  const auto error = [&](const Case& c) {
    return MakeAttentionPlan(c.Desc(), Isa::kGeneric, 1, &plan);
  };
  Case c;
  c.queries = -1;
  EXPECT_EQ(error(c),
            "attention of -1 queries to 5 keys: sizes must not be negative, nor too large");
  c = Case();
  c.heads = 5;
  EXPECT_EQ(error(c), "attention: 5 heads are no multiple of the 2 heads of keys and values");
  c = Case();
  c.batch = 3;
  c.biases = {{2, false, false}};
  EXPECT_EQ(error(c),
            "attention: the sequences of a bias or mask must divide the 3 of the queries");
  c = Case();
  c.late_biases = 1;
  EXPECT_EQ(error(c), "attention: 1 late biases are not among its 0");
  for (float cap : {-1.f, NAN, INFINITY}) {
    c = Case();
    c.soft_cap = cap;
    EXPECT_EQ(error(c), "attention: soft_cap must be positive, or 0 for none");
  }
  c = Case();
  c.keys = int64_t{1} << 40;
  EXPECT_EQ(
      error(c),
      "attention of 5 queries to 1099511627776 keys: sizes must not be negative, nor too large");
}

}  // namespace
}  // namespace bd
