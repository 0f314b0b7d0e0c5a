// A reorder compared with its definition, on every ISA.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "cc/base/threads/thread_pool.h"
#include "cc/core/reorder/reorder.h"
#include "tests/cc/convert_ref.h"
#include "tests/cc/core/reorder/reorder_ref.h"
#include "tests/cc/guarded_array.h"
#include "tests/cc/isas.h"
#include "tests/cc/layouts.h"

namespace bd {
namespace {

constexpr DataType kF32 = DataType::f32;

// The memory of a tensor between guard pages, every byte 0xff to begin with: NaN as
// float32, bfloat16 and float16.
struct Memory : GuardedArray {
  explicit Memory(const TensorDesc& desc, GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd)
      : GuardedArray(desc.size_bytes(), guard, 0xff) {}
  char* data() { return As<char>(); }
};

// Sets the elements of a tensor, not its tail, to value(i), i counting in row-major
// order.
template <typename Value>
void Fill(const TensorDesc& desc, Memory* memory, Value value) {
  int64_t i = 0;
  ForIndices(desc.dims(), [&](const Dims& index) {
    StoreFloatRef(desc.dtype(), value(i++), memory->data(), desc.OffsetOf(index.data()));
  });
}

inline float SmallInteger(int64_t i) { return static_cast<float>(i * 7 % 251 - 125); }

// What saturates, lies between two numbers, or is none.
inline float Extreme(int64_t i) {
  constexpr float kValues[] = {0.5f,    1.5f,    -2.5f,  126.5f,     127.5f,     -128.5f,
                               254.5f,  255.5f,  -0.5f,  2.1e9f,     2.2e9f,     -2.2e9f,
                               65519.f, 65521.f, 1e-7f,  3.3e38f,    INFINITY,   -INFINITY,
                               NAN,     -0.f,    1e-39f, 16777217.f, 1.00390625f};
  return kValues[i % std::size(kValues)];
}

std::string Describe(const ReorderDesc& d) {
  return d.src.ToString() + " to " + d.dst.ToString() + ", " + std::to_string(d.scales.size()) +
         " scales of mask " + std::to_string(d.scale_mask) + ", beta " + std::to_string(d.beta);
}

class Reorder : public testing::TestWithParam<Isa> {
 protected:
  ReorderPlan Plan(const ReorderDesc& desc) {
    ReorderPlan plan;
    EXPECT_EQ(MakeReorderPlan(desc, GetParam(), &plan), "");
    return plan;
  }

  // Bitwise the reference, every byte of dst, over guarded memory full of garbage.
  template <typename Value>
  void ExpectLikeReference(const ReorderDesc& desc, Value value,
                           GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd) {
    SCOPED_TRACE(Describe(desc));
    Memory src(desc.src, guard), dst(desc.dst, guard), expected(desc.dst);
    Fill(desc.src, &src, value);
    if (desc.beta != 0) {
      for (Memory* memory : {&dst, &expected}) Fill(desc.dst, memory, SmallInteger);
    }
    RunReorder(Plan(desc), src.data(), dst.data(), pool_);
    ReorderRef(desc, src.data(), expected.data());
    const int64_t bytes = SizeOf(desc.dst.dtype());
    for (int64_t i = 0; i < dst.bytes(); i += bytes) {
      ASSERT_EQ(memcmp(dst.data() + i, expected.data() + i, bytes), 0)
          << "element " << i / bytes << " is "
          << LoadAsFloatRef(desc.dst.dtype(), dst.data(), i / bytes) << ", not "
          << LoadAsFloatRef(desc.dst.dtype(), expected.data(), i / bytes);
    }
  }

  ThreadPool pool_{3};
};
INSTANTIATE_TEST_SUITE_P(Isas, Reorder, testing::ValuesIn(TestIsas()), IsaParam);

}  // namespace
}  // namespace bd
