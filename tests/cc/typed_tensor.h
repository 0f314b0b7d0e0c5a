// A tensor as floats, and the same one stored as another type, both in guarded memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "cc/core/reorder/reorder.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/layouts.h"

namespace bd {

// What tests of types loop over.
const ElementType kElementTypes[] = {{DataType::f32, {}},
                                     {DataType::bf16, {}},
                                     {DataType::u8, {0.5f, 3}},
                                     {DataType::s8, {0.25f, -7}}};

class TypedTensor {
 public:
  // `floats` describes it as float32. It holds numbers that the type has, in tails zeros.
  TypedTensor(const TensorView& floats, const ElementType& type, Isa isa, ThreadPool& pool)
      : type_(type),
        isa_(isa),
        pool_(pool),
        float_view_(floats),
        view_(type.dtype, floats.layout(), floats.dims()),
        floats_(floats.elements()),
        stored_((view_.bytes() + 3) / 4),
        expected_(view_.bytes()) {
    floats_.FillIntegers(static_cast<int>(floats.elements()));
    ClearTails(floats, floats_.data());
    Reorder(float_view_, {}, floats_.data(), view_, type_.quantization, data());
    Reorder(view_, type_.quantization, data(), float_view_, {}, floats_.data());
  }

  const TensorView& view() const { return view_; }
  float* floats() { return floats_.data(); }
  // The last byte of the memory is the tensor's.
  char* data() {
    return reinterpret_cast<char*>(stored_.data()) + stored_.size() * 4 - view_.bytes();
  }
  const float* as_floats() { return reinterpret_cast<const float*>(data()); }

  // What floats() holds now, stored, is what data() is to become; it is garbage until then.
  void Expect() {
    Reorder(float_view_, {}, floats_.data(), view_, type_.quantization, expected_.data());
    memset(data(), 0x5a, view_.bytes());
  }
  // The first byte that is not as expected, or -1.
  int64_t Difference() {
    for (int64_t i = 0; i < view_.bytes(); ++i) {
      if (data()[i] != expected_[i]) return i;
    }
    return -1;
  }

 private:
  void Reorder(const TensorView& from, Quantization of_src, const void* src, const TensorView& to,
               Quantization of_dst, void* dst) {
    const ReorderDesc desc = {from.desc(), to.desc(), {}, 0, 0, of_src, of_dst};
    ReorderPlan plan;
    ASSERT_EQ(MakeReorderPlan(desc, isa_, &plan), "");
    RunReorder(plan, src, dst, pool_);
  }

  ElementType type_;
  Isa isa_;
  ThreadPool& pool_;
  TensorView float_view_, view_;
  GuardedBuffer floats_, stored_;
  std::vector<char> expected_;
};

// Held to the bits that reorders to float32 and back give around the work on float32, which
// run(desc, src, dst) does.
template <typename Desc, typename Run>
void CheckTypes(const Desc& f32, const ElementType& from, const ElementType& to, Isa isa,
                ThreadPool& pool, Run&& run) {
  TypedTensor src(f32.src, from, isa, pool), dst(f32.dst, to, isa, pool);
  run(f32, src.floats(), dst.floats());
  dst.Expect();
  Desc desc = f32;
  desc.src = src.view(), desc.dst = dst.view();
  desc.src_quantization = from.quantization, desc.dst_quantization = to.quantization;
  run(desc, src.data(), dst.data());
  EXPECT_EQ(dst.Difference(), -1) << IsaName(isa) << " " << desc.src.ToString() << " to "
                                  << desc.dst.ToString();
}

}  // namespace bd
