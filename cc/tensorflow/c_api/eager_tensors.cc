#include "cc/tensorflow/c_api/eager_tensors.h"

#include "tensorflow/c/eager/immediate_execution_context.h"
#include "tensorflow/c/eager/immediate_execution_tensor_handle.h"
#include "tensorflow/c/tf_tensor_internal.h"

namespace bd {

using tensorflow::ImmediateExecutionTensorHandle;

tensorflow::Device* LocalCpu(const BlockdnnEager& eager) {
  auto* const context = static_cast<tensorflow::ImmediateExecutionContext*>(eager.context);
  for (tensorflow::Device* device : context->ListLocalTfDevices()) {
    if (device->device_type() == tensorflow::DEVICE_CPU) return device;
  }
  return nullptr;
}

bool ReadEagerTensor(const BlockdnnEager& eager, const void* eager_tensor,
                     tensorflow::Tensor* tensor) {
  auto* handle = static_cast<ImmediateExecutionTensorHandle*>(eager.handle_of(eager_tensor));
  if (!ImmediateExecutionTensorHandle::classof(handle)) return false;  // a custom device's
  absl::Status status;
  const tensorflow::AbstractTensorPtr resolved(handle->Resolve(&status));
  if (!status.ok()) return false;
  *tensor = static_cast<tensorflow::TensorInterface*>(resolved.get())->Tensor();
  return true;
}

}  // namespace bd
