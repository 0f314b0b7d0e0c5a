#include "cc/core/pool/pool_kernel.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Of a window's values that are equal to its maximum, the first takes all.
struct MaxGrad {
  Vec top, left;  // left: what no value has taken yet
  MaxGrad(const float* dst, const float* ddst, float) : top(Load(dst)), left(Load(ddst)) {}
  Vec Share(const float* src) {
    const Mask is_top = Equal(Load(src), top);
    const Vec share = Select(is_top, left, Zero());
    left = Select(is_top, Zero(), left);
    return share;
  }
};

struct AvgGrad {
  Vec share;
  AvgGrad(const float*, const float* ddst, float count) : share(Div(Load(ddst), Set1(count))) {}
  Vec Share(const float*) { return share; }
};

template <typename Grad>
void PoolGradOneRow(const PoolGradRow& row) {
  for (int64_t o = 0; o < row.out; ++o) {
    const int64_t first = o * row.stride - row.pad, last = first + row.kernel;
    const int64_t lo = first < 0 ? 0 : first, hi = last > row.width ? row.width : last;
    const float count = static_cast<float>(row.valid_rows * (hi - lo));
    for (int v = 0; v < kBlock; v += kLanes) {
      Grad grad(row.dst + o * kBlock + v, row.ddst + o * kBlock + v, count);
      for (int64_t r = 0; r < row.valid_rows; ++r) {
        const int64_t begin = r * row.row_stride + lo * kBlock + v;
        const float* src = row.src + begin;
        float* dsrc = row.dsrc + begin;
        for (int64_t k = lo; k < hi; ++k, src += kBlock, dsrc += kBlock) {
          Store(dsrc, Add(Load(dsrc), grad.Share(src)));
        }
      }
    }
  }
}

}  // namespace

constexpr PoolGradKernels kPoolGradKernels = {{PoolGradOneRow<MaxGrad>, PoolGradOneRow<AvgGrad>}};

}  // namespace bd::BD_ISA
