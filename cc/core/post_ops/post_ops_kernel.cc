// The post-op chain on a tile in L1. Compiled once per ISA.
//
// Outside, one step after the other and one switch on its algorithm; inside,
// one loop over the vectors of the tile:
//
//   Blocked, Rows    the chain: which operand elements a step reads
//   ApplyEltwise     x = scale * f(x)
//   ApplyOperand     x = scale * o + x (sum), x = alg(x, o) (binary)
#include "cc/core/post_ops/post_ops_kernel.h"

#include "cc/simd/convert/quantized.h"
#include "cc/simd/math/math.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Map with an f that takes four vectors, or one, and leaves the results in them.
template <typename F>
inline void MapFours(const float* x, float* y, int64_t n, F f) {
  constexpr int kFours = 4 * kLanes;
  int64_t i = 0;
  for (; i + kFours <= n; i += kFours) {
    Vec v[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) v[k] = Load(x + i + k * kLanes);
    f(v);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) Store(y + i + k * kLanes, v[k]);
  }
  const auto alone = [=](Vec one) {
    Vec v[1] = {one};
    f(v);
    return v[0];
  };
  Map(y + i, n - i, alone, x + i);
}

// y[i] = f(x[i], operand[i % period]); period is a multiple of kLanes or >= n.
template <typename F>
inline void Zip(const float* x, float* y, int64_t n, const float* operand, int64_t period, F f) {
  int64_t i = 0, k = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Store(y + i, f(Load(x + i), Load(operand + k)));
    k += kLanes;
    if (k == period) k = 0;
  }
  if (i < n) StoreN(y + i, f(LoadN(x + i, n - i), LoadN(operand + k, n - i)), n - i);
}

// Bounds on the left: NaN in x passes.
inline Vec Clip(Vec x, Vec lo, Vec hi) { return Min(hi, Max(lo, x)); }

void ApplyUnscaled(const PostOpStep& step, const float* x, float* y, int64_t n) {
  const Vec alpha = Set1(step.alpha), beta = Set1(step.beta);
  const auto map = [=](auto f) { Map(y, n, f, x); };
  switch (step.eltwise) {
    case EltwiseAlg::kRelu:
      if (step.alpha == 0.f) return map([](Vec v) { return Max(Zero(), v); });
      [[fallthrough]];
    case EltwiseAlg::kLeakyRelu:
      return map([=](Vec v) { return Select(Less(v, Zero()), Mul(alpha, v), v); });
    case EltwiseAlg::kRelu6:
      return map([](Vec v) { return Clip(v, Zero(), Set1(6.f)); });
    case EltwiseAlg::kBoundedRelu:
      return map([=](Vec v) { return Clip(v, Zero(), alpha); });
    case EltwiseAlg::kClip:
      return map([=](Vec v) { return Clip(v, alpha, beta); });
    case EltwiseAlg::kElu:
      return map([=](Vec v) { return Elu(v, alpha); });
    case EltwiseAlg::kLinear:
      return map([=](Vec v) { return Fma(alpha, v, beta); });
    case EltwiseAlg::kSwish:
      if (step.alpha == 1.f) return MapFours(x, y, n, [](auto& v) { Silu(v); });
      return map([=](Vec v) { return Swish(v, alpha); });
    case EltwiseAlg::kHardSigmoid:
      return map([=](Vec v) { return Clip(Fma(alpha, v, beta), Zero(), Set1(1.f)); });
    case EltwiseAlg::kHardSwish:
      return map([=](Vec v) { return Mul(v, Clip(Fma(alpha, v, beta), Zero(), Set1(1.f))); });
    case EltwiseAlg::kPow: {
      const Power power(step.beta);
      return map([=](Vec v) { return Mul(alpha, power(v)); });
    }
#define BD_ROW(function, ...)   \
  case EltwiseAlg::k##function: \
    return map([](Vec v) { return function(v); });
      BD_ELTWISE_FUNCTIONS(BD_ROW)
#undef BD_ROW
  }
}

void ApplyEltwise(const PostOpStep& step, const float* x, float* y, int64_t n) {
  ApplyUnscaled(step, x, y, n);
  if (step.scale == 1.f) return;
  const Vec scale = Set1(step.scale);
  Map(
      y, n, [=](Vec v) { return Mul(scale, v); }, y);
}

void ApplyOperand(const PostOpStep& step, const float* x, float* y, int64_t n, const float* operand,
                  int64_t period) {
  const auto zip = [=](auto f) { Zip(x, y, n, operand, period, f); };
  if (step.kind == PostOpKind::kSum) {
    const Vec scale = Set1(step.scale);
    return zip([=](Vec v, Vec o) { return Fma(scale, o, v); });
  }
  switch (step.binary) {
#define BD_ROW(name, function, ...) \
  case BinaryAlg::k##name:          \
    return zip([](Vec v, Vec o) { return function(v, o); });
    BD_BINARY_FUNCTIONS(BD_ROW)
#undef BD_ROW
  }
}

