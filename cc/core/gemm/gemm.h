// Matrix product on packed weights: C = epilogue(A B), row-major, of any sizes.
//
//   GemmPlan plan;                                        // once a shape of B
//   std::string error = MakeGemmPlan({k, n}, isa, &plan);
//   AlignedBuffer packed(plan.packed_bytes);              // once a B
//   PackGemm(plan, {b, /*row_stride=*/n, /*column_stride=*/1}, packed.As<float>(), &pool);
//
//   GemmArgs args;                                        // a call: C [m, n] = A [m, k] B + bias
//   args.a = a;               args.a_row_stride = k;
//   args.packed = packed.As<float>();
//   args.bias = bias;                                     // [n], or null
//   args.c = c;               args.c_row_stride = n;
//   args.add = c;             args.add_row_stride = n;    // C += A B; or null
//   args.scratch = scratch;                               // GemmScratchBytes(plan, m)
//   RunGemm(plan, args, m, pool);
//
// Element C[i][j] is the sum over k from bias[j] on; then, where `add` is given,
// add_scale * add[i][j]; then the clamp, or the chain. No byte outside the matrices is touched,
// neither read nor written, whatever their sizes and strides. Results do not depend on the number
// of threads.
//
// With GemmDesc::pairs, on a CPU that gains from it, B is packed for the fast inner product
// (fip.h), and A is brought into the form for it first, in `scratch`. Packing takes longer then:
// that is for a B that many products share. Sums are in the order of fip_kernel.h, else of k.
//
// Who owns what: the caller owns all memory; a plan is immutable and may be shared by threads; the
// packed matrix belongs to one {isa, k, n} (GemmPlan::blocking). The loop is gemm_panels.h, the
// register tiles gemm_kernel.h: callers whose A is not a matrix use these.
#ifndef CC_CORE_GEMM_GEMM_H_
#define CC_CORE_GEMM_GEMM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {

// a_k_stride: floats between neighbours of a row of A. Only 1: a transposed A (weight gradients)
// has a K stride, for which there is no register tile yet; transpose it before.
struct GemmDesc {
  int64_t k = 0, n = 0;
  int64_t a_k_stride = 1;
  bool pairs = false;
};

struct GemmPlan {
  GemmDesc desc;
  Isa isa = Isa::kGeneric;
  std::vector<Panel> panels;
  int64_t packed_bytes = 0;
  std::vector<int64_t> tap_offsets;  // runs of K, the last one shorter
  int64_t taps = 0, tail_length = 0;
  int64_t pass_taps = 0;
  bool pairs = false;
  int64_t unscale = 0, terms = 0;  // pairs: floats into the packed matrix, a column each

  // Equal blockings of one matrix are the same bytes.
  int blocking() const {
    return panels.empty() ? 0 : static_cast<int>(panels[0].blocks) * (pairs ? -1 : 1);
  }
};

// Fills *plan; returns an empty string or one line saying what is wrong.
std::string MakeGemmPlan(const GemmDesc& desc, Isa isa, GemmPlan* plan);

// B[k][n] is data[k * row_stride + n * column_stride].
struct GemmB {
  const float* data = nullptr;
  int64_t row_stride = 0, column_stride = 1;
};

// `packed` holds plan.packed_bytes, 64-byte aligned. On the calling thread where pool is null.
void PackGemm(const GemmPlan& plan, const GemmB& b, float* packed, ThreadPool* pool);

// Rows [begin, end) of a panel of `columns` columns, 16 * blocks floats a row, zero behind them.
void PackPanel(const GemmB& b, int64_t rows, int64_t columns, int64_t blocks, float* out);

struct GemmArgs {
  const float* a = nullptr;
  int64_t a_row_stride = 0;
  const float* packed = nullptr;
  const float* bias = nullptr;  // [n], or null
  float* c = nullptr;
  int64_t c_row_stride = 0;
  const float* add = nullptr;  // [m, n], or null; may be c
  int64_t add_row_stride = 0;
  float add_scale = 1.f;
  bool clamp = false;
  float lo = 0.f, hi = 0.f;
  // A bound chain (post_ops_bind.h), or null. Its tensor operands are dense [m, n]; of
  // operands [sample, n] row `sample` counts, one for all rows.
  const PostOpProgram* program = nullptr;
  int64_t sample = 0;
  void* scratch = nullptr;  // GemmScratchBytes, 64-byte aligned
};

int64_t GemmScratchBytes(const GemmPlan& plan, int64_t rows);

void RunGemm(const GemmPlan& plan, const GemmArgs& args, int64_t rows, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_GEMM_GEMM_H_
