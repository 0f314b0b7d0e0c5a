// How a system reaches its per-ISA kernels.
//
// A kernel file `x_kernel.cc` is compiled once per ISA; its only exported
// symbol is bd::<isa>::kXKernels, a table of plain function pointers. In
// x_kernel.h, BD_KERNEL_TABLE(XKernels) declares the tables of generic, avx2
// and avx512 and defines bd::XKernelsFor(isa). A kernel that is there for other
// sets names them, lowest first and generic among them, here and in
// `kernel_isas` of its BUILD file:
//
//   BD_KERNEL_TABLE_OF(XKernels, generic, avx512, avx512_bf16)
//
// XKernelsFor(isa) is the table of the highest set that is not above `isa`.
#pragma once

#include <initializer_list>

#include "cc/base/cpu/isa.h"

namespace bd {

template <typename Table>
struct KernelRow {
  Isa isa;
  const Table* kernels;
  const Table* emulated;  // null unless the emulation is linked, as in tests
};

// Kernels that this machine lacks the instructions for are replaced by their emulation. Without
// one the table can still be looked into; its kernels cannot run.
template <typename Table, int n>
const Table& PickKernels(const KernelRow<Table> (&rows)[n], Isa isa) {
  const KernelRow<Table>* best = rows;
  for (const KernelRow<Table>& row : rows) {
    if (row.isa <= isa) best = &row;
  }
  return best->emulated != nullptr && !RunsHere(best->isa) ? *best->emulated : *best->kernels;
}

// Who has a row for avx2_vnni has another for avx512, whose processors may lack the former.
constexpr bool LeadsOnToAvx512(std::initializer_list<Isa> sets) {
  bool vnni = false, avx512 = false;
  for (Isa isa : sets) {
    vnni = vnni || isa == Isa::kAvx2Vnni;
    avx512 = avx512 || isa == Isa::kAvx512;
  }
  return avx512 || !vnni;
}

}  // namespace bd

#define BD_KERNEL_TABLE(Table) BD_KERNEL_TABLE_OF(Table, generic, avx2, avx512)

#define BD_KERNEL_TABLE_OF(Table, ...)                                                    \
  BD_FOR_EACH_ISA(BD_DECLARE_KERNELS, Table, __VA_ARGS__)                                 \
  static inline const Table& Table##For(Isa isa) {                                        \
    static_assert(LeadsOnToAvx512({BD_FOR_EACH_ISA(BD_ISA_OF, Table, __VA_ARGS__)}));     \
    const KernelRow<Table> rows[] = {BD_FOR_EACH_ISA(BD_KERNEL_ROW, Table, __VA_ARGS__)}; \
    return PickKernels(rows, isa);                                                        \
  }

#define BD_DECLARE_KERNELS(Table, isa)                 \
  namespace isa {                                      \
  extern const Table k##Table;                         \
  }                                                    \
  namespace isa##_emulated {                           \
    extern __attribute__((weak)) const Table k##Table; \
  }
#define BD_ISA_OF(Table, isa) isa_names::isa,
#define BD_KERNEL_ROW(Table, isa) {isa_names::isa, &isa::k##Table, &isa##_emulated::k##Table},

// Macro(Table, isa) for each of one to six sets.
#define BD_FOR_EACH_ISA(Macro, Table, ...)                                                    \
  BD_ISAS_MACRO(__VA_ARGS__, BD_6_ISAS, BD_5_ISAS, BD_4_ISAS, BD_3_ISAS, BD_2_ISAS, BD_1_ISA) \
  (Macro, Table, __VA_ARGS__)
#define BD_ISAS_MACRO(a, b, c, d, e, f, name, ...) name
#define BD_1_ISA(M, T, a) M(T, a)
#define BD_2_ISAS(M, T, a, ...) M(T, a) BD_1_ISA(M, T, __VA_ARGS__)
#define BD_3_ISAS(M, T, a, ...) M(T, a) BD_2_ISAS(M, T, __VA_ARGS__)
#define BD_4_ISAS(M, T, a, ...) M(T, a) BD_3_ISAS(M, T, __VA_ARGS__)
#define BD_5_ISAS(M, T, a, ...) M(T, a) BD_4_ISAS(M, T, __VA_ARGS__)
#define BD_6_ISAS(M, T, a, ...) M(T, a) BD_5_ISAS(M, T, __VA_ARGS__)

// Macro(size, ...) for each of the sizes that kernels are made for, as a list.
#define BD_1_TO_14(Macro, ...)                                                                    \
  Macro(1, __VA_ARGS__), Macro(2, __VA_ARGS__), Macro(3, __VA_ARGS__), Macro(4, __VA_ARGS__),     \
      Macro(5, __VA_ARGS__), Macro(6, __VA_ARGS__), Macro(7, __VA_ARGS__), Macro(8, __VA_ARGS__), \
      Macro(9, __VA_ARGS__), Macro(10, __VA_ARGS__), Macro(11, __VA_ARGS__),                      \
      Macro(12, __VA_ARGS__), Macro(13, __VA_ARGS__), Macro(14, __VA_ARGS__)
