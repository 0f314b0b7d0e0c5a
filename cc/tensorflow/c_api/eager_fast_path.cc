// Calls of a function without TensorFlow's eager dispatch, which costs 0.1 to 0.2 ms once a
// network's tensors have driven it out of the caches.
#include <string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cc/tensorflow/c_api/c_api.h"
#include "cc/tensorflow/c_api/eager_tensors.h"
#include "cc/tensorflow/regions/region.h"
#include "tensorflow/c/eager/immediate_execution_context.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/device.h"
#include "tsl/platform/denormal.h"
#include "tsl/platform/setround.h"

namespace bd {
namespace {

using tensorflow::ImmediateExecutionContext;

// Denormals and rounding as TensorFlow's executors run ops.
struct AsInExecutors {
  const tsl::port::ScopedFlushDenormal flush;
  const tsl::port::ScopedSetRound round{FE_TONEAREST};
};

// What a function says about an argument.
struct ArgumentSpec {
  tensorflow::DataType dtype;
  PartialTensorShape shape;  // of any rank where the function does not say

  bool Takes(const Tensor& tensor) const {
    if (tensor.dtype() != dtype) return false;
    if (shape.unknown_rank()) return true;
    if (tensor.dims() != shape.dims()) return false;
    for (int i = 0; i < shape.dims(); ++i) {
      if (shape.dim_size(i) >= 0 && tensor.dim_size(i) != shape.dim_size(i)) return false;
    }
    return true;
  }
};

class EagerCall {
 public:
  explicit EagerCall(const BlockdnnEager& eager) : eager_(eager) {}

  Status Build(const std::string& function, void* const* captures, int count, bool keeps_memory) {
    device_ = LocalCpu(eager_);
    if (device_ == nullptr) return Invalid("this process has no CPU device");
    const tensorflow::FunctionLibraryDefinition* const library = Context()->FuncLibDef();
    const KernelSite site = {device_, device_->resource_manager(), nullptr, library};
    OpSequence sequence;
    TF_RETURN_IF_ERROR(OpSequence::Make(site, function, &sequence));
    const tensorflow::FunctionDef* const def = library->Find(function);
    const int arguments = static_cast<int>(sequence.argument_types().size()) - count;
    for (int i = 0; i < arguments; ++i) {
      ArgumentSpec spec = {sequence.argument_types()[i], {}};
      const auto attrs = def->arg_attr().find(i);
      if (attrs != def->arg_attr().end()) {
        const auto shapes = attrs->second.attr().find("_output_shapes");
        if (shapes != attrs->second.attr().end() && shapes->second.list().shape_size() == 1) {
          spec.shape = PartialTensorShape(shapes->second.list().shape(0));
        }
      }
      specs_.push_back(std::move(spec));
    }
    if (!Read(captures, count, &captures_))
      return Invalid("a capture is no tensor of this process");
    region_ = std::make_unique<Region>(std::move(sequence), keeps_memory ? MostArenas(device_) : 0);
    return absl::OkStatus();
  }

  // False if the call has to be made another way; nothing has happened then that anybody
  // could see.
  bool Run(void* const* arguments, const BlockdnnArray* arrays, void** results) {
    if (IsAsync()) return false;
    std::vector<Tensor> tensors, outputs;
    tensors.reserve(specs_.size() + captures_.size());
    for (size_t i = 0; i < specs_.size(); ++i) {
      const bool is_array = arrays != nullptr && arrays[i].rank >= 0;
      if (is_array ? !Copy(arrays[i], specs_[i].dtype, &tensors)
                   : !Read(arguments + i, 1, &tensors)) {
        return false;
      }
      if (!specs_[i].Takes(tensors[i])) return false;
    }
    tensors.insert(tensors.end(), captures_.begin(), captures_.end());
    static std::function<void(std::function<void()>)> run_here = [](const auto& f) { f(); };
    OpKernelContext::Params params;
    params.device = device_;
    params.resource_manager = device_->resource_manager();
    params.runner = &run_here;
    {
      const AsInExecutors modes;
      if (!region_->Run(std::move(params), tensors, &outputs).ok()) return false;
    }
    for (Tensor& output : outputs) {
      *results++ = Context()->CreateLocalHandleFromTFTensor(output, nullptr);
    }
    return true;
  }

 private:
  ImmediateExecutionContext* Context() const {
    return static_cast<ImmediateExecutionContext*>(eager_.context);
  }

  // Whether this thread's ops are queued: what was called before may not have run yet.
  bool IsAsync() const {
    void* executor = eager_.executor_of_thread(eager_.context);
    const bool is_async = eager_.executor_is_async(executor);
    eager_.delete_executor(executor);
    return is_async;
  }

  // Appends a copy of an array. A tensor that borrowed the array's memory would change whenever
  // its owner writes there, and results of this call may still lie in it.
  bool Copy(const BlockdnnArray& array, tensorflow::DataType dtype,
            std::vector<Tensor>* tensors) const {
    TensorShape shape;
    for (int i = 0; i < array.rank; ++i) {
      if (!shape.AddDimWithStatus(array.dims[i]).ok()) return false;
    }
    Tensor copy(device_->GetAllocator(tensorflow::AllocatorAttributes()), dtype, shape);
    if (!copy.IsInitialized()) return false;
    if (copy.TotalBytes() > 0) memcpy(copy.data(), array.data, copy.TotalBytes());
    tensors->push_back(std::move(copy));
    return true;
  }

  // The tensors of eager tensors; false for what is not one of this process.
  bool Read(void* const* eager_tensors, int count, std::vector<Tensor>* tensors) const {
    for (int i = 0; i < count; ++i) {
      tensors->emplace_back();
      if (!ReadEagerTensor(eager_, eager_tensors[i], &tensors->back())) return false;
    }
    return true;
  }

  const BlockdnnEager eager_;
  tensorflow::Device* device_ = nullptr;  // the context's, which outlives its tensors
  std::vector<ArgumentSpec> specs_;
  std::vector<Tensor> captures_;
  std::unique_ptr<Region> region_;
};

}  // namespace
}  // namespace bd

const char* BlockdnnMakeEagerCall(const char* function, const BlockdnnEager* eager,
                                  void* const* captures, int32_t count, int32_t keeps_memory,
                                  void** call) {
  auto made = std::make_unique<bd::EagerCall>(*eager);
  const bd::Status status = made->Build(function, captures, count, keeps_memory != 0);
  if (!status.ok()) return bd::ErrorToC(std::string(status.message()));
  *call = made.release();
  return nullptr;
}

int32_t BlockdnnRunEagerCall(void* call, void* const* arguments, const BlockdnnArray* arrays,
                             void** results) {
  return static_cast<bd::EagerCall*>(call)->Run(arguments, arrays, results);
}

void BlockdnnDropEagerCall(void* call) { delete static_cast<bd::EagerCall*>(call); }
