// Attributes and shape rules of BlockdnnPackedMatmul, for the shape function and the kernel.
#ifndef CC_TENSORFLOW_ATTRS_PRODUCTS_MATMUL_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_PRODUCTS_MATMUL_ATTRS_H_

#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct MatmulAttrs {
  bool transpose_a = false, transpose_b = false, constant_b = false, has_add = false;
  bool direct = false;  // never in pairs
  float add_scale = 1.f;
  ChainAttrs post_ops;

  // Inputs: a, b, the operands of the chain, and what is added, if there is one.
  static constexpr int kA = 0, kB = 1, kArgs = 2;
  int add() const { return kArgs + post_ops.num_args; }

  template <typename Context>
  Status Read(Context* c) {
    int num_adds;
    TF_RETURN_IF_ERROR(c->GetAttr("transpose_a", &transpose_a));
    TF_RETURN_IF_ERROR(c->GetAttr("transpose_b", &transpose_b));
    TF_RETURN_IF_ERROR(c->GetAttr("constant_b", &constant_b));
    std::string algorithm;
    TF_RETURN_IF_ERROR(c->GetAttr("algorithm", &algorithm));
    direct = algorithm == "direct";
    TF_RETURN_IF_ERROR(c->GetAttr("add_scale", &add_scale));
    TF_RETURN_IF_ERROR(c->GetAttr("num_adds", &num_adds));
    if (num_adds > 1) return Invalid("one matrix can be added, not ", num_adds);
    has_add = num_adds == 1;
    TF_RETURN_IF_ERROR(post_ops.Read(c));
    return Check();
  }

 private:
  Status Check() const;
};

struct MatmulSizes {
  int64_t k = kUnknown, n = kUnknown;
};

// All inputs against each other; `shapes` in the op's order. *dst is [.., n].
Status MatmulShape(const MatmulAttrs& attrs, const std::vector<PartialTensorShape>& shapes,
                   MatmulSizes* sizes, PartialTensorShape* dst);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_PRODUCTS_MATMUL_ATTRS_H_
