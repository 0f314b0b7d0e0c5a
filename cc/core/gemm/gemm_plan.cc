// Plans matrix products: gemm.h.
#include <algorithm>

#include "cc/base/machine.h"
#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/gemm.h"
#include "cc/core/gemm/low_precision_pack.h"

namespace bd {
namespace {

// The weights of a pass of K, which all rows of A share before the next: they stay in L1, where
// AVX-512 has 32 columns and others 16.
constexpr int64_t kPassBytes = 24 << 10;

// What tiles multiply; kBlocked: there are none.
TileFamily FamilyOf(const GemmDesc& d) {
  const auto is_float = [](DataType t) { return t == DataType::f32 || t == DataType::bf16; };
  if (d.widens) {
    const bool low_precision = d.b == DataType::bf16 || d.b == DataType::s8 || d.b == DataType::u8;
    return d.a == DataType::f32 && low_precision ? TileFamily::kStrided : TileFamily::kBlocked;
  }
  if (d.a == DataType::f32 && d.b == DataType::f32) return TileFamily::kStrided;
  if (is_float(d.a) && is_float(d.b)) return TileFamily::kBf16;
  const bool rows = d.a == DataType::u8 || d.a == DataType::s8 || d.a == DataType::f32;
  return d.b == DataType::s8 && rows ? TileFamily::kInt8 : TileFamily::kBlocked;
}

std::string CheckTypes(const GemmDesc& d) {
  const TileFamily family = FamilyOf(d);
  const std::string product =
      std::string(" product of ") + DataTypeName(d.a) + " and " + DataTypeName(d.b);
  if (family == TileFamily::kBlocked) return "there is no" + product + "; convert one before";
  if (d.b == DataType::u8 && (d.group < 1 || (d.group % 8 != 0 && d.group < d.k))) {
    return StrCat("weights of 4 bits share a step in groups of 8 rows, 16, ..; got ", d.group);
  }
  for (DataType type : {d.tensors.dst.dtype, d.tensors.sum.dtype}) {
    if (type == DataType::f32) continue;
    if (IsLowPrecision(family) && (type == DataType::bf16 || type == DataType::u8)) continue;
    return "a" + product + " neither stores nor adds " + DataTypeName(type);
  }
  if (family == TileFamily::kInt8 && d.k > kMostInt8Products) {
    return StrCat("sums of ", d.k, " products of bytes may be no int32; at most ",
                  kMostInt8Products, " are");
  }
  return "";
}

}  // namespace

std::string MakeGemmPlan(const GemmDesc& desc, Isa isa, GemmPlan* plan) {
  if (!(std::max(desc.k, desc.n) <= kBlock * Size::kMostEntries) ||
      !(Size(desc.k) * desc.n * sizeof(float)).fits()) {
    return StrCat("a product of ", desc.k, " by ", desc.n, " has a negative size, or is too large");
  }
  if (std::string error = CheckTypes(desc); !error.empty()) return error;
  *plan = GemmPlan();
  plan->desc = desc;
  plan->desc.tensors.dst_bytes = SizeOf(desc.tensors.dst.dtype);
  plan->desc.tensors.sum_bytes = SizeOf(desc.tensors.sum.dtype);
  plan->isa = isa;
  plan->family = FamilyOf(desc);
  const bool low_precision = IsLowPrecision(plan->family);
  const int64_t k = plan->k_dwords = CeilDiv(desc.k, PerDword(plan->family));
  const int64_t blocks = CeilDiv(desc.n, kBlock), widest = GemmKernelsFor(isa).tile_blocks;
  int64_t offset = 0;
  for (int64_t b = 0; b < blocks; b += widest) {
    const int64_t of_panel = std::min(widest, blocks - b);
    plan->panels.push_back({b, of_panel, desc.widens ? 0 : offset});
    offset += k * of_panel * kBlock;
  }
  if (desc.widens) offset = k * std::min(blocks, widest) * kBlock;
  plan->pairs = desc.pairs && !low_precision && GainsFromFip(isa);
  if (plan->pairs) {
    const int64_t of_all = (desc.widens ? widest : blocks) * kBlock;
    plan->unscale = offset;
    plan->terms = offset + of_all;
    offset += 2 * of_all;
  }
  if (desc.widens) {
    plan->widened_floats = offset;
    offset = blocks * PanelFloats(desc.b, desc.k);
  }
  if (plan->family == TileFamily::kInt8) {
    plan->sums = offset;
    offset += blocks * kBlock;
  }
  plan->packed_bytes = offset * static_cast<int64_t>(sizeof(float));
  plan->taps = k / kGemmTap;
  plan->tail_length = k % kGemmTap;
  // Low-precision tiles count bytes.
  const int64_t tap = kGemmTap * (low_precision ? static_cast<int64_t>(sizeof(float)) : 1);
  for (int64_t t = 0; t * kGemmTap < k; ++t) plan->tap_offsets.push_back(t * tap);
  const int64_t all = static_cast<int64_t>(plan->tap_offsets.size());
  const int64_t most =
      kPassBytes / (kGemmTap * widest * kBlock * static_cast<int64_t>(sizeof(float)));
  if (all > 0 && !low_precision) {
    plan->pass_taps = CeilDiv(all, CeilDiv(all, std::max<int64_t>(1, most)));
    const int64_t floats = std::min(k, plan->pass_taps * kGemmTap);
    plan->pass_rows =
        std::max<int64_t>(kMaxTilePixels, ThisMachine().l2_bytes * 3 / 8 /
                                              (floats * static_cast<int64_t>(sizeof(float))));
  }
  return "";
}

}  // namespace bd
