#include <stdexcept>

#include "benchmarks/cc/buffers.h"
#include "benchmarks/cc/contestant.h"
#include "cc/layout/tensor_desc.h"

namespace bd::layers {
namespace {

// Calls fn(offset in `layout`, offset in nhwc) for every element.
template <typename Fn>
void ForElements(const Dims& dims, Layout layout, Fn&& fn) {
  const TensorDesc desc(dims, DataType::f32, layout), plain(dims, DataType::f32, Layout::nhwc);
  for (int64_t n = 0; n < dims[kN]; ++n) {
    for (int64_t h = 0; h < dims[kH]; ++h) {
      for (int64_t w = 0; w < dims[kW]; ++w) {
        for (int64_t c = 0; c < dims[kC]; ++c)
          fn(desc.offset(n, c, h, w), plain.offset(n, c, h, w));
      }
    }
  }
}

// The first layer reads the network's input, which is plain.
constexpr int64_t kImageChannels = 3;

ConvPlan MakePlan(const Shape& s, Isa isa, ConvAlgorithm algorithm, int threads) {
  ConvDesc d;
  d.n = s.n, d.ic = s.ic, d.ih = s.ih, d.iw = s.iw;
  d.oc = s.oc, d.oh = s.oh(), d.ow = s.ow();
  d.kh = s.kh, d.kw = s.kw, d.sh = s.sh, d.sw = s.sw;
  d.pad_top = s.pad_top, d.pad_left = s.pad_left;
  d.groups = s.groups;
  d.src_layout = s.ic <= kImageChannels ? Layout::nhwc : Layout::nChw16c;
  d.algorithm = algorithm;
  std::string error;
  if (!PostOpChain::Parse("binary(add,channel,#0);eltwise(relu)", &d.post_ops, &error)) {
    throw std::runtime_error(error);
  }
  ConvPlan plan;
  error = MakeConvPlan(d, isa, threads, &plan);
  if (!error.empty()) throw std::runtime_error(s.name + ": " + error);
  return plan;
}

class Ours : public Contestant {
 public:
  Ours(const Problem& p, Isa isa, ConvAlgorithm algorithm, ThreadPool& pool)
      : pool_(pool),
        plan_(MakePlan(p.shape, isa, algorithm, pool.num_threads())),
        src_dims_{p.shape.n, p.shape.ic, p.shape.ih, p.shape.iw},
        dst_dims_{p.shape.n, p.shape.oc, p.shape.oh(), p.shape.ow()},
        src_(TensorDesc(src_dims_, DataType::f32, plan_.desc.src_layout).size(),
             p.activation_copies),
        dst_(TensorDesc(dst_dims_, DataType::f32, plan_.desc.dst_layout).size(),
             p.activation_copies),
        packed_(plan_.packed_floats(), p.weights_copies),
        scratch_(plan_.scratch_bytes() / 4 + 1),
        bias_(p.bias) {
    ForElements(src_dims_, plan_.desc.src_layout,
                [&](int64_t to, int64_t from) { src_[0][to] = p.src[from]; });
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
    std::vector<float> result(dst_dims_[kN] * dst_dims_[kC] * dst_dims_[kH] * dst_dims_[kW]);
    const float* dst = dst_[runs_ % dst_.count()];
    ForElements(dst_dims_, plan_.desc.dst_layout,
                [&](int64_t from, int64_t to) { result[to] = dst[from]; });
    return result;
  }

 private:
  ThreadPool& pool_;
  const ConvPlan plan_;
  const Dims src_dims_, dst_dims_;
  Copies src_, dst_, packed_;
  Buffer scratch_;
  std::vector<float> bias_;
  int64_t runs_ = 0;
};

}  // namespace

std::unique_ptr<Contestant> MakeOurs(const Problem& problem, Isa isa, ConvAlgorithm algorithm,
                                     ThreadPool& pool) {
  return std::make_unique<Ours>(problem, isa, algorithm, pool);
}

}  // namespace bd::layers
