// Matrix product on packed weights: C = epilogue(A B), row-major, of any sizes.
//
//   GemmPlan plan;                                        // once a shape of B
//   std::string error = MakeGemmPlan({k, n}, isa, &plan);
//   AlignedBuffer packed(plan.packed_bytes);              // once a B
//   PackGemm(plan, {b, /*row_stride=*/n, /*column_stride=*/1}, packed.As<float>(), &pool);
//
//   GemmArgs args;                                        // a call: C [m, n] = A [m, k] B + bias
//   args.a = a;
//   args.packed = packed.As<float>();
//   args.bias = bias;                                     // [n], or null
//   args.c = c;
//   args.add = c;                                         // C += A B; or null
//   args.scratch = scratch;                               // GemmScratchBytes(plan, m)
//   RunGemm(plan, args, m, pool);
//
// Element C[i][j] is the sum over k from bias[j] on; then, where `add` is given,
// add_scale * add[i][j]; then the clamp, or the chain. No byte outside the matrices is touched,
// neither read nor written, whatever their sizes. Results do not depend on the number of threads.
//
// With GemmDesc::pairs, on a CPU that gains from it, B is packed for the fast inner product
// (fip.h), and A is brought into the form for it first, in `scratch`. Packing takes longer then:
// that is for a B that many products share. Sums are in the order of fip_kernel.h, else of k.
//
// Of bfloat16 and of bytes (low_precision_kernel.h) it is the same product; types are those of the
// desc:
//
//   A               B           multiplied as
//   f32             f32         f32
//   bf16 or f32     bf16, f32   bf16, where one of them is bf16: floats are rounded
//   u8, s8          s8          bytes, which stand for a_quantization and b_scales[n]
//   f32             s8          bytes: each row of A gets a scale by its largest magnitude
//   f32             bf16, s8    f32, with GemmDesc::widens: B is of low precision in memory only
//   f32             u8          the same of 4 bits, with GemmDesc::group
//
// A B of u8 is [ceil(k / 2)][n]: the lower four bits of a byte are an even row, the upper four the
// next one. Number q of row k, in group g = k / group, stands for step[g][n] q + offset[g][n].
//
// Sums of bytes are exact, of B in [-127, 127]. Of a row of floats, x becomes the byte
// round(x / s), where s = (max |x| + 1e-7) / 127, as in Keras's quantize("int8"); by
// GemmArgs::a_factors its numbers are multiplied before.
//
// Few rows wait for B to come from memory: where it widens, they multiply it as it is packed
// (product_kernel.h), and scales of bytes meet sums. For many rows each panel is widened once a
// task, into scratch, times its scales.
//
// C and `add` are of the types in desc.tensors: f32, or bf16 and u8 where bf16 or bytes are
// multiplied.
//
// Who owns what: the caller owns all memory; a plan is immutable and may be shared by threads; the
// packed matrix belongs to one {isa, k, n} (GemmPlan::blocking). The loop is gemm_panels.h, the
// register tiles gemm_kernel.h: callers whose A is not a matrix use these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {

struct GemmDesc {
  int64_t k = 0, n = 0;
  bool pairs = false;
  bool widens = false;
  int64_t group = 0;  // rows of a B of u8 that share a step: a multiple of 8, or all
  int threads = 1;    // of the pool that runs a product which widens: each needs room for a panel
  DataType a = DataType::f32, b = DataType::f32;
  Quantization a_quantization;
  EpilogueTensors tensors;
};

// A run of K that strided tiles take as one tap.
constexpr int64_t kGemmTap = 64;

struct GemmPlan {
  GemmDesc desc;
  Isa isa = Isa::kGeneric;
  std::vector<Panel> panels;
  int64_t packed_bytes = 0;
  TileFamily family = TileFamily::kStrided;  // of rows that are not in pairs
  int64_t k_dwords = 0;                      // what tiles read of a row of A
  std::vector<int64_t> tap_offsets;  // runs of K, the last one shorter; of low precision in bytes
  int64_t taps = 0, tail_length = 0;
  int64_t pass_taps = 0;  // of a pass of K; 0: all
  int64_t pass_rows = 0;  // whose part of a pass stays in L2
  bool pairs = false;
  int64_t unscale = 0, terms = 0;  // pairs: floats into the packed matrix, a column each
  int64_t sums = 0;                // bytes: the same, an int32 a column: its sum
  // Where B widens: of a panel as floats, with what pairs need after it; unscale and terms are
  // floats into that, then.
  int64_t widened_floats = 0;

  // Equal blockings of one matrix are the same bytes.
  int blocking() const {
    if (desc.widens) return 0;
    return panels.empty() ? 0 : static_cast<int>(panels[0].blocks) * (pairs ? -1 : 1);
  }
};

// Fills *plan; returns an empty string or one line saying what is wrong.
std::string MakeGemmPlan(const GemmDesc& desc, Isa isa, GemmPlan* plan);

// B[k][n] is data[k * row_stride + n * column_stride], of GemmDesc::b; one of both strides is 1.
struct GemmB {
  const void* data = nullptr;
  int64_t row_stride = 0, column_stride = 1;
};

// `packed` holds plan.packed_bytes, 64-byte aligned. On the calling thread where pool is null.
void PackGemm(const GemmPlan& plan, const GemmB& b, float* packed, ThreadPool* pool);

// k rows of at most 16 columns of B, bf16, s8 or u8, as lines of product_kernel.h.
void PackLines(DataType type, const GemmB& b, int64_t k, int64_t columns, float* out);

// `rows` rows of floats of a panel of `columns` columns, 16 * blocks floats a row, zero after
// them.
void PackPanel(const GemmB& b, int64_t rows, int64_t columns, int64_t blocks, float* out);

// A, C and `add` are dense.
struct GemmArgs : Clamp {
  const void* a = nullptr;           // [m, k]
  const float* a_factors = nullptr;  // [k], of rows of floats that become bytes; or null
  const float* packed = nullptr;
  // Of an s8 B [n]; of a u8 B the steps of its groups, [groups][n], then their offsets.
  const float* b_scales = nullptr;
  const float* bias = nullptr;  // [n], or null
  void* c = nullptr;            // [m, n]
  const void* add = nullptr;    // [m, n], or null; may be c
  float add_scale = 1.f;
  // A bound chain (post_ops.h), or null. Its tensor operands are floats, dense [m, n]; of
  // operands [sample, n] the first row counts, for all rows.
  const PostOpProgram* program = nullptr;
  void* scratch = nullptr;  // GemmScratchBytes, 64-byte aligned
};

int64_t GemmScratchBytes(const GemmPlan& plan, int64_t rows);

void RunGemm(const GemmPlan& plan, const GemmArgs& args, int64_t rows, ThreadPool& pool);

}  // namespace bd
