// Rows of a plain result: out of blocks, through the chain, to memory. Compiled once per ISA.
#include "cc/core/conv/common/plain_store_kernel.h"

#include "cc/core/post_ops/post_ops_kernel.h"
#include "cc/simd/convert/quantized.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

template <typename T>
[[gnu::noinline]] void StoreRun(const ElementType& type, const float* row, int64_t length, T* dst) {
  const Quantizer to(type.quantization);
  for (int64_t i = 0; i < length; i += kLanes) {
    const int n = length - i < kLanes ? static_cast<int>(length - i) : kLanes;
    to.StoreN(dst + i, LoadN(row + i, n), n);
  }
}

// Pixels of `pitch` floats out of blocks.
void JoinBlocks(const PlainStoreArgs& a, float* to, int64_t pitch) {
  for (int64_t c = 0; c < a.count; c += kBlock, to += kBlock) {
    const int64_t lanes = a.count - c < kBlock ? a.count - c : kBlock;
    const float* block = a.blocks + c / kBlock * a.block_stride;
    if (lanes == kBlock) {
      for (int64_t p = 0; p < a.px; ++p)
        __builtin_memcpy(to + p * pitch, block + p * kBlock, kBlock * sizeof(float));
      continue;
    }
    for (int64_t p = 0; p < a.px; ++p) {
      for (int64_t i = 0; i < lanes; i += kLanes) {
        const int64_t left = lanes - i < kLanes ? lanes - i : kLanes;
        StoreN(to + p * pitch + i, Load(block + p * kBlock + i), static_cast<int>(left));
      }
    }
  }
}

// Whether the chain reads no tensor, which dst may be.
bool ReadsNoTensor(const PostOpProgram& program) {
  for (int32_t s = 0; s < program.count; ++s) {
    const PostOpStep& step = program.steps[s];
    const bool reads = step.kind == PostOpKind::kBinary && step.shape == OperandShape::kTensor;
    if (reads || step.kind == PostOpKind::kSum) return false;
  }
  return true;
}

void StorePiece(const PlainStoreArgs& a) {
  const bool in_dst = a.blocks != nullptr && a.type.dtype == DataType::f32 &&
                      (a.program == nullptr || ReadsNoTensor(*a.program));
  if (in_dst) {
    JoinBlocks(a, a.dst + a.first, a.channels);
    if (a.program == nullptr) return;
  } else if (a.blocks != nullptr) {
    JoinBlocks(a, a.row, a.count);
  }
  // All channels: the pixels are one run. Some of them: a run a pixel.
  const int64_t runs = a.count == a.channels ? 1 : a.px;
  const int64_t length = a.px * a.count / runs;
  for (int64_t r = 0; r < runs; ++r) {
    const int64_t at = r * a.channels + a.first;
    float* row = in_dst ? a.dst + at : a.row + r * length;
    if (a.program != nullptr) {
      a.program->kernels->rows(
          *a.program, row,
          {1, length, length, a.dst_offset + at, 0, a.first, a.channels, a.sample_offset});
    }
    if (in_dst) continue;
    if (a.type.dtype == DataType::bf16) {
      StoreRun(a.type, row, length, reinterpret_cast<Bfloat16*>(a.dst) + at);
    } else if (a.type.dtype == DataType::u8) {
      StoreRun(a.type, row, length, reinterpret_cast<uint8_t*>(a.dst) + at);
    } else {
      __builtin_memcpy(a.dst + at, row, static_cast<size_t>(length) * sizeof(float));
    }
  }
}

// Piece by piece, so that rows stay in L1 from the blocks to dst.
void PlainStore(const PlainStoreArgs& all) {
  constexpr int64_t kPieceFloats = 4096;
  const int64_t most = all.count < kPieceFloats ? kPieceFloats / all.count : 1;
  for (int64_t p = 0; p < all.px; p += most) {
    PlainStoreArgs a = all;
    a.px = all.px - p < most ? all.px - p : most;
    if (a.blocks != nullptr) {
      a.blocks += p * kBlock;
    } else {
      a.row += p * a.count;
    }
    char* const dst = reinterpret_cast<char*>(all.dst);
    a.dst = reinterpret_cast<float*>(dst + p * all.channels * SizeOf(all.type.dtype));
    a.dst_offset += p * all.channels;
    StorePiece(a);
  }
}

constexpr PlainStoreKernels kTable = {PlainStore};

}  // namespace

const PlainStoreKernels& GetPlainStoreKernels() { return kTable; }

}  // namespace bd::BD_ISA
