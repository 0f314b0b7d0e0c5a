// Inner products of bfloat16, added up and stored as float32:
//
//   dst[m][o] = sum over k of src[m][k] * weights[k][o]
//
//   InnerProductBf16Desc -> MakeInnerProductBf16Plan -> InnerProductBf16Plan (immutable)
//     -> PackInnerProductBf16, RunInnerProductBf16
//
// Sums run over k in pairs, two products at a time (cc/simd/convert/bf16.h): with AVX512_BF16 one
// instruction a pair, of which it flushes denormal numbers; on other sets two multiply-adds.
//
//   inner_product_bf16_plan.cc    checks, blocking
//   inner_product_bf16_pack.cc    [k][o] to panels of 16 outputs, k in pairs
//   inner_product_bf16_driver.cc  panels over threads
//   inner_product_bf16_kernel.cc  tiles of some rows and one panel
//   inner_product_bf16_ref.cc     the definition, in double, for tests
#ifndef CC_CORE_INNER_PRODUCT_INNER_PRODUCT_BF16_H_
#define CC_CORE_INNER_PRODUCT_INNER_PRODUCT_BF16_H_

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/data_type.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/inner_product/inner_product_bf16_kernel.h"
#include "cc/layout/tensor_view.h"

namespace bd {

struct InnerProductBf16Desc {
  TensorView src;  // bfloat16 nc, [rows, inputs]
  TensorView dst;  // float32 nc, [rows, outputs]
};

// Immutable once made; safe to run on many threads.
struct InnerProductBf16Plan {
  InnerProductBf16Desc desc;
  int64_t panels = 0;           // ceil(outputs / 16)
  int64_t pairs = 0;            // ceil(inputs / 2)
  int64_t panels_per_task = 0;  // each with all rows
  int64_t tasks = 0;
  const InnerProductBf16Kernels* kernels = nullptr;

  int64_t panel_numbers() const { return pairs * 2 * kBf16PanelOutputs; }
  int64_t packed_bytes() const { return panels * panel_numbers() * SizeOf(DataType::bf16); }
};

// Returns an empty string, or one line that names what is wrong: another data type or layout, or
// unequal numbers of rows.
std::string MakeInnerProductBf16Plan(const InnerProductBf16Desc& desc, Isa isa,
                                     InnerProductBf16Plan* plan);

// `weights` are [inputs][outputs], `packed` holds plan.packed_bytes() bytes, 64-byte aligned to
// be fast: [panels][pairs][16 outputs][2 inputs], zero where there is no input or output.
void PackInnerProductBf16(const InnerProductBf16Plan& plan, const Bfloat16* weights,
                          Bfloat16* packed);

void RunInnerProductBf16(const InnerProductBf16Plan& plan, const Bfloat16* src,
                         const Bfloat16* packed, float* dst, ThreadPool& pool);

// The same in double, rounded once.
void InnerProductBf16Ref(const InnerProductBf16Desc& desc, const Bfloat16* src,
                         const Bfloat16* weights, float* dst);

}  // namespace bd

#endif  // CC_CORE_INNER_PRODUCT_INNER_PRODUCT_BF16_H_
