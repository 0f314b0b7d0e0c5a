#include "cc/core/inner_product/inner_product_bf16.h"

namespace bd {

void PackInnerProductBf16(const InnerProductBf16Plan& plan, const Bfloat16* weights,
                          Bfloat16* packed) {
  const int64_t inputs = plan.desc.src.c(), outputs = plan.desc.dst.c();
  for (int64_t panel = 0; panel < plan.panels; ++panel) {
    for (int64_t pair = 0; pair < plan.pairs; ++pair) {
      for (int64_t lane = 0; lane < kBf16PanelOutputs; ++lane) {
        const int64_t o = panel * kBf16PanelOutputs + lane;
        for (int64_t k = 2 * pair; k < 2 * pair + 2; ++k) {
          *packed++ = k < inputs && o < outputs ? weights[k * outputs + o] : Bfloat16{0};
        }
      }
    }
  }
}

}  // namespace bd
