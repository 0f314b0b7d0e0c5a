// Variables that are watched from Python.
#include <memory>
#include <string>
#include <utility>

#include "cc/tensorflow/c_api/c_api.h"
#include "cc/tensorflow/c_api/eager_tensors.h"
#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/weights/weights_watch.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace bd {
namespace {

using tensorflow::Device;
using tensorflow::ResourceHandle;
using tensorflow::Var;

Status FindVariable(const BlockdnnEager& eager, const void* handle,
                    WeightsWatch::Variable* variable) {
  Tensor tensor;
  if (!ReadEagerTensor(eager, handle, &tensor) || tensor.dtype() != tensorflow::DT_RESOURCE ||
      tensor.NumElements() != 1) {
    return Invalid("no handle of this process");
  }
  const ResourceHandle& resource = tensor.flat<ResourceHandle>()(0);
  if (resource.IsRefCounting()) {
    TF_ASSIGN_OR_RETURN(Var * var, resource.GetResource<Var>());
    var->Ref();
    variable->reset(var);
    return absl::OkStatus();
  }
  Device* const device = LocalCpu(eager);
  if (device == nullptr) return Invalid("this process has no CPU device");
  Var* var;
  TF_RETURN_IF_ERROR(
      device->resource_manager()->Lookup(resource.container(), resource.name(), &var));
  variable->reset(var);
  return absl::OkStatus();
}

}  // namespace
}  // namespace bd

const char* BlockdnnMakeWatch(const BlockdnnEager* eager, void* const* handles, void* const* values,
                              int32_t count, void** watch) {
  auto made = std::make_unique<bd::WeightsWatch>();
  for (int32_t i = 0; i < count; ++i) {
    bd::WeightsWatch::Variable variable;
    const bd::Status status = bd::FindVariable(*eager, handles[i], &variable);
    if (!status.ok()) return bd::ErrorToC(std::string(status.message()));
    tensorflow::Tensor value;
    if (!bd::ReadEagerTensor(*eager, values[i], &value)) {
      return bd::ErrorToC("a value is no tensor of this process");
    }
    made->Add(std::move(variable), value);
  }
  *watch = made.release();
  return nullptr;
}

int32_t BlockdnnWatchChanged(void* watch) {
  return static_cast<bd::WeightsWatch*>(watch)->Changed();
}

void BlockdnnDropWatch(void* watch) { delete static_cast<bd::WeightsWatch*>(watch); }

const char* BlockdnnVariableAddress(const BlockdnnEager* eager, const void* handle,
                                    const void** address) {
  bd::WeightsWatch::Variable variable;
  const bd::Status status = bd::FindVariable(*eager, handle, &variable);
  if (!status.ok()) return bd::ErrorToC(std::string(status.message()));
  *address = variable.get();
  return nullptr;
}

void BlockdnnOnFollow(BlockdnnFollow function) { bd::SetFollowFunction(function); }
