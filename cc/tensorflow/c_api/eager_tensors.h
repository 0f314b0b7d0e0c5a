// The tensors and devices that Python's handles of TensorFlow's eager context refer to.
#pragma once

#include "cc/tensorflow/c_api/c_api.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/tensor.h"

namespace bd {

// The CPU that eager ops of this process run on; null if there is none.
tensorflow::Device* LocalCpu(const BlockdnnEager& eager);

// Sets *tensor to that of an eager tensor; false for what is not one of this process.
bool ReadEagerTensor(const BlockdnnEager& eager, const void* eager_tensor,
                     tensorflow::Tensor* tensor);

}  // namespace bd
