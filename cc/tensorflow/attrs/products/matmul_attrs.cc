#include "cc/tensorflow/attrs/products/matmul_attrs.h"

namespace bd {

Status MatmulAttrs::Check() const {
  if (post_ops.chain.ReadsDst()) {
    return Invalid("post_ops read what dst held before; give that as an operand, or as c");
  }
  for (int i = 0; i < post_ops.chain.len(); ++i) {
    const PostOp& op = post_ops.chain.entries()[i];
    if (op.kind == PostOpKind::kBinary && op.shape == OperandShape::kSampleChannel) {
      return InvalidEntry(post_ops.chain, i, "a product has no samples; use a tensor operand");
    }
  }
  return absl::OkStatus();
}

Status MatmulShape(const MatmulAttrs& attrs, const std::vector<PartialTensorShape>& shapes,
                   MatmulSizes* sizes, PartialTensorShape* dst) {
  *sizes = MatmulSizes();
  *dst = PartialTensorShape();
  const PartialTensorShape& a = shapes[MatmulAttrs::kA];
  const PartialTensorShape& b = shapes[MatmulAttrs::kB];
  if (!b.unknown_rank()) {
    if (b.dims() != 2) return Invalid("b must be a matrix; got ", b.DebugString());
    sizes->k = b.dim_size(attrs.transpose_b ? 1 : 0);
    sizes->n = b.dim_size(attrs.transpose_b ? 0 : 1);
  }
  if (!a.unknown_rank()) {
    if (a.dims() < 1 || (attrs.transpose_a && a.dims() != 2)) {
      return Invalid("a must be ", attrs.transpose_a ? "a matrix" : "[.., k]", "; got ",
                     a.DebugString());
    }
    const int64_t k = a.dim_size(attrs.transpose_a ? 0 : a.dims() - 1);
    if (k != kUnknown && sizes->k != kUnknown && k != sizes->k) {
      return Invalid("a has ", k, " terms and b ", sizes->k, ": ", a.DebugString(),
                     attrs.transpose_a ? " transposed" : "", " and ", b.DebugString(),
                     attrs.transpose_b ? " transposed" : "");
    }
    if (sizes->k == kUnknown) sizes->k = k;
    if (attrs.transpose_a) {
      TF_RETURN_IF_ERROR(BuildShape({a.dim_size(1), sizes->n}, dst));
    } else {
      auto dims = a.dim_sizes();
      dims.back() = sizes->n;
      TF_RETURN_IF_ERROR(BuildShape(dims, dst));
    }
  }
  if (attrs.has_add && !shapes[attrs.add()].IsCompatibleWith(*dst)) {
    return Invalid("c must be ", dst->DebugString(), "; got ", shapes[attrs.add()].DebugString());
  }
  const std::vector<PartialTensorShape> args(shapes.begin() + MatmulAttrs::kArgs,
                                             shapes.begin() + attrs.add());
  if (sizes->n == kUnknown) return absl::OkStatus();
  return CheckOperands(attrs.post_ops, args, OperandShapes{*dst, sizes->n, {}});
}

}  // namespace bd