// Adds n elements, whole vectors of them, from element `at` of the operand on.
template <typename T>
void AddSum(const PostOpStep& step, const float* x, float* y, int64_t n, int64_t at) {
  const T* const operand = reinterpret_cast<const T*>(step.operand) + at;
  const Dequantizer from(step.type.quantization);
  const Vec scale = Set1(step.scale);
  for (int64_t i = 0; i < n; i += kLanes) {
    Store(y + i, Fma(scale, from.Load(operand + i), Load(x + i)));
  }
}

inline bool ReadsTensor(const PostOpStep& step) {
  return step.kind == PostOpKind::kSum || step.shape == OperandShape::kTensor;
}

void Blocked(const PostOpProgram& program, float* tile, float* dst, int count, int64_t dst_offset,
             int64_t channel, int64_t sample_channel, int valid_lanes) {
  const int64_t n = static_cast<int64_t>(count) * kBlock;
  for (int32_t s = 0; s < program.count; ++s) {
    const PostOpStep& step = program.steps[s];
    float* out = s + 1 < program.count ? tile : dst;
    if (step.kind == PostOpKind::kEltwise) {
      ApplyEltwise(step, tile, out, n);
    } else if (step.type.dtype == DataType::u8) {
      AddSum<uint8_t>(step, tile, out, n, dst_offset);
    } else if (step.type.dtype == DataType::bf16) {
      AddSum<Bfloat16>(step, tile, out, n, dst_offset);
    } else if (ReadsTensor(step)) {
      ApplyOperand(step, tile, out, n, step.operand + dst_offset, n);
    } else if (step.shape == OperandShape::kScalar) {
      float same[kBlock];
      for (float& v : same) v = *step.operand;
      ApplyOperand(step, tile, out, n, same, kBlock);
    } else {
      const bool sample = step.shape == OperandShape::kSampleChannel;
      ApplyOperand(step, tile, out, n, step.operand + (sample ? sample_channel : channel), kBlock);
    }
  }
  if (valid_lanes >= kBlock) return;
  for (int64_t i = 0; i < n; i += kLanes) {
    Store(dst + i, KeepFirst(Load(dst + i), valid_lanes - static_cast<int>(i % kBlock)));
  }
}

// Applies a step whose operand repeats every `channels` elements to n elements
// of which the first has channel `first_channel`.
inline void ApplyRepeating(const PostOpStep& step, float* x, int64_t n, const float* operand,
                           int64_t first_channel, int64_t channels) {
  if (channels < kBlock) {
    // Written out until the period is a whole number of vectors.
    float pattern[kBlock * kBlock];
    const int64_t period = channels * kBlock;
    for (int64_t i = 0, c = first_channel; i < period && i < n; ++i) {
      pattern[i] = operand[c];
      if (++c == channels) c = 0;
    }
    return ApplyOperand(step, x, x, n, pattern, period);
  }
  for (int64_t i = 0, c = first_channel; i < n; c = 0) {
    const int64_t run = channels - c < n - i ? channels - c : n - i;
    ApplyOperand(step, x + i, x + i, run, operand + c, run);
    i += run;
  }
}

void Rows(const PostOpProgram& program, float* first, const PlainRows& at) {
  for (int32_t s = 0; s < program.count; ++s) {
    const PostOpStep& step = program.steps[s];
    if (step.kind == PostOpKind::kEltwise) {
      ApplyEltwise(step, first, first, (at.rows - 1) * at.stride + at.count);
      continue;
    }
    for (int64_t p = 0; p < at.rows; ++p) {
      float* const row = first + p * at.stride;
      if (ReadsTensor(step)) {
        const float* const operand = step.operand + at.dst_offset + p * at.operand_step;
        ApplyOperand(step, row, row, at.count, operand, at.count);
      } else if (step.shape == OperandShape::kScalar) {
        ApplyRepeating(step, row, at.count, step.operand, 0, 1);
      } else {
        const bool sample = step.shape == OperandShape::kSampleChannel;
        ApplyRepeating(step, row, at.count, step.operand + (sample ? at.sample_offset : 0),
                       at.first_channel, at.channels);
      }
    }
  }
}

void ApplySilu(float* x, int64_t n) {
  MapFours(x, x, n, [](auto& v) { Silu(v); });
}

}  // namespace

constexpr PostOpKernels kPostOpKernels = {Blocked, Rows, ApplySilu};

}  // namespace bd::BD_ISA
