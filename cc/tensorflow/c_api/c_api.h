// What Python asks the library through ctypes (python/native.py lists the same
// functions). Plain C types only.
//
// A function that can fail returns an error: null, or one line that stays valid
// until the next call on the same thread.
#pragma once

#include <cstdint>
#include <string>

#define BD_EXPORT extern "C" __attribute__((visibility("default")))

namespace bd {

// `error` in the form C functions return it.
const char* ErrorToC(std::string error);

}  // namespace bd

// "generic", "avx2" or "avx512": what kernels use here.
BD_EXPORT const char* BlockdnnActiveIsa();

// The threads that ops made now run on, and what decided that: a bd::PoolSize. `tensorflow` is its
// intra-op setting, 0 if there is none.
BD_EXPORT int32_t BlockdnnThreads(int32_t tensorflow, const char** source);

// See bd::SetPoolThreads.
BD_EXPORT const char* BlockdnnSetThreads(int32_t threads, int32_t callers);

// Names in the order of the enumerations Layout and DataType; null beyond the last.
BD_EXPORT const char* BlockdnnLayoutName(int32_t layout);
BD_EXPORT const char* BlockdnnDataTypeName(int32_t dtype);

// See bd::PostOpFunctions.
BD_EXPORT const char* BlockdnnPostOpFunctions();

// A bd::TensorDesc: what it was made of, then what follows. Lists have `rank`
// entries, shape `shape_rank`. Mirrored by python/native.py.
struct BlockdnnTensorDesc {
  int32_t rank, dtype, layout;  // layout: -1 if described by strides alone
  int32_t shape_rank, is_dense, is_whole;
  int64_t dims[6], strides[6], offset;
  int64_t blocks[6], padded_dims[6], shape[8];
  int64_t size, size_bytes;
};

// A list of sizes on its way in.
struct BlockdnnList {
  int32_t count;
  const int64_t* values;
};

// `layout` is a name or null, `strides` may be empty. See bd::TensorDesc::Make.
BD_EXPORT const char* BlockdnnMakeTensorDesc(const char* dtype, const char* layout,
                                             BlockdnnList dims, BlockdnnList strides,
                                             int64_t offset, BlockdnnTensorDesc* desc);

// See bd::TensorDesc::submemory.
BD_EXPORT const char* BlockdnnSubmemory(const BlockdnnTensorDesc* desc, BlockdnnList dims,
                                        BlockdnnList offsets, BlockdnnTensorDesc* part);

// Where the element `index` lies. Indices are below padded_dims.
BD_EXPORT int64_t BlockdnnOffset(const BlockdnnTensorDesc* desc, const int64_t* index);

// The same for all elements, in row-major order of the indices: those of dims or,
// if `padded`, of padded_dims.
BD_EXPORT void BlockdnnOffsets(const BlockdnnTensorDesc* desc, int32_t padded, int64_t* offsets);

// What memory a node takes, as JSON: a bd::MemoryPlan. `node_def` is a serialised
// NodeDef with all its attributes; input i has ranks[i] dimensions, the next ones of
// `dims`. *json is valid until the next call on the same thread.
BD_EXPORT const char* BlockdnnMemoryPlan(const char* node_def, int64_t node_def_bytes,
                                         BlockdnnList dims, BlockdnnList ranks, int32_t threads,
                                         const char** json);

// How often weights have been packed since the library was loaded.
BD_EXPORT int64_t BlockdnnPackCount();

// An error where `data` lies in a mapped file of weights into which somebody has written.
BD_EXPORT const char* BlockdnnCheckWeights(const void* data);

// Gives memory that was freed, but that TensorFlow and the C library keep for later, back to the
// system. Safe to call at any time.
BD_EXPORT void BlockdnnReturnFreeMemory();

// TensorFlow's eager context and functions of its Python side, which this library cannot
// link: EagerTensor_Handle, and three of the C API of executors.
struct BlockdnnEager {
  void* context;
  void* (*handle_of)(const void* eager_tensor);
  void* (*executor_of_thread)(void* context);
  bool (*executor_is_async)(void* executor);
  void (*delete_executor)(void* executor);
};

// A way to call a function of converted and cheap ops without an eager op; an error if an op in
// it needs TensorFlow's executor. `captures`: the eager tensors that follow the arguments.
// `keeps_memory`: as the attribute of BlockdnnRegion. To be dropped before the eager context is.
BD_EXPORT const char* BlockdnnMakeEagerCall(const char* function, const BlockdnnEager* eager,
                                            void* const* captures, int32_t count,
                                            int32_t keeps_memory, void** call);

// Elements in row-major order, of the data type that the function takes there.
struct BlockdnnArray {
  const void* data;
  int32_t rank;  // -1: there is no array
  int64_t dims[8];
};

// Eager tensors, one for each argument -> new tensor handles, one for each result of the
// function. `arrays` is null, or has an entry for each argument; those that are there are copied
// and take the place of eager tensors. 0, and nothing has happened, if TensorFlow must make the
// call: it knows how to fail and how to queue. Safe from many threads.
BD_EXPORT int32_t BlockdnnRunEagerCall(void* call, void* const* arguments,
                                       const BlockdnnArray* arrays, void** results);

BD_EXPORT void BlockdnnDropEagerCall(void* call);

// A bd::WeightsWatch of `count` variables. `handles`: eager tensors of theirs; `values`: eager
// tensors of what was read of each. Its use is safe from many threads.
BD_EXPORT const char* BlockdnnMakeWatch(const BlockdnnEager* eager, void* const* handles,
                                        void* const* values, int32_t count, void** watch);
BD_EXPORT int32_t BlockdnnWatchChanged(void* watch);
BD_EXPORT void BlockdnnDropWatch(void* watch);

// What the op BlockdnnFollow calls with the address of its variable; returns an error or null. It
// runs in TensorFlow's threads, many at once.
typedef const char* (*BlockdnnFollow)(const void* variable);
BD_EXPORT void BlockdnnOnFollow(BlockdnnFollow function);

// The address of the variable that an eager tensor of its handle refers to.
BD_EXPORT const char* BlockdnnVariableAddress(const BlockdnnEager* eager, const void* handle,
                                              const void** address);
