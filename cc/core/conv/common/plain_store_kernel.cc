// Rows of a plain result: out of blocks, through the chain, to memory. Compiled once per ISA.
#include "cc/core/conv/common/plain_store_kernel.h"

#include "cc/core/post_ops/post_ops_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

void PlainStore(const PlainStoreArgs& a) {
  for (int64_t c = 0; a.blocks != nullptr && c < a.count; c += kBlock) {
    const int64_t lanes = a.count - c < kBlock ? a.count - c : kBlock;
    const float* block = a.blocks + c * a.px;
    for (int64_t p = 0; p < a.px; ++p) {
      float* out = a.row + p * a.count + c;
      for (int64_t i = 0; i < lanes; ++i) out[i] = block[p * kBlock + i];
    }
  }
  // All channels: the pixels are one run. Some of them: a run a pixel.
  const int64_t runs = a.count == a.channels ? 1 : a.px;
  const int64_t length = a.px * a.count / runs;
  for (int64_t r = 0; r < runs; ++r) {
    float* row = a.row + r * length;
    const int64_t at = r * a.channels + a.first;
    if (a.program != nullptr) {
      ApplyPostOpsPlain(*a.program, row, length, a.dst_offset + at, a.first, a.channels,
                        a.sample_offset);
    }
    __builtin_memcpy(a.dst + at, row, static_cast<size_t>(length) * sizeof(float));
  }
}

constexpr PlainStoreKernels kTable = {PlainStore};

}  // namespace

const PlainStoreKernels& GetPlainStoreKernels() { return kTable; }

}  // namespace bd::BD_ISA
