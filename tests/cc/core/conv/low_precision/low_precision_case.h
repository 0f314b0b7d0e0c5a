// Convolutions of bfloat16 and of bytes against their definition, with zero tolerance: sums of
// bytes in int64 and single operations on floats after them, sums of small integers in bfloat16.
// Algorithms that round more than such sums are for winograd_bf16_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include "cc/layout/tensor_view.h"
#include "tests/cc/convert_ref.h"
#include "tests/cc/core/conv/conv_ref.h"
#include "tests/cc/guarded_array.h"
#include "tests/cc/isas.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
using Guard = GuardedBuffer::Guard;
constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, u8 = DataType::u8;
constexpr DataType kDstTypes[] = {f32, bf16, u8};

struct LowPrecisionCase {
  ConvShape shape;
  DataType src = u8, dst = u8, sum = f32;
  Quantization src_quantization = {0.5f, 3}, sum_quantization = {0.75f, 7};
  Quantization dst_quantization = {3.7f, 100};
  DataType floats = bf16;  // of the weights of bfloat16
  bool bias = false, adds = false;
  float sum_scale = 0.5f;
  std::string rest;  // of the chain; args #0 a float a channel, #1 what is added
  int src_least = 0, src_most = 255, weights_least = -127, weights_most = 127;
  int floats_most = 8;  // of numbers of bfloat16, from - floats_most on

  bool bytes() const { return src == u8; }
  ConvDesc Desc() const {
    ConvShape s = shape;
    std::string chain = bias ? "binary(add,channel,#0)" : "";
    if (adds)
      chain +=
          std::string(chain.empty() ? "" : ";") + "sum(#1,scale=" + std::to_string(sum_scale) + ")";
    if (!rest.empty()) chain += (chain.empty() ? "" : ";") + rest;
    if (!chain.empty()) s.post_ops = Chain(chain);
    if (s.algorithm == ConvAlgorithm::kAuto) s.algorithm = ConvAlgorithm::kAutoSmallest;
    ConvDesc d = s;
    d.src = TensorView(src, d.src.layout(), d.src.dims());
    d.dst = TensorView(dst, d.dst.layout(), d.dst.dims());
    d.types.weights = bytes() ? DataType::s8 : floats;
    d.types.sum = sum;
    d.types.src_quantization = src_quantization;
    d.types.sum_quantization = sum_quantization;
    d.types.dst_quantization = dst_quantization;
    return d;
  }
};

// Chains after a bias and a sum, by all types, of channels with and without a tail.
template <typename Check>
void ForChainsAndTypes(Check&& check) {
  for (DataType dst : kDstTypes) {
    for (DataType sum : kDstTypes) {
      for (const char* rest : {"", "eltwise(relu)", "eltwise(clip,alpha=-3,beta=6)",
                               "binary(mul,channel,#0);eltwise(leaky_relu,alpha=0.25)"}) {
        for (int64_t oc : {16, 37}) {
          LowPrecisionCase c;
          c.shape = ConvOf({2, 20, 9, 9}, oc, 3, 1, 1, 1, 1);
          c.dst = dst;
          c.sum = sum;
          c.bias = c.adds = true;
          c.rest = rest;
          check(c);
        }
      }
    }
  }
}

// AVX512_BF16 makes zeros of denormal numbers (cc/simd/convert/bf16.h), other sets do not.
inline bool IsFlushed(DataType type, float x) {
  return type == bf16 && x != 0 && std::fabs(x) < 0x1p-126f;
}

class ConvLowPrecisionTest : public ::testing::TestWithParam<Isa> {
 protected:
  // Integers from least to most, and zeros in tails.
  void FillTensor(const TensorView& view, const Quantization& q, int least, int most, void* to) {
    FillDrawn(rng_, view.dtype(), view.elements(), least, most, to);
    for (int64_t n = 0; n < view.n(); ++n) {
      for (int64_t c = view.c(); c < view.blocks() * view.lanes(); ++c) {
        for (int64_t p = 0; p < view.pixels(); ++p) {
          StoreRealRef(view.dtype(), q, 0.f, to, view.element(n, c, p));
        }
      }
    }
  }

  // Elements less their zero point, as floats, which hold them all.
  static std::vector<float> Integers(DataType type, int zero_point, const void* array,
                                     int64_t count) {
    std::vector<float> integers(count);
    for (int64_t i = 0; i < count; ++i) integers[i] = LoadAsFloatRef(type, array, i) - zero_point;
    return integers;
  }

  // Bytes of bytes whose chain is in registers: in steps of dst, each sum rounded once.
  static float Steps(const LowPrecisionCase& c, const ConvEpilogue& e, float sum, float scale,
                     float bias, float added) {
    const float inverse = 1.f / c.dst_quantization.scale;
    const bool bytes = c.sum == u8;
    const float step = !c.adds ? 0.f : bytes ? c.sum_scale * c.sum_quantization.scale : c.sum_scale;
    const float at_zero = bytes ? c.sum_quantization.zero_point * (step * inverse) : 0.f;
    float x = std::fma(sum, scale * inverse, (c.bias ? bias : 0.f) * inverse - at_zero);
    if (c.adds) x = std::fma(added, step * inverse, x);
    return e.clamp ? std::min(e.hi * inverse, std::max(e.lo * inverse, x)) : x;
  }

