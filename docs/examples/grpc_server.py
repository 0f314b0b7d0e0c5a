"""Serves a SavedModel to clients of TensorFlow Serving, a process for each core.

    pip install '.[grpc]'     # in the checkout
    python grpc_server.py MODEL [PORT] [PROCESSES]

It speaks the PredictionService of TensorFlow Serving (Predict and GetModelMetadata) on the
loopback, with TensorFlow's Python inside: protocol-compatible, not TensorFlow Serving. The model's
name is that of its folder. A process that dies is started again; the requests that it had fail with
UNAVAILABLE, and clients with a retry policy (docs/serving.md) send them once more.
"""

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import time


def servicer(folder):
    import grpc
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2
    from tensorflow_serving.apis import get_model_metadata_pb2 as metadata
    from tensorflow_serving.apis import predict_pb2
    from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceServicer

    import tf_blockdnn  # noqa: F401  (the ops of MODEL)

    class Service(PredictionServiceServicer):
        def __init__(self):
            self.model = tf.saved_model.load(str(folder))
            self.file = saved_model_pb2.SavedModel.FromString(
                (folder / "saved_model.pb").read_bytes()
            )

        def check(self, spec, context):
            if spec.name != folder.name:
                context.abort(grpc.StatusCode.NOT_FOUND, f"there is no model {spec.name!r} here")

        def Predict(self, request, context):
            self.check(request.model_spec, context)
            name = request.model_spec.signature_name or "serving_default"
            if name not in self.model.signatures:
                context.abort(grpc.StatusCode.NOT_FOUND, f"no signature {name!r}")
            try:
                tensors = {
                    key: tf.constant(tf.make_ndarray(t)) for key, t in request.inputs.items()
                }
                outputs = self.model.signatures[name](**tensors)
            except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error).partition("\n")[0])
            reply = predict_pb2.PredictResponse(model_spec=request.model_spec)
            for key in request.output_filter or outputs:
                reply.outputs[key].CopyFrom(tf.make_tensor_proto(outputs[key]))
            return reply

        def GetModelMetadata(self, request, context):
            self.check(request.model_spec, context)
            reply = metadata.GetModelMetadataResponse(model_spec=request.model_spec)
            signatures = self.file.meta_graphs[0].signature_def
            reply.metadata["signature_def"].Pack(metadata.SignatureDefMap(signature_def=signatures))
            return reply

    return Service()


def serve(folder, port):
    """One of the processes; ends when the first one closes its pipe, or is gone."""
    import grpc
    from tensorflow_serving.apis import prediction_service_pb2_grpc as service

    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(4),
        options=[("grpc.so_reuseport", 1), ("grpc.max_receive_message_length", 64 << 20)],
    )
    service.add_PredictionServiceServicer_to_server(servicer(folder), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    print(f"process {os.getpid()} serves {folder.name} on 127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    server.stop(grace=5).wait()


def main(model, port="8500", processes=None):
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    one_core = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    command = [sys.executable, __file__, "--process", os.path.abspath(model), port]

    def start():
        return subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ | one_core)

    running = [start() for _ in range(int(processes or os.cpu_count()))]
    try:
        while True:
            for i, process in enumerate(running):
                if process.poll() == 1:  # as Python ends by an error, here before it served
                    sys.exit("a process could not start; what it printed above says why")
                if process.returncode is not None:
                    print(f"process {process.pid} has ended; another one starts", flush=True)
                    running[i] = start()
            time.sleep(0.2)
    except KeyboardInterrupt:
        pass
    finally:  # what the others print comes before the reason above
        for process in running:
            process.stdin.close()
        for process in running:
            process.wait()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    if sys.argv[1] == "--process":
        serve(pathlib.Path(sys.argv[2]), sys.argv[3])
    elif not os.path.isfile(os.path.join(sys.argv[1], "saved_model.pb")):
        sys.exit(f"{sys.argv[1]}: no SavedModel there")
    else:
        main(*sys.argv[1:])
