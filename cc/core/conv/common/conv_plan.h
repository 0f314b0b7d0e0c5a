// What all algorithms of convolution plan alike, and an algorithm as a row of the table
// (conv.h). What an algorithm plans for itself is a type of its own: Own<T>().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/common/conv_desc.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/layout/pack_key.h"

namespace bd {

// Chain split into what the tile does in registers and the rest.
struct ConvEpilogue : Clamp {
  bool has_bias = false, has_sum = false;
  OperandRef bias;
  OperandRef sum;  // accumulated before the rest
  float sum_scale = 1.f;
  PostOpChain rest;   // empty, or what runs on the tile before the store
  bool silu = false;  // rest is x logistic(x)
};

// [bias] [sum] then a clamp in registers or the rest on the tile. Where sums leave the registers
// before the chain all but the bias is for the pass that stores rows of dst.
ConvEpilogue MakeConvEpilogue(const ConvDesc& desc, bool sums_in_registers);

struct ConvPlan;
struct ConvRun;

// What a row says of itself; cost.h makes cycles of a call of it, and one search takes the least.
struct ConvCost {
  double cycles = 0;   // of the busiest thread, the weights being in its cache
  double weights = 0;  // packed floats that come from memory, whoever reads them
  double packing = 0;  // cycles of a thread, where weights are packed in every call
};

struct Algorithm {
  // "direct", "paired", "direct_plain", "dot", "depthwise", "lanes", "rows", "gemm", or of Winograd
  // the tile of its outputs, such as "winograd4x4"
  const char* name;
  int variant;         // which of its room's algorithms
  bool low_precision;  // whether it multiplies bfloat16 and bytes, too
  // Why it cannot compute this, or must not as desc.algorithm says; or nothing.
  std::string (*applies)(const Algorithm& self, const ConvDesc& desc, Isa isa);
  ConvCost (*cost)(const Algorithm& self, const ConvDesc& desc, Isa isa, int threads);
  // Sets own, pack_key, packed_bytes, tasks, and books scratch.
  void (*plan)(const Algorithm& self, ConvPlan* plan);
  // `hwio` is of desc.types.weights.
  void (*pack)(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool);
  void (*run)(const ConvRun& run, ThreadPool& pool);
  // The power of two by which packed weights suit a source that they will meet, and what brings
  // them there; or null.
  int (*exponent)(const ConvPlan& plan, const float* src) = nullptr;
  void (*suit)(const ConvPlan& plan, int exponent, float* packed, ThreadPool& pool) = nullptr;
};

// Of the rooms; conv_plan.cc makes the table of them, with all variants.
extern const Algorithm kRows, kDepthwise, kLanes, kDirect, kGemm, kWinograd;

struct ConvPlan {
  ConvDesc desc;
  ConvDesc run_desc;  // of what runs: the same, but for the axes of a plane of one row
  Isa isa = Isa::kGeneric;
  int threads = 1;
  const Algorithm* algorithm = nullptr;
  ConvEpilogue epilogue;

  PackKey pack_key;
  int64_t packed_bytes = 0;
  // The kernels read HWIO; what is packed, if anything, is a note about it.
  bool reads_plain_weights = false;

  int64_t icb = 0, ocb = 0;  // channel blocks of src and dst
  // From one image of src to the next, in elements. Images may overlap, as those of volumes do.
  int64_t src_image_stride = 0;
  int64_t src_bytes = 4;    // of an element
  EpilogueTensors tensors;  // those after the sums
  int64_t tasks = 0;

  ScratchPiece<float> bias;  // padded
  ScratchBook scratch;
  std::vector<std::pair<const char*, int64_t>> blocking;  // what was chosen, for reports
  std::shared_ptr<const void> own;                        // the algorithm's plan

  int64_t packed_floats() const { return packed_bytes / static_cast<int64_t>(sizeof(float)); }
  // Where source block b lies among those of the tensor in memory.
  int64_t src_block(int64_t b) const { return desc.src_blocks.empty() ? b : desc.src_blocks[b]; }
  const char* algorithm_name() const { return algorithm->name; }
  const char* note = "";  // what else the log says of it: " paired" where Winograd's planes are
  bool empty() const { return desc.n() * desc.dst_h() * desc.dst_w() * desc.oc() == 0; }
  template <typename T>
  const T& Own() const {
    return *static_cast<const T*>(own.get());
  }
};

// Pointers are to the first byte of what the desc describes, whatever its type.
struct ConvBuffers {
  const float* src = nullptr;          // of a part: its first block
  const float* packed = nullptr;       // may be null where plan.reads_plain_weights
  const float* const* args = nullptr;  // base pointers of the post-op inputs
  float* dst = nullptr;     // may be the operand of a sum, if not pooled; sums without one read it
  void* scratch = nullptr;  // plan.scratch.bytes(); 64-byte aligned to be fast
  const float* plain = nullptr;          // HWIO, where plan.reads_plain_weights or desc.hands_plain
  const float* weight_scales = nullptr;  // [oc], of s8 weights
};

}  // namespace bd
