// Packed forms of an op's matrices, kept between executions and shared between kernels.
#ifndef CC_TENSORFLOW_WEIGHTS_KEPT_PACK_H_
#define CC_TENSORFLOW_WEIGHTS_KEPT_PACK_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cc/base/function_ref.h"
#include "cc/base/memory/aligned_buffer.h"
#include "cc/tensorflow/op_base/op_utils.h"

namespace bd {

// `sources` packed into the form that `form` names. Holding the references keeps TensorFlow
// from writing new values into their buffers: assigning a variable then yields another data().
struct KeptPack {
  std::vector<Tensor> sources;
  std::string form;
  AlignedBuffer memory;
};

// The packed matrices of one execution.
struct PackLease {
  const float* data = nullptr;
  std::shared_ptr<const KeptPack> kept;  // where they are, or
  Tensor packed_now;                     // packed for this execution only
};

// When a pack is worth keeping.
enum class KeepPack {
  kNever,  // the matrices change with every execution
  kTwice,  // once the same buffers have come twice in a row
  kAlways,
};

// What one kernel remembers; safe to use from many threads. A pack is made once for all kernels
// of the process, and lives as long as one of them holds it.
class PackKeeper {
 public:
  // Makes *lease; calls pack(memory) with `floats` floats of memory where nothing is kept.
  Status Take(OpKernelContext* ctx, const std::vector<Tensor>& sources, const std::string& form,
              int64_t floats, KeepPack keep, FunctionRef<void(float*)> pack, PackLease* lease);

 private:
  std::mutex mutex_;
  std::shared_ptr<const KeptPack> kept_;
  std::vector<Tensor> last_;  // those of the last execution that kept nothing
};

}  // namespace bd

#endif  // CC_TENSORFLOW_WEIGHTS_KEPT_PACK_H_
