// Attributes that ops on packed weights share, and what a convolution is made of.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/core/conv/conv.h"
#include "cc/tensorflow/attrs/shape_fns.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {

struct WeightsAttrs {
  Layout src_layout = Layout::nChw16c, dst_layout = Layout::nChw16c;
  int64_t channels = 0;
  std::vector<int64_t> weights_shape;  // each op says of what
  int64_t weights_offset = 0;
  int64_t oc = 0;  // of weights_shape
  ConvAlgorithm algorithm = ConvAlgorithm::kAuto;
  bool constant_weights = false;
  ChainAttrs post_ops;
  ChannelPart src_part;
  DstPart dst_part;

  // Of the ops that run convolutions, one or several with the same algorithm.
  void VisitAlgorithm(AttrVisitor& v);
  void VisitLayouts(AttrVisitor& v);
  void VisitWeights(AttrVisitor& v) {
    v("weights_shape: list(int)", &weights_shape);
    v("weights_offset: int >= 0 = 0", &weights_offset);
  }
  void VisitConstant(AttrVisitor& v) { v("constant_weights: bool = false", &constant_weights); }

  // weights_shape must have `rank` sizes, which `meaning` names; sets oc.
  Status CheckWeightsShape(size_t rank, int oc_axis, const char* meaning);
  // The parts and the chain, with oc set.
  Status CheckPartsAndChain();

  int64_t weights_size() const;  // elements
  int64_t src_channels() const { return src_part.tensor_channels(channels); }
  // Checks the weights and, with the result's plane, the operands; sets the shape of dst, whose
  // plane is that or what pooling makes of it. args: the operands, then into if it is there.
  Status DstShape(const PartialTensorShape& weights, const ShapeList& args, const Plane& result,
                  const Plane& dst_plane, PartialTensorShape* dst) const;
  Status Views(DataType src_dtype, DataType dst_dtype, const Plane& src_plane,
               const Plane& dst_plane, TensorView* src, TensorView* dst) const;

  WeightsUse use() const {
    return {weights_offset, constant_weights ? WeightsChange::kNever : WeightsChange::kOften,
            weights_size()};
  }
};

// weights_shape is [kh, kw, ic / groups, oc].
struct ConvAttrs : WeightsAttrs {
  int64_t groups = 1;
  std::vector<int64_t> src_blocks;  // of the wider tensor; empty: all of the part
  WindowAttrs window;
  std::vector<int64_t> pool_window;  // [2, 2] or nothing
  DataType dst_dtype = DataType::f32;

  int64_t pool_h() const { return pool_window.empty() ? 1 : pool_window[0]; }
  int64_t pool_w() const { return pool_window.empty() ? 1 : pool_window[1]; }

  Status CheckWeights();  // and the window
  Status CheckSrcBlocks() const;
  Status CheckPool() const;

  Status Shape(const PartialTensorShape& src, const PartialTensorShape& weights,
               const ShapeList& args, PartialTensorShape* dst) const;
  // Of a full shape that Shape takes.
  Status Describe(DataType dtype, const PartialTensorShape& src, ConvDesc* desc) const;
};

// An op on one or several inputs of weights: src, the weights, the operands of the chains, into.
template <typename Attrs, int kWeightsInputs = 1>
struct WeightsOp : OpDefaults, Attrs {
  static constexpr int kSrc = 0, kWeights = 1, kArgs = kWeights + kWeightsInputs;
  static constexpr int kNumWeights = kWeightsInputs;
  static constexpr std::array<int, kNumWeights> kFixedInputs = [] {
    std::array<int, kNumWeights> inputs = {};
    for (int i = 0; i < kNumWeights; ++i) inputs[i] = kWeights + i;
    return inputs;
  }();

  static ShapeList From(const ShapeList& in, int first) { return {in.begin() + first, in.end()}; }

  WeightsUse weights_use(int) const { return Attrs::use(); }
  std::vector<int> reusable_inputs() const {
    std::vector<int> inputs;
    for (int arg : this->post_ops.chain.ReusableInputs()) inputs.push_back(kArgs + arg);
    return inputs;
  }
  bool has_into() const { return this->dst_part.has_into(); }
  BlockedTensors Blocked(const ShapeList&) const {
    return BlockedTensors()
        .Input(kSrc, this->src_part, this->src_layout, this->channels)
        .Operands(this->post_ops.chain, kArgs, this->dst_layout, this->oc)
        .Output(0, this->dst_part, this->dst_layout, this->oc);
  }
  ConvBuffers Buffers(const TensorView& src, const TensorView& dst, const LaunchMemory& m) const {
    ConvBuffers buffers;
    buffers.src = m.in<float>(kSrc, this->src_part.offset(src));
    buffers.packed = m.weights[0].as<float>();
    buffers.plain = static_cast<const float*>(m.weights[0].plain);
    buffers.args = m.all_in<float>(kArgs);
    buffers.dst = m.out<float>(0, this->dst_part.offset(dst));
    buffers.scratch = m.scratch;
    return buffers;
  }
  // Where src starts, for packing; null where its type is not float's.
  const float* Src(OpKernelContext* ctx, const TensorView& src) const {
    if (src.dtype() != DataType::f32) return nullptr;
    const auto* bytes = static_cast<const char*>(ctx->input(kSrc).data());
    return reinterpret_cast<const float*>(bytes + this->src_part.offset(src));
  }
};

// `src` as in PackConvWeights.
PackRequest WeightsOfConv(const ConvPlan& plan, WeightsPacker pack, const float* src = nullptr);
void FillConvMemoryPlan(const ConvPlan& plan, MemoryPlan* memory);

}  // namespace bd
