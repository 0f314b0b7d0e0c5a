// oneDNN at its best: weights in its own layout, bias and ReLU fused, primitive and memory objects
// made once, and its C call. Of its algorithms and layouts the fastest counts, since the layout
// that oneDNN 3.2 chooses by itself, channels last, is not always its fastest.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <utility>

#include "benchmarks/cc/contestant.h"
#include "benchmarks/cc/machine.h"

namespace bd::layers {
namespace {

using dnnl::memory;
using Primitive = dnnl::convolution_forward::primitive_desc;

dnnl::engine& Engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  static dnnl::stream stream(Engine());
  return stream;
}

memory::desc Desc(const memory::dims& dims, const memory::dims& strides) {
  return memory::desc(dims, memory::data_type::f32, strides);
}

memory::desc Desc(const memory::dims& dims, memory::format_tag tag) {
  return memory::desc(dims, memory::data_type::f32, tag);
}

memory::desc ChannelsLast(int64_t n, int64_t c, int64_t h, int64_t w) {
  return Desc({n, c, h, w}, {h * w * c, 1, w * c, c});
}

// HWIO [kh, kw, ic / groups, oc]; the output channels of a group are neighbours.
memory::desc PlainWeights(const Shape& s) {
  const int64_t ic = s.ic / s.groups, oc = s.oc / s.groups, column = ic * s.oc;
  if (s.groups == 1) return Desc({oc, ic, s.kh, s.kw}, {1, s.oc, s.kw * column, column});
  return Desc({s.groups, oc, ic, s.kh, s.kw}, {oc, 1, s.oc, s.kw * column, column});
}

struct Choice {
  dnnl::algorithm algorithm;
  memory::format_tag activations;
};
constexpr auto kAny = memory::format_tag::any;
constexpr Choice kChoices[] = {
    {dnnl::algorithm::convolution_auto, kAny},
    {dnnl::algorithm::convolution_direct, kAny},
    {dnnl::algorithm::convolution_winograd, kAny},
    {dnnl::algorithm::convolution_direct, memory::format_tag::nChw16c},
    {dnnl::algorithm::convolution_direct, memory::format_tag::nChw8c},
};

// Empty if oneDNN does not offer this choice for this layer.
Primitive Describe(const Shape& s, const Choice& choice) {
  const memory::desc src = Desc({s.n, s.ic, s.ih, s.iw}, choice.activations);
  const memory::desc dst = Desc({s.n, s.oc, s.oh(), s.ow()}, choice.activations);
  const memory::desc bias = Desc({s.oc}, kAny);
  const memory::dims ungrouped = {s.oc, s.ic, s.kh, s.kw};
  const memory::dims grouped = {s.groups, s.oc / s.groups, s.ic / s.groups, s.kh, s.kw};
  const memory::desc weights = Desc(s.groups == 1 ? ungrouped : grouped, kAny);
  const memory::dims strides = {s.sh, s.sw}, dilates = {0, 0};
  const memory::dims before = {s.pad_top, s.pad_left}, after = {s.pad_bottom, s.pad_right};
  constexpr auto kInference = dnnl::prop_kind::forward_inference;
  dnnl::post_ops post_ops;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  try {
#if DNNL_VERSION_MAJOR >= 3
    post_ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f);
    attributes.set_post_ops(post_ops);
    return Primitive(Engine(), kInference, choice.algorithm, src, weights, bias, dst, strides,
                     dilates, before, after, attributes, true);
#else
    post_ops.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
    attributes.set_post_ops(post_ops);
    return Primitive(
        {kInference, choice.algorithm, src, weights, bias, dst, strides, dilates, before, after},
        attributes, Engine(), true);
#endif
  } catch (const dnnl::error&) {
    return Primitive();
  }
}

void Reorder(const memory::desc& from_desc, const float* from, const memory::desc& to_desc,
             float* to) {
  memory src(from_desc, Engine(), const_cast<float*>(from)), dst(to_desc, Engine(), to);
  dnnl::reorder(src, dst).execute(Stream(), src, dst);
  Stream().wait();
}

