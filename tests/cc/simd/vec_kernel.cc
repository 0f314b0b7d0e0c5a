#include "tests/cc/simd/vec_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

Vec FirstLane(Vec v) {
  float lanes[kLanes];
  Store(lanes, v);
  return Set1InOrder(lanes);
}

Vec FmaOf(Vec a, Vec b, Vec c) {
  FmaInto(a, b, &c);
  return c;
}

Vec ApplyWord(VecWord word, Vec a, Vec b, Vec c) {
  switch (word) {
#define BD_WORD(word, vectors, ...) \
  case VecWord::word:               \
    return vectors;
    BD_VEC_WORDS(BD_WORD)
    BD_OTHER_VEC_WORDS(BD_WORD)
#undef BD_WORD
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

void CopyQuads(const float* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  StoreQuads(dst, dst_stride, LoadQuads(src, src_stride));
}

float ReduceAddOf(const float* src) { return ReduceAdd(Load(src)); }
float ReduceMaxOf(const float* src) { return ReduceMax(Load(src)); }

#if defined(__AVX2__)
void LookUp(const int32_t* table, const int32_t* i, int32_t* dst) {
  const IVec index = Bits(Load(reinterpret_cast<const float*>(i)));
  Store(reinterpret_cast<float*>(dst), FromBits(Lookup(table, index)));
}
constexpr int kTable = kLookup;
#else
constexpr int kTable = 0;
constexpr void (*LookUp)(const int32_t*, const int32_t*, int32_t*) = nullptr;
#endif

#if defined(BD_AVX512)
void Wide(WideWord word, const float* a, const float* b, const float* c, float* dst) {
  switch (word) {
    case WideWord::kFmaAt:
      return Store(dst, FmaAt(a, Load(b), Load(c)));
    case WideWord::kAddAt:
      return Store(dst, AddAt(a, Load(b)));
    case WideWord::kSubAt:
      return Store(dst, SubAt(Load(b), a));
    case WideWord::kHalf: {
      const HalfVec y = Lower(Load(b)), z = Lower(Load(c));
      HalfVec half = Fma(Set1Half(*a), y, z);
      if (*a < 0.f) half = FmaAt(a, y, z);
      half = NegFma(half, y, z);
      return StoreInOrder(dst, Widen(SubAt(AddAt(a, half), a + 1)));
    }
    case WideWord::kOddsToEvens:
      return Store(dst, OddsToEvens(Load(a)));
    case WideWord::kOnce:
      return Store(dst, LoadOnce(a));
    case WideWord::kStream:
      Stream(dst, Load(a));
      return _mm_sfence();
  }
}

void ReduceRows(const float* src, float* dst) {
  Vec rows[16];
  for (int i = 0; i < 16; ++i) rows[i] = Load(src + 16 * i);
  Store(dst, ReduceAddEach(rows));
}
#else
constexpr void (*Wide)(WideWord, const float*, const float*, const float*, float*) = nullptr;
constexpr void (*ReduceRows)(const float*, float*) = nullptr;
#endif

}  // namespace

constexpr VecKernels kVecKernels = {kLanes,    Apply,       CopyFirst,   KeepFirstOf,
                                    CopyQuads, ReduceAddOf, ReduceMaxOf, kTable,
                                    LookUp,    Wide,        ReduceRows};

}  // namespace bd::BD_ISA
