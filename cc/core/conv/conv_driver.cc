// Runs a ConvPlan: binds it to buffers, hands it to the driver of its form.
#include <algorithm>
#include <cstring>

#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_depthwise.h"
#include "cc/core/conv/conv_kernel.h"
#include "cc/core/conv/conv_rows.h"
#include "cc/core/conv/conv_run.h"
#include "cc/core/conv/conv_tiles.h"
#include "cc/core/conv/conv_winograd.h"
#include "cc/core/post_ops/post_ops_bind.h"

namespace bd {
namespace {

const float* ResolveIf(bool used, const ConvBuffers& buffers, const OperandRef& ref) {
  return used ? Resolve(ref, buffers.args, buffers.dst) : nullptr;
}

// The bias, copied to whole blocks where it needs padding; or null.
const float* PaddedBias(const ConvPlan& plan, const ConvBuffers& buffers, const Scratch& scratch) {
  const float* bias = ResolveIf(plan.epilogue.has_bias, buffers, plan.epilogue.bias);
  float* padded = scratch.Grant(plan.bias);
  if (padded == nullptr) return bias;
  std::memcpy(padded, bias, plan.desc.oc * sizeof(float));
  std::fill(padded + plan.desc.oc, padded + plan.bias.count, 0.f);
  return padded;
}

ConvRun BindRun(const ConvPlan& plan, const ConvBuffers& buffers, const BoundPostOps& rest) {
  const Scratch scratch(buffers.scratch);
  const PostOpProgram* program = plan.epilogue.rest.len() > 0 ? rest.program() : nullptr;
  const bool plain_dst = plan.desc.dst_layout == Layout::nhwc;
  TileEpilogue epilogue = {};
  epilogue.clamp = plan.epilogue.clamp;
  epilogue.lo = plan.epilogue.lo;
  epilogue.hi = plan.epilogue.hi;
  epilogue.program = plain_dst ? nullptr : program;
  epilogue.silu = plan.epilogue.silu;
  return {plan,
          plan.desc,
          ConvKernelsFor(plan.isa),
          buffers,
          PaddedBias(plan, buffers, scratch),
          ResolveIf(plan.epilogue.has_sum, buffers, plan.epilogue.sum),
          epilogue,
          plain_dst ? program : nullptr,
          scratch};
}

}  // namespace

BoundConv::BoundConv(const ConvPlan& plan, const ConvBuffers& buffers)
    : rest_(plan.epilogue.rest, plan.desc.oc, buffers.args, buffers.dst),
      run_(BindRun(plan, buffers, rest_)) {}

TaskRange Locate(const ConvRun& run, int64_t task) {
  const ConvPlan& plan = run.plan;
  const int64_t split = task % plan.group_splits;
  const int64_t strip = task / plan.group_splits % plan.strips;
  const int64_t count = static_cast<int64_t>(plan.groups.size());
  TaskRange r;
  r.n = task / plan.group_splits / plan.strips;
  r.begin = strip * plan.strip_pixels;
  r.end = std::min(run.plane(), r.begin + plan.strip_pixels);
  r.group_begin = count * split / plan.group_splits;
  r.ahead_end = r.group_end = count * (split + 1) / plan.group_splits;
  return r;
}

void StorePlain(const ConvRun& run, const TaskRange& r, const float* blocks, float* row) {
  const std::vector<OutputGroup>& groups = run.plan.groups;
  const OutputGroup& last = groups[r.group_end - 1];
  PlainStoreArgs s;
  s.blocks = blocks;
  s.row = row;
  s.px = r.end - r.begin;
  s.first = groups[r.group_begin].first_block * kBlock;
  s.count = std::min(run.d.oc, (last.first_block + last.blocks) * kBlock) - s.first;
  s.channels = run.d.oc;
  s.program = run.plain_program;
  s.dst_offset = (r.n * run.plane() + r.begin) * run.d.oc;
  s.sample_offset = r.n * run.d.oc;
  s.dst = run.buffers.dst + s.dst_offset;
  run.kernels.plain_store(s);
}

TileEpilogue GroupEpilogue(const ConvRun& run, const OutputGroup& group, int64_t n, int64_t pixel) {
  const int64_t channel = group.first_block * kBlock;
  TileEpilogue e = run.epilogue;
  e.bias = run.bias != nullptr ? run.bias + channel : nullptr;
  e.dst_offset =  // in operands, where dst is blocked
      ((n * run.plan.ocb + group.first_block) * run.plane() + pixel) * kBlock;
  if (run.sum != nullptr) {
    e.acc_in = run.sum + e.dst_offset;
    e.acc_scale = run.plan.epilogue.sum_scale;
    e.acc_block_stride = run.plane() * kBlock;
  }
  e.channel = channel;
  e.sample_channel = n * run.plan.ocb * kBlock + channel;
  e.valid_lanes = static_cast<int32_t>(
      std::min(kBlock, run.d.oc - (group.first_block + group.blocks - 1) * kBlock));
  return e;
}

void RunConv(const ConvPlan& plan, const ConvBuffers& buffers, ThreadPool& pool) {
  const ConvDesc& d = plan.desc;
  if (d.n * d.dst_h() * d.dst_w() * d.oc == 0) return;
  const BoundConv bound(plan, buffers);
  const ConvRun& run = bound.run();
  switch (plan.packing.form) {
    case ConvForm::kTile:
    case ConvForm::kPlainTile:
      return RunTiles(run, pool);
    case ConvForm::kDot:
      return RunDots(run, pool);
    case ConvForm::kRows:
      return RunRows(run, pool);
    case ConvForm::kWinograd:
      return RunWinograd(run, pool);
    case ConvForm::kDepthwise:
      return RunDepthwise(run, pool);
  }
}

}  // namespace bd
