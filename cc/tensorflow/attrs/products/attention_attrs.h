// Attributes and shape rules of BlockdnnAttention, for the shape function and the kernel.
#ifndef CC_TENSORFLOW_ATTRS_PRODUCTS_ATTENTION_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_PRODUCTS_ATTENTION_ATTRS_H_

#include <array>
#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct AttentionAttrs {
  // Whether the heads of q, k, v and dst come before their rows, [B, N, T, H], or behind them.
  bool heads_first[4] = {};
  float scale = 1.f, masked_value = 0.f;
  bool causal = false, zero_masked = false;
  int num_biases = 0, num_masks = 0;

  // Inputs: q, k, v, the biases, and a mask, if there is one.
  static constexpr int kQ = 0, kK = 1, kV = 2, kDst = 3, kBiases = 3;
  int mask() const { return kBiases + num_biases; }

  template <typename Context>
  Status Read(Context* c) {
    constexpr const char* kNames[] = {"q_layout", "k_layout", "v_layout", "dst_layout"};
    for (int i = 0; i < 4; ++i) {
      std::string layout;
      TF_RETURN_IF_ERROR(c->GetAttr(kNames[i], &layout));
      heads_first[i] = layout == "BNTH";
    }
    TF_RETURN_IF_ERROR(c->GetAttr("scale", &scale));
    TF_RETURN_IF_ERROR(c->GetAttr("masked_value", &masked_value));
    TF_RETURN_IF_ERROR(c->GetAttr("zero_masked", &zero_masked));
    TF_RETURN_IF_ERROR(c->GetAttr("causal", &causal));
    TF_RETURN_IF_ERROR(c->GetAttr("num_biases", &num_biases));
    TF_RETURN_IF_ERROR(c->GetAttr("num_masks", &num_masks));
    return Check();
  }

 private:
  Status Check() const;
};

struct AttentionSizes {
  int64_t batch = kUnknown, heads = kUnknown, kv_heads = kUnknown;
  int64_t queries = kUnknown, keys = kUnknown;
  int64_t head_size = kUnknown, value_size = kUnknown;
};

// All inputs against each other; `shapes` in the op's order. *dst has the rank of q.
Status AttentionShape(const AttentionAttrs& attrs, const std::vector<PartialTensorShape>& shapes,
                      AttentionSizes* sizes, PartialTensorShape* dst);

// A bias or mask as [sequences, heads, queries, keys], ones in front of what it has; `rank` is that
// of q: tensors of rank 3 have no axis of heads. A dimension more, of 1, is in front of all.
std::array<int64_t, 4> AttentionBiasDims(const PartialTensorShape& bias, int rank);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_PRODUCTS_ATTENTION_ATTRS_H_
