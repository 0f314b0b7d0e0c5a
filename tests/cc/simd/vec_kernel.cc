#include "tests/cc/simd/vec_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

Vec FirstLane(Vec v) {
  float lanes[kLanes];
  Store(lanes, v);
  return Set1InOrder(lanes);
}

Vec ApplyWord(VecWord word, Vec a, Vec b, Vec c) {
  switch (word) {
    case VecWord::kMax:
      return Max(a, b);
    case VecWord::kMin:
      return Min(a, b);
    case VecWord::kFma:
      return Fma(a, b, c);
    case VecWord::kFmaInto:
      FmaInto(a, b, &c);
      return c;
    case VecWord::kNegFma:
      return NegFma(a, b, c);
    case VecWord::kSet1InOrder:
      return FirstLane(a);
    case VecWord::kProductError:
      return ProductError(a, b, Mul(a, b));
    case VecWord::kLessSelect:
      return Select(Less(a, b), c, a);
    case VecWord::kEqualSelect:
      return Select(Equal(a, b), c, a);
    case VecWord::kNanSelect:
      return Select(IsNan(a), c, a);
    case VecWord::kScaleByPow2:
      return ScaleByPow2(a, b);
    case VecWord::kOrXor:
      return FromBits(OrXor(Bits(a), Bits(b), Bits(c)));
    case VecWord::kHasSign:
      return Set1(HasAny(Bits(a), INT32_MIN) ? 1.f : 0.f);
    case VecWord::kBits:
      return FromBits(ShiftRight<1>(ShiftLeft<1>(AddInt(Bits(a), SubInt(SetInt(7), SetInt(7))))));
  }
  return Zero();
}

void Apply(VecWord word, const float* a, const float* b, const float* c, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Store(dst + i, ApplyWord(word, LoadInOrder(a + i), Load(b + i), Load(c + i)));
  }
}

float CopyFirst(const float* src, float* dst, int n) {
  const Vec v = LoadN(src, n);
  StoreN(dst, v, n);
  return ReduceAdd(v);
}

void KeepFirstOf(const float* src, float* dst, int n) { Store(dst, KeepFirst(Load(src), n)); }

constexpr VecKernels kKernels = {kLanes, Apply, CopyFirst, KeepFirstOf};

}  // namespace

const VecKernels& GetVecKernels() { return kKernels; }

}  // namespace bd::BD_ISA