// Copies of a tensor as objects of oneDNN.
class Memories {
 public:
  Memories(const memory::desc& desc, int64_t count) : desc_(desc), copies_(Floats(desc), count) {
    for (int64_t i = 0; i < count; ++i) objects_.emplace_back(desc, Engine(), copies_[i]);
  }
  Memories(const memory::desc& desc, int64_t count, const memory::desc& plain, const float* values)
      : Memories(desc, count) {
    Reorder(plain, values, desc, copies_[0]);
    copies_.Replicate();
  }
  const memory::desc& desc() const { return desc_; }
  dnnl_memory_t object(int64_t run) const { return objects_[run % copies_.count()].get(); }
  const float* data(int64_t run) const { return copies_[run % copies_.count()]; }

 private:
  static int64_t Floats(const memory::desc& desc) {
    return static_cast<int64_t>((desc.get_size() + 3) / 4);
  }
  memory::desc desc_;
  Copies copies_;
  std::vector<memory> objects_;
};

class Onednn : public Contestant {
 public:
  Onednn(const Problem& p, const Primitive& primitive, int64_t weights_copies,
         int64_t activation_copies)
      : algorithm_(primitive.impl_info_str()),
        plain_dst_(ChannelsLast(p.shape.n, p.shape.oc, p.shape.oh(), p.shape.ow())),
        convolution_(primitive),
        src_(primitive.src_desc(), activation_copies,
             ChannelsLast(p.shape.n, p.shape.ic, p.shape.ih, p.shape.iw), p.src.data()),
        weights_(primitive.weights_desc(), weights_copies, PlainWeights(p.shape), p.weights.data()),
        bias_(primitive.bias_desc(), 1, Desc({p.shape.oc}, {1}), p.bias.data()),
        dst_(primitive.dst_desc(), activation_copies),
        scratch_(primitive.scratchpad_desc(), 1),
        dst_floats_(p.shape.dst_floats()) {}

  std::string algorithm() const override { return algorithm_; }

  void Run() override {
    ++runs_;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, src_.object(runs_)},
                                    {DNNL_ARG_WEIGHTS, weights_.object(runs_)},
                                    {DNNL_ARG_BIAS, bias_.object(0)},
                                    {DNNL_ARG_DST, dst_.object(runs_)},
                                    {DNNL_ARG_SCRATCHPAD, scratch_.object(0)}};
    if (dnnl_primitive_execute(convolution_.get(), Stream().get(), 5, args) != dnnl_success) {
      throw std::runtime_error("oneDNN failed at " + algorithm_);
    }
  }

  std::vector<float> Result() const override {
    std::vector<float> result(dst_floats_);
    Reorder(dst_.desc(), dst_.data(runs_), plain_dst_, result.data());
    return result;
  }

 private:
  const std::string algorithm_;
  const memory::desc plain_dst_;
  const dnnl::convolution_forward convolution_;
  const Memories src_, weights_, bias_, dst_, scratch_;
  const int64_t dst_floats_;
  int64_t runs_ = 0;
};

double TrialSeconds(Contestant&& contestant) {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 12; ++run) {
    const auto start = std::chrono::steady_clock::now();
    contestant.Run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (run > 1) best = std::min(best, took.count());
  }
  return best;
}

}  // namespace

std::string SetUpOnednn(Isa isa, int threads) {
  omp_set_num_threads(threads);
  // Its lowest instruction set is SSE4.1.
  if (isa == Isa::kGeneric) dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
  if (isa == Isa::kAvx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  const dnnl::version_t& v = *dnnl::version();
  return std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
}

std::unique_ptr<Contestant> MakeOnednn(const Problem& problem) {
  Primitive best;
  double best_seconds = std::numeric_limits<double>::infinity();
  std::vector<std::string> tried;
  for (const Choice& choice : kChoices) {
    const Primitive primitive = Describe(problem.shape, choice);
    if (!primitive.get(true)) continue;
    const std::string name = primitive.impl_info_str();
    if (std::find(tried.begin(), tried.end(), name) != tried.end()) continue;
    const bool reference = name.rfind("ref", 0) == 0;  // seconds a call
    if (reference && !tried.empty()) continue;
    tried.push_back(name);
    const double seconds = TrialSeconds(Onednn(problem, primitive, 1, 1));
    if (seconds < best_seconds) {
      best = primitive;
      best_seconds = seconds;
    }
  }
  if (tried.empty()) throw std::runtime_error(problem.shape.name + ": oneDNN declines");
  return std::make_unique<Onednn>(problem, best, problem.weights_copies, problem.activation_copies);
}

}  // namespace bd::layers
