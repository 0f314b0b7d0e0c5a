// What a kernel of bfloat16 inner products does: some rows against one panel of weights.
#ifndef CC_CORE_INNER_PRODUCT_INNER_PRODUCT_BF16_KERNEL_H_
#define CC_CORE_INNER_PRODUCT_INNER_PRODUCT_BF16_KERNEL_H_

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"

namespace bd {

constexpr int64_t kBf16PanelOutputs = 16;

struct InnerProductBf16Args {
  const Bfloat16* src;  // [rows][inputs]
  int64_t rows, inputs;
  int64_t src_stride;     // from one row to the next
  const Bfloat16* panel;  // [ceil(inputs / 2)][16][2]
  float* dst;             // [rows][outputs]
  int64_t dst_stride;
  int64_t outputs;  // at most 16; nothing beyond is written
};

struct InnerProductBf16Kernels {
  void (*panel)(const InnerProductBf16Args& args);
};

BD_KERNEL_TABLE_OF(InnerProductBf16Kernels, generic, avx2, avx512, avx512_bf16)

}  // namespace bd

#endif  // CC_CORE_INNER_PRODUCT_INNER_PRODUCT_BF16_KERNEL_H_