  void Check(const LowPrecisionCase& c, ThreadPool& pool, Guard guard = Guard::kAtEnd) {
    const ConvDesc d = c.Desc();
    ConvPlan plan;
    ASSERT_EQ(MakeConvPlan(d, GetParam(), pool.num_threads(), &plan), "");
    algorithms_.insert(plan.algorithm_name());
    ConvShape named = c.shape;
    named.post_ops = d.post_ops;
    SCOPED_TRACE(Describe(named, plan) + " " + DataTypeName(c.src) + " " + DataTypeName(c.dst) +
                 " + " + DataTypeName(c.sum) + " zero " +
                 std::to_string(c.src_quantization.zero_point));
    const TensorView added(c.sum, d.dst.layout(), d.dst.dims());
    GuardedArray src(d.src.bytes(), guard), dst(d.dst.bytes(), guard), expected(d.dst.bytes());
    GuardedArray weights(WeightFloats(c.shape) * SizeOf(d.types.weights), guard);
    GuardedArray channel(d.oc() * 4, guard), scales(d.oc() * 4, guard), sum(added.bytes(), guard);
    const bool bytes = c.bytes();
    FillTensor(d.src, c.src_quantization, bytes ? c.src_least : -c.floats_most,
               bytes ? c.src_most : c.floats_most, src.data());
    FillDrawn(rng_, d.types.weights, WeightFloats(c.shape),
              bytes ? c.weights_least : -c.floats_most, bytes ? c.weights_most : c.floats_most,
              weights.data());
    FillDrawn(rng_, f32, d.oc(), -9, 9, channel.data());
    FillTensor(added, c.sum_quantization, 0, 90, sum.data());
    for (int64_t o = 0; o < d.oc(); ++o) {
      scales.As<float>()[o] = std::ldexp(1.f, -static_cast<int>(o % 3) - 4);
    }
    const float* args[] = {channel.As<float>(), sum.As<float>()};
    PackAndRun(plan, src.data(), weights.data(), args, dst.data(), pool, nullptr,
               scales.As<float>(), guard);

    const PostOpChain rest = c.rest.empty() ? PostOpChain() : Chain(c.rest);
    const int64_t channels = d.dst.blocks() * d.dst.lanes();
    const std::vector<float> src_integers = Integers(
        d.src.dtype(), bytes ? c.src_quantization.zero_point : 0, src.data(), d.src.elements());
    const std::vector<float> weight_integers =
        Integers(d.types.weights, 0, weights.data(), WeightFloats(c.shape));
    const bool in_steps =
        c.bytes() && c.dst == u8 && d.dst.blocked() && plan.epilogue.rest.len() == 0;
    for (int64_t n = 0; n < d.n(); ++n) {
      for (int64_t p = 0; p < d.oh() * d.ow(); ++p) {
        // Of integers, those of bfloat16, too; of bytes without their scales.
        const std::vector<double> sums =
            SumsRef(d, src_integers.data(), weight_integers.data(), n, p / d.ow(), p % d.ow());
        for (int64_t o = 0; o < channels; ++o) {
          const int64_t at = d.dst.element(n, o, p);
          float x = 0.f;
          if (o < d.oc()) {
            EXPECT_LE(std::fabs(sums[o]), INT32_MAX);
            x = static_cast<float>(sums[o]);
            const float scale = d.types.src_quantization.scale * scales.As<float>()[o];
            if (in_steps) {
              const float addend = c.adds ? LoadAsFloatRef(c.sum, sum.data(), at) : 0.f;
              x = Steps(c, plan.epilogue, x, scale, args[0][o], addend);
              StoreRealRef(u8, {1.f, c.dst_quantization.zero_point}, x, expected.data(), at);
              ASSERT_EQ(LoadAsFloatRef(u8, dst.data(), at), LoadAsFloatRef(u8, expected.data(), at))
                  << "at n " << n << " channel " << o << " pixel " << p;
              continue;
            }
            if (c.bytes()) x *= scale;
            if (c.bias) x += args[0][o];
            if (c.adds) x += c.sum_scale * LoadRealRef(c.sum, c.sum_quantization, sum.data(), at);
            x = static_cast<float>(
                ApplyPostOpsRef(rest, x, args, nullptr, at, o, n * channels + o));
          }
          const float got = LoadAsFloatRef(c.dst, dst.data(), at);
          if (GetParam() >= Isa::kAvx512 && c.dst == bf16 && c.rest == "eltwise(swish)") {
            // To 2^-13 before it is rounded.
            const float slack = 0x1p-13f * std::fabs(x);
            x = std::min(std::max(got, x - slack), x + slack);
          }
          StoreRealRef(c.dst, c.dst_quantization, x, expected.data(), at);
          const float due = LoadAsFloatRef(c.dst, expected.data(), at);
          if (got == 0 && IsFlushed(c.dst, due)) continue;
          ASSERT_EQ(got, due) << "at n " << n << " channel " << o << " pixel " << p;
        }
      }
    }
  }

  void CheckTypes(LowPrecisionCase c) {
    for (DataType src : {u8, bf16}) {
      c.src = src;
      c.dst = kDstTypes[turn_++ % 3];
      Check(c, turn_ % 2 == 0 ? one_ : two_, turn_ % 4 < 2 ? Guard::kAtEnd : Guard::kAtStart);
    }
  }

  std::mt19937 rng_{3};
  ThreadPool one_{1}, two_{2};
  std::set<std::string> algorithms_;
  int turn_ = 0;
};

}  // namespace bd
