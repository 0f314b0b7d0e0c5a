// Binds a plan to buffers; stores plain results.
#include "cc/core/conv/common/conv_run.h"

#include <algorithm>
#include <cstring>

#include "cc/core/post_ops/post_ops_kernel.h"

namespace bd {
namespace {

const float* ResolveIf(bool used, const ConvBuffers& buffers, const OperandRef& ref) {
  return used ? Resolve(ref, buffers.args, buffers.dst) : nullptr;
}

// The same of the tensor of a sum, whatever its type.
const float* ResolveSum(const ConvPlan& plan, const ConvBuffers& buffers) {
  if (!plan.epilogue.has_sum) return nullptr;
  OperandRef first = plan.epilogue.sum;
  first.offset = 0;
  return BytesFrom(Resolve(first, buffers.args, buffers.dst),
                   plan.epilogue.sum.offset * plan.tensors.sum_bytes);
}

// The bias, copied to whole blocks where it needs padding; or null.
const float* PaddedBias(const ConvPlan& plan, const ConvBuffers& buffers, const Scratch& scratch) {
  const float* bias = ResolveIf(plan.epilogue.has_bias, buffers, plan.epilogue.bias);
  float* padded = scratch.Grant(plan.bias);
  if (padded == nullptr) return bias;
  std::memcpy(padded, bias, plan.desc.oc() * sizeof(float));
  std::fill(padded + plan.desc.oc(), padded + plan.bias.count, 0.f);
  return padded;
}

ConvRun BindRun(const ConvPlan& plan, const ConvBuffers& buffers, const BoundPostOps& rest) {
  const Scratch scratch(buffers.scratch);
  const PostOpProgram* program = plan.epilogue.rest.len() > 0 ? rest.program() : nullptr;
  const bool plain_dst = plan.desc.dst.channels_last();
  TileEpilogue epilogue;
  // What goes to a plain dst is floats until then.
  if (!plain_dst) epilogue.tensors = plan.tensors;
  static_cast<Clamp&>(epilogue) = plan.epilogue;
  epilogue.program = plain_dst ? nullptr : program;
  epilogue.silu = plan.epilogue.silu;
  return {plan,
          plan.run_desc,
          buffers,
          PaddedBias(plan, buffers, scratch),
          ResolveSum(plan, buffers),
          epilogue,
          plain_dst ? program : nullptr,
          scratch};
}

}  // namespace

BoundConv::BoundConv(const ConvPlan& plan, const ConvBuffers& buffers)
    : rest_(plan.epilogue.rest, plan.isa, plan.desc.oc(), buffers.args, buffers.dst,
            plan.epilogue.has_sum ? ElementType() : plan.tensors.sum),
      run_(BindRun(plan, buffers, rest_)) {}

TileEpilogue BlocksEpilogue(const ConvRun& run, int64_t first, int64_t blocks, int64_t n,
                            int64_t pixel) {
  const int64_t channel = first * kBlock;
  TileEpilogue e = run.epilogue;
  e.bias = run.bias != nullptr ? run.bias + channel : nullptr;
  e.dst_offset =  // in operands, where dst is blocked
      ((n * run.plan.ocb + first) * run.plane() + pixel) * kBlock;
  if (run.sum != nullptr) {
    e.acc_in = BytesFrom(run.sum, e.dst_offset * run.plan.tensors.sum_bytes);
    e.acc_scale = run.plan.epilogue.sum_scale;
    e.acc_block_stride = run.plane() * kBlock;
  }
  e.channel = channel;
  e.sample_channel = n * run.plan.ocb * kBlock + channel;
  e.valid_lanes =
      static_cast<int32_t>(std::min(kBlock, run.d.oc() - (first + blocks - 1) * kBlock));
  return e;
}

TileEpilogue PlainEpilogue(const ConvRun& run, int64_t first, int64_t blocks, int64_t n,
                           int64_t pixel) {
  const int64_t channels = run.d.oc();
  TileEpilogue e = BlocksEpilogue(run, first, blocks, n, pixel);
  e.tensors = run.plan.tensors;
  e.row_major = 1;
  e.program = run.plain_program;
  e.dst_offset = (n * run.plane() + pixel) * channels + e.channel;
  e.sample_channel = n * channels;
  e.dst_step = e.acc_step = e.operand_step = e.channels = channels;
  if (run.sum != nullptr) e.acc_in = BytesFrom(run.sum, e.dst_offset * e.tensors.sum_bytes);
  return e;
}

void StorePlain(const ConvRun& run, const PlainPart& part, float* blocks) {
  const TileEpilogue e = PlainEpilogue(run, part.first_block, part.blocks, part.n, part.begin);
  EpilogueKernelsFor(run.plan.isa)
      .of_floats(e, {blocks, part.end - part.begin, part.blocks},
                 BytesFrom(run.buffers.dst, e.dst_offset * e.tensors.dst_bytes));
}

void StorePlainRows(const ConvRun& run, int64_t n, int64_t pixel, int64_t first, int64_t pixels,
                    int64_t count, float* rows) {
  const int64_t channels = run.d.oc(), at = (n * run.plane() + pixel) * channels + first;
  if (count == channels) {  // one run
    count *= pixels;
    pixels = 1;
  }
  if (const PostOpProgram* program = run.plain_program) {
    program->kernels->rows(*program, rows,
                           {pixels, count, count, at, channels, first, channels, n * channels});
  }
  for (int64_t p = 0; p < pixels; ++p) {
    std::copy_n(rows + p * count, count, run.buffers.dst + at + p * channels);
  }
}

}  // namespace bd
