// Attributes and shape rules of BlockdnnRnn, for the shape function and the kernel.
#ifndef CC_TENSORFLOW_ATTRS_PRODUCTS_RNN_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_PRODUCTS_RNN_ATTRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct RnnAttrs {
  std::string cell, activation, recurrent_activation;
  bool reset_after = true, go_backwards = false, restores_order = false, return_sequences = false,
       zero_output_for_mask = false, time_major = false, training = false, direct = false,
       constant_weights = false;
  bool has_bias = false, has_mask = false, has_lengths = false;
  int num_states = 0;

  int64_t gates() const { return cell == "lstm" ? 4 : cell == "gru" ? 3 : 1; }
  bool two_biases() const { return cell == "gru" && reset_after; }

  // Inputs: src, kernel, recurrent_kernel, then those that are there.
  static constexpr int kSrc = 0, kKernel = 1, kRecurrent = 2, kBias = 3;
  int first_state() const { return kBias + has_bias; }
  int mask() const { return first_state() + num_states; }
  int lengths() const { return mask() + has_mask; }
  int num_inputs() const { return lengths() + has_lengths; }

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("cell", &cell));
    TF_RETURN_IF_ERROR(c->GetAttr("activation", &activation));
    TF_RETURN_IF_ERROR(c->GetAttr("recurrent_activation", &recurrent_activation));
    TF_RETURN_IF_ERROR(c->GetAttr("reset_after", &reset_after));
    TF_RETURN_IF_ERROR(c->GetAttr("go_backwards", &go_backwards));
    TF_RETURN_IF_ERROR(c->GetAttr("restore_order", &restores_order));
    TF_RETURN_IF_ERROR(c->GetAttr("return_sequences", &return_sequences));
    TF_RETURN_IF_ERROR(c->GetAttr("zero_output_for_mask", &zero_output_for_mask));
    TF_RETURN_IF_ERROR(c->GetAttr("time_major", &time_major));
    TF_RETURN_IF_ERROR(c->GetAttr("training", &training));
    std::string algorithm;
    TF_RETURN_IF_ERROR(c->GetAttr("algorithm", &algorithm));
    direct = algorithm == "direct";
    TF_RETURN_IF_ERROR(c->GetAttr("constant_weights", &constant_weights));
    int biases, masks, lists;
    TF_RETURN_IF_ERROR(c->GetAttr("num_biases", &biases));
    TF_RETURN_IF_ERROR(c->GetAttr("num_states", &num_states));
    TF_RETURN_IF_ERROR(c->GetAttr("num_masks", &masks));
    TF_RETURN_IF_ERROR(c->GetAttr("num_lengths", &lists));
    return Check(biases, masks, lists);
  }

 private:
  Status Check(int biases, int masks, int lists);
};

// What the inputs say; kUnknown where they do not.
struct RnnSizes {
  int64_t batch = kUnknown, steps = kUnknown, inputs = kUnknown, units = kUnknown;
};

// All inputs against each other. `shapes` is one a tensor, in the op's order.
Status ReadRnnSizes(const RnnAttrs& attrs, const std::vector<PartialTensorShape>& shapes,
                    RnnSizes* sizes);

// [batch, steps, units], or time before batch, or [batch, units].
Status RnnDstShape(const RnnAttrs& attrs, const RnnSizes& sizes, PartialTensorShape* dst);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_PRODUCTS_RNN_ATTRS_H_
