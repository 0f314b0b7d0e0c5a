// A vector of dst is gathered in registers: one load and one permutation for each
// window of src that it needs, three for G = 3. The numbers of a vector's steps stay
// in registers while it is made for all rows.
#include "cc/core/shuffle/shuffle_kernel.h"

#include "cc/simd/permute.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#ifdef __AVX2__
// The steps of one vector, in registers.
template <typename Lanes, int kSteps>
class FixedSteps {
 public:
  FixedSteps(const ShuffleProgram& program, const ShuffleVector& vector, const uint8_t* src) {
    for (int s = 0; s < kSteps; ++s) {
      const int64_t step = vector.first_step + s;
      controls_[s] = Lanes::LoadControl(program.controls + step * sizeof(typename Lanes::Data));
      srcs_[s] = src + program.srcs[step];
    }
  }
  static constexpr int count() { return kSteps; }
  typename Lanes::Control control(int s) const { return controls_[s]; }
  const uint8_t* src(int s) const { return srcs_[s]; }

 private:
  typename Lanes::Control controls_[kSteps + 1];  // one more: kSteps may be 0
  const uint8_t* srcs_[kSteps + 1];
};

// Any number of them, in memory.
template <typename Lanes>
class ManySteps {
 public:
  ManySteps(const ShuffleProgram& program, const ShuffleVector& vector, const uint8_t* src)
      : controls_(program.controls + vector.first_step * sizeof(typename Lanes::Data)),
        srcs_(program.srcs + vector.first_step),
        src_(src),
        count_(vector.num_steps) {}
  int count() const { return count_; }
  typename Lanes::Control control(int s) const {
    return Lanes::LoadControl(controls_ + s * sizeof(typename Lanes::Data));
  }
  const uint8_t* src(int s) const { return src_ + srcs_[s]; }

 private:
  const uint8_t* controls_;
  const int64_t* srcs_;
  const uint8_t* src_;
  int count_;
};

// kCount rows of one vector; all are loaded before the first is stored. Row by row, a
// load waits for the store before it where both addresses have the same last 12 bits:
// 240 channels of 56 x 56 in nChw16c took 46 to 80 us by the distance of src and dst,
// batches of 4 take 42 to 47.
template <typename Lanes, int kCount, typename Steps>
inline void FillBatch(const Steps& steps, int64_t at, int64_t stride, uint8_t* dst) {
  typename Lanes::Data data[kCount];
  for (int i = 0; i < kCount; ++i) data[i] = Lanes::Nothing();
  for (int s = 0; s < steps.count(); ++s) {
    const typename Lanes::Control control = steps.control(s);
    const uint8_t* src = steps.src(s) + at;
    for (int i = 0; i < kCount; ++i) data[i] = Lanes::Take(data[i], control, src + i * stride);
  }
  for (int i = 0; i < kCount; ++i) Lanes::Store(dst + at + i * stride, data[i]);
}

template <typename Lanes, typename Steps>
inline void FillRows(const Steps& steps, int64_t stride, int64_t rows, uint8_t* dst) {
  constexpr int kBatch = 4;
  int64_t r = 0;
  for (; r + kBatch <= rows; r += kBatch) FillBatch<Lanes, kBatch>(steps, r * stride, stride, dst);
  for (; r < rows; ++r) FillBatch<Lanes, 1>(steps, r * stride, stride, dst);
}

template <typename Lanes>
void Permute(const ShuffleProgram& program, const uint8_t* src, uint8_t* dst, int64_t rows) {
  for (int64_t v = 0; v < program.num_vectors; ++v) {
    const ShuffleVector& vector = program.vectors[v];
    const auto fill = [&](const auto& steps) {
      FillRows<Lanes>(steps, program.stride, rows, dst + vector.dst);
    };
    switch (vector.num_steps) {
      case 0:
        fill(FixedSteps<Lanes, 0>(program, vector, src));
        break;
      case 1:
        fill(FixedSteps<Lanes, 1>(program, vector, src));
        break;
      case 2:
        fill(FixedSteps<Lanes, 2>(program, vector, src));
        break;
      case 3:
        fill(FixedSteps<Lanes, 3>(program, vector, src));
        break;
      case 4:
        fill(FixedSteps<Lanes, 4>(program, vector, src));
        break;
      case 5:
        fill(FixedSteps<Lanes, 5>(program, vector, src));
        break;
      case 6:
        fill(FixedSteps<Lanes, 6>(program, vector, src));
        break;
      default:
        fill(ManySteps<Lanes>(program, vector, src));
    }
  }
}

template <typename Lanes, int kLaneBytes>
constexpr Permuter PermuterOf() {
  return {sizeof(typename Lanes::Data), kLaneBytes, Permute<Lanes>};
}

#else
// Items one by one: SSE2 has no permutation by numbers in a register.
template <typename Item>
void PermuteItems(const ShuffleProgram& program, const uint8_t* src, uint8_t* dst, int64_t rows) {
  for (int64_t v = 0; v < program.num_vectors; ++v) {
    const ShuffleVector& vector = program.vectors[v];
    const int64_t from = vector.num_steps == 0 ? 0 : program.srcs[vector.first_step];
    for (int64_t r = 0; r < rows; ++r) {
      Item item = 0;
      if (vector.num_steps > 0) {
        __builtin_memcpy(&item, src + r * program.stride + from, sizeof(Item));
      }
      __builtin_memcpy(dst + r * program.stride + vector.dst, &item, sizeof(Item));
    }
  }
}

template <typename Item>
constexpr Permuter PermuterOfItems() {
  return {sizeof(Item), 0, PermuteItems<Item>};
}
#endif

}  // namespace

constexpr ShuffleKernels kShuffleKernels = {
#if defined(BD_AVX512)
    {PermuterOf<ByteLanes, 1>(), PermuterOf<WordLanes, 2>(), PermuterOf<DwordLanes, 4>(),
     PermuterOf<DwordLanes, 4>()},
#elif defined(__AVX2__)
    {PermuterOf<ByteLanes, 1>(), PermuterOf<ByteLanes, 1>(), PermuterOf<DwordLanes, 4>(),
     PermuterOf<DwordLanes, 4>()},
#else
    {PermuterOfItems<uint8_t>(), PermuterOfItems<uint16_t>(), PermuterOfItems<uint32_t>(),
     PermuterOfItems<uint64_t>()},
#endif
};

}  // namespace bd::BD_ISA
