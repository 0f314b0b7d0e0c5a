#include <stdexcept>

#include "benchmarks/cc/contestant.h"
#include "benchmarks/cc/machine.h"
#include "cc/core/conv/conv.h"
#include "cc/layout/tensor_view.h"

namespace bd::layers {
namespace {

// Calls fn(place in `view`, place in nhwc) for every element.
template <typename Fn>
void ForElements(const TensorView& view, Fn&& fn) {
  const TensorView plain(view.dtype(), Layout::nhwc, view.dims());
  for (int64_t n = 0; n < view.n(); ++n) {
    for (int64_t p = 0; p < view.pixels(); ++p) {
      for (int64_t c = 0; c < view.c(); ++c) fn(view.element(n, c, p), plain.element(n, c, p));
    }
  }
}

// The first layer reads the network's input, which is plain.
constexpr int64_t kImageChannels = 3;

ConvPlan MakePlan(const Shape& s, Isa isa, ConvAlgorithm algorithm, int threads,
                  const Algorithm* row) {
  const ConvDesc d = DescOf(s, algorithm);
  ConvPlan plan;
  const std::string error = row == nullptr ? MakeConvPlan(d, isa, threads, &plan)
                                           : MakeConvPlanBy(*row, d, isa, threads, &plan);
  if (!error.empty()) throw std::runtime_error(s.name + ": " + error);
  return plan;
}

class Ours : public Contestant {
 public:
  Ours(const Problem& p, Isa isa, ConvAlgorithm algorithm, ThreadPool& pool, const Algorithm* row)
      : pool_(pool),
        plan_(MakePlan(p.shape, isa, algorithm, pool.num_threads(), row)),
        src_(plan_.desc.src.elements(), p.activation_copies),
        dst_(plan_.desc.dst.elements(), p.activation_copies),
        packed_(plan_.packed_floats(), p.weights_copies),
        scratch_(plan_.scratch.bytes() / 4 + 1),
        bias_(p.bias) {
    ForElements(plan_.desc.src, [&](int64_t to, int64_t from) { src_[0][to] = p.src[from]; });
    src_.Replicate();
    PackConvWeights(plan_, p.weights.data(), packed_[0], pool);
    packed_.Replicate();
  }

  std::string algorithm() const override { return plan_.algorithm_name(); }

  void Run() override {
    ++runs_;
    const float* args[] = {bias_.data()};
    ConvBuffers buffers;
    buffers.src = src_[runs_ % src_.count()];
    buffers.packed = packed_[runs_ % packed_.count()];
    buffers.args = args;
    buffers.dst = dst_[runs_ % dst_.count()];
    buffers.scratch = scratch_.data();
    RunConv(plan_, buffers, pool_);
  }

  std::vector<float> Result() const override {
    const TensorView& to_dst = plan_.desc.dst;
    std::vector<float> result(to_dst.n() * to_dst.c() * to_dst.pixels());
    const float* dst = dst_[runs_ % dst_.count()];
    ForElements(plan_.desc.dst, [&](int64_t from, int64_t to) { result[to] = dst[from]; });
    return result;
  }

 private:
  ThreadPool& pool_;
  const ConvPlan plan_;
  Copies src_, dst_, packed_;
  Buffer scratch_;
  std::vector<float> bias_;
  int64_t runs_ = 0;
};

}  // namespace

ConvDesc DescOf(const Shape& s, ConvAlgorithm algorithm) {
  ConvDesc d;
  const Layout layout = s.ic <= kImageChannels ? Layout::nhwc : Layout::nChw16c;
  d.src = TensorView(DataType::f32, layout, {s.n, s.ic, s.ih, s.iw});
  d.dst = TensorView(DataType::f32, Layout::nChw16c, {s.n, s.oc, s.oh(), s.ow()});
  d.windows.h = {s.ih, s.kh, s.sh, 1, s.pad_top, 0, s.oh()};
  d.windows.w = {s.iw, s.kw, s.sw, 1, s.pad_left, 0, s.ow()};
  d.groups = s.groups;
  d.algorithm = algorithm;
  std::string error;
  if (!PostOpChain::Parse("binary(add,channel,#0);eltwise(relu)", &d.post_ops, &error)) {
    throw std::runtime_error(error);
  }
  return d;
}

std::unique_ptr<Contestant> MakeOurs(const Problem& problem, Isa isa, ConvAlgorithm algorithm,
                                     ThreadPool& pool, const Algorithm* row) {
  return std::make_unique<Ours>(problem, isa, algorithm, pool, row);
}

}  // namespace bd::layers
