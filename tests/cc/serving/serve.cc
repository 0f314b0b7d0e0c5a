// A server without Python: loads the library and an optimised SavedModel, runs the model from
// several threads at once, and writes what it computed.
//
//   serve LIBRARY MODEL INPUT OUTPUT THREADS CALLS
//
// LIBRARY is "linked" for the program that has the ops in itself. INPUT is a serialised TensorProto
// for the one input of the signature serving_default; OUTPUT becomes one of the first of its
// outputs, by name. Every call must give the same bits, or the program fails. Prints the
// milliseconds of one call on an idle machine and, in all threads together, of each.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

[[noreturn]] void Fail(const std::string& why) {
  fprintf(stderr, "serve: %s\n", why.c_str());
  exit(1);
}

struct Status {
  std::unique_ptr<TF_Status, void (*)(TF_Status*)> held{TF_NewStatus(), TF_DeleteStatus};
  TF_Status* get() const { return held.get(); }
  void Check() const {
    if (TF_GetCode(get()) != TF_OK) Fail(TF_Message(get()));
  }
};

using TensorPtr = std::unique_ptr<TF_Tensor, void (*)(TF_Tensor*)>;

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail(std::string("cannot read ") + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TensorPtr ReadTensor(const char* path) {
  tensorflow::TensorProto proto;
  tensorflow::Tensor tensor;
  if (!proto.ParseFromString(ReadFile(path)) || !tensor.FromProto(proto))
    Fail("INPUT is no tensor");
  const auto sizes = tensor.shape().dim_sizes();
  TensorPtr made(TF_AllocateTensor(static_cast<TF_DataType>(tensor.dtype()), sizes.data(),
                                   tensor.dims(), tensor.TotalBytes()),
                 TF_DeleteTensor);
  memcpy(TF_TensorData(made.get()), tensor.data(), tensor.TotalBytes());
  return made;
}

// "node:0" as an output of the graph.
TF_Output OutputOf(TF_Graph* graph, const std::string& name) {
  const size_t colon = name.find(':');
  const TF_Output output = {TF_GraphOperationByName(graph, name.substr(0, colon).c_str()),
                            std::stoi(name.substr(colon + 1))};
  if (output.oper == nullptr) Fail("no node " + name);
  return output;
}

class Model {
 public:
  explicit Model(const char* folder) {
    const Status status;
    TF_SessionOptions* const options = TF_NewSessionOptions();
    const char* const tags[] = {"serve"};
    TF_Buffer* const meta = TF_NewBuffer();
    graph_ = TF_NewGraph();
    session_ =
        TF_LoadSessionFromSavedModel(options, nullptr, folder, tags, 1, graph_, meta, status.get());
    status.Check();
    tensorflow::MetaGraphDef graph_def;
    graph_def.ParseFromArray(meta->data, static_cast<int>(meta->length));
    const auto signature = graph_def.signature_def().find("serving_default");
    if (signature == graph_def.signature_def().end() || signature->second.inputs_size() != 1) {
      Fail("no signature serving_default with one input");
    }
    input_ = OutputOf(graph_, signature->second.inputs().begin()->second.name());
    std::vector<std::string> names;
    for (const auto& output : signature->second.outputs()) names.push_back(output.first);
    std::sort(names.begin(), names.end());
    output_ = OutputOf(graph_, signature->second.outputs().at(names.front()).name());
    TF_DeleteBuffer(meta);
    TF_DeleteSessionOptions(options);
  }

  ~Model() {
    const Status status;
    TF_DeleteSession(session_, status.get());
    TF_DeleteGraph(graph_);
  }

  TensorPtr Run(TF_Tensor* input) const {
    const Status status;
    TF_Tensor* output = nullptr;
    TF_SessionRun(session_, nullptr, &input_, &input, 1, &output_, &output, 1, nullptr, 0, nullptr,
                  status.get());
    status.Check();
    return TensorPtr(output, TF_DeleteTensor);
  }

 private:
  TF_Graph* graph_;
  TF_Session* session_;
  TF_Output input_, output_;
};

bool Same(const TF_Tensor* a, const TF_Tensor* b) {
  return TF_TensorByteSize(a) == TF_TensorByteSize(b) &&
         memcmp(TF_TensorData(a), TF_TensorData(b), TF_TensorByteSize(a)) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) Fail("LIBRARY MODEL INPUT OUTPUT THREADS CALLS");
  const Status status;
  if (std::string(argv[1]) != "linked") TF_LoadLibrary(argv[1], status.get());
  status.Check();
  const Model model(argv[2]);
  const TensorPtr input = ReadTensor(argv[3]);
  const int threads = std::stoi(argv[5]), calls = std::stoi(argv[6]);

  const TensorPtr first = model.Run(input.get());
  double alone = 1e9;
  for (int i = 0; i < calls; ++i) {
    const auto start = Clock::now();
    if (!Same(model.Run(input.get()).get(), first.get())) Fail("a later call gave other bits");
    alone = std::min(alone, MillisecondsSince(start));
  }
  std::vector<std::thread> callers;
  const auto start = Clock::now();
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < calls; ++i) {
        if (!Same(model.Run(input.get()).get(), first.get())) Fail("a thread got other bits");
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  printf("alone %.3f ms, %d threads %.3f ms a call\n", alone, threads,
         MillisecondsSince(start) / (threads * calls));

  std::ofstream out(argv[4], std::ios::binary);
  out.write(static_cast<const char*>(TF_TensorData(first.get())), TF_TensorByteSize(first.get()));
  return out.good() ? 0 : 1;
}
