// How a system reaches its per-ISA kernels.
//
// A kernel file `x_kernel.cc` is compiled once per ISA; its only exported
// symbol is bd::<isa>::GetXKernels(), which returns a table of plain function
// pointers. In x_kernel.h, BD_KERNEL_TABLE(XKernels) declares the three getters
// and defines bd::XKernelsFor(isa).
#ifndef CC_BASE_KERNEL_TABLE_H_
#define CC_BASE_KERNEL_TABLE_H_

#include "cc/base/isa.h"

#define BD_KERNEL_TABLE(Table)                     \
  namespace generic {                              \
  const Table& Get##Table();                       \
  }                                                \
  namespace avx2 {                                 \
  const Table& Get##Table();                       \
  }                                                \
  namespace avx512 {                               \
  const Table& Get##Table();                       \
  }                                                \
  static inline const Table& Table##For(Isa isa) { \
    switch (isa) {                                 \
      case Isa::kAvx512:                           \
        return avx512::Get##Table();               \
      case Isa::kAvx2:                             \
        return avx2::Get##Table();                 \
      default:                                     \
        return generic::Get##Table();              \
    }                                              \
  }

#endif  // CC_BASE_KERNEL_TABLE_H_
