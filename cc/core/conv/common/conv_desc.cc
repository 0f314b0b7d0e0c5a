#include "cc/core/conv/common/conv_desc.h"

#include <algorithm>

#include "cc/base/size.h"

namespace bd {

std::string CheckSizes(const ConvDesc& d) {
  if (d.groups < 1 || d.ic() % d.groups != 0 || d.oc() % d.groups != 0) {
    return "groups = " + std::to_string(d.groups) +
           " does not divide ic = " + std::to_string(d.ic()) +
           " and oc = " + std::to_string(d.oc());
  }
  // The sizes of a plan are products of some of these, with small factors; its lists have an entry
  // for each tap of a block of src, or for each block of dst.
  const auto at_least_1 = [](int64_t size) { return std::max<int64_t>(1, size); };
  const auto reach = [](const Window1d& w) {
    return Size(w.size) + Size(w.out) * w.stride + Size(w.kernel - 1) * w.dilation + 1;
  };
  const Size src = CeilDiv(at_least_1(d.ic()), kBlock), dst = CeilDiv(at_least_1(d.oc()), kBlock);
  const Size taps = Size(d.kh()) * d.kw();
  const Size all = src * dst * taps * at_least_1(d.n()) * reach(d.windows.h) * reach(d.windows.w);
  if (all.fits() && src * taps <= Size::kMostEntries && dst <= Size::kMostEntries) return "";
  return "a convolution of " + d.src.ToString() + " to " + d.dst.ToString() + " by " +
         std::to_string(d.kh()) + "x" + std::to_string(d.kw()) +
         " is too large, with its strides, dilations and padding";
}

}  // namespace bd
