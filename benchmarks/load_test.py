"""Puts a server of docs/examples under load, with an optimised SavedModel and with the original.

    python benchmarks/load_test.py grpc|ray PLAIN FAST [--seconds 30] [--clients 8] [--json]

Clients send one image at a time, each on a connection of its own, and send it again where a server
is not available. The two models take turns of a few seconds, each in a server of its own that stays
idle meanwhile. Prints requests a second, the median and the 99th percentile of what they took.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
from formats import SAVED_MODEL
from measuring.prepare import Workshop
from rich.console import Console
from rich.table import Table

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"
SERVERS = {"grpc": "grpc_server.py", "ray": "ray_serve_images.py"}
TURN = 5.0
SIZE = 224
RETRIES = {
    "methodConfig": [
        {
            "name": [{"service": "tensorflow.serving.PredictionService"}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.2s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}

Send = Callable[[], object]


def grpc_client(port: int, name: str, image: np.ndarray, key: str) -> Send:
    """Sends the image as a tensor; the answer is the first output."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.inputs[key].CopyFrom(tf.make_tensor_proto(image[None].astype(np.float32)))
    options = [
        ("grpc.service_config", json.dumps(RETRIES)),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
    ]
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

    def send():
        reply = stub.Predict(request, timeout=60, wait_for_ready=True)
        return tf.make_ndarray(next(iter(reply.outputs.values())))[0]

    return send


def http_client(port: int, image: np.ndarray, patience: float = 120) -> Send:
    """Sends the image as a PNG file; the answer is what the server says of it. Where there is none
    it is sent again, for so many seconds."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send():
        end = time.monotonic() + patience
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("POST", "/", file.getvalue())
                answer = connection.getresponse()
                text = answer.read()
                if answer.status == 200:
                    return json.loads(text)
            connection.close()
            if time.monotonic() > end:
                raise ConnectionError(f"no answer in {patience} s")
            time.sleep(0.2)

    return send


def load(clients: list[Send], seconds: float) -> tuple[list[float], list[object]]:
    """Lets all clients send as fast as they are answered; seconds of each request, and answers."""
    times: list[float] = []
    answers: list[object] = []
    end = time.perf_counter() + seconds

    def run(send: Send):
        while (start := time.perf_counter()) < end:
            try:
                answers.append(send())
            except Exception as error:
                answers.append(error)
            times.append(time.perf_counter() - start)

    threads = [threading.Thread(target=run, args=(send,)) for send in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, answers


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(kind: str, model: pathlib.Path) -> Iterator[int]:
    """The port of an example that serves the model."""
    port = free_port()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, EXAMPLES / SERVERS[kind], model, str(port)],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=log,
            stderr=log,
        )
        try:
            yield port
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace")[-3000:])
            raise
        finally:
            process.terminate()
            process.wait(60)


def input_key(model: pathlib.Path) -> str:
    """The name of the model's input."""
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((model / "saved_model.pb").read_bytes())
    return next(iter(saved.meta_graphs[0].signature_def["serving_default"].inputs))


def clients_of(kind: str, port: int, model: pathlib.Path, count: int) -> list[Send]:
    image = np.random.default_rng(1).integers(0, 256, (SIZE, SIZE, 3), np.uint8)
    if kind == "ray":
        return [http_client(port, image) for _ in range(count)]
    return [grpc_client(port, model.name, image, input_key(model)) for _ in range(count)]


def figures(times: list[float], seconds: float) -> dict[str, float]:
    """Requests a second, the median and the 99th percentile in ms, of what took so long."""
    p50, p99 = np.percentile(times, (50, 99)) * 1000
    return {"requests/s": len(times) / seconds, "p50, ms": float(p50), "p99, ms": float(p99)}


def table(kind: str, found: dict[str, dict[str, float]]) -> Table:
    """A row for each model."""
    made = Table(title=f"{SERVERS[kind]}, requests of one image", title_justify="left")
    made.add_column("model")
    for column in next(iter(found.values())):
        made.add_column(column, justify="right")
    for name, numbers in found.items():
        made.add_row(name, *(f"{number:.1f}" for number in numbers.values()))
    return made


def measure(network: str, kinds: tuple[str, ...], workshop: Workshop) -> dict:
    """{"servers": {kind: {"original": figures, "optimised": figures}}} of a network of the zoo."""
    import tf_blockdnn as bd

    plain, servers = workshop.model(network, SAVED_MODEL, 1), {}
    with tempfile.TemporaryDirectory() as place:
        fast = pathlib.Path(place) / "optimised"
        bd.optimize(str(plain)).save(fast)
        for kind in kinds:
            done = subprocess.run(
                [workshop.interpreter("serving"), __file__, kind, plain, fast, "--json"],
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            original, optimised = json.loads(done.stdout).values()
            servers[kind] = {"original": original, "optimised": optimised}
    return {"servers": servers}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=SERVERS)
    parser.add_argument("plain", type=pathlib.Path)
    parser.add_argument("fast", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=30, help="for each model")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="prints the figures as JSON")
    options = parser.parse_args()
    times: dict[str, list[list[float]]] = {}
    lost = 0
    with contextlib.ExitStack() as stack:
        clients = {}
        for model in (options.plain, options.fast):
            port = stack.enter_context(server(options.kind, model))
            clients[model.name] = clients_of(options.kind, port, model, options.clients)
            for send in clients[model.name]:
                send()  # Returns once the server is there.
            load(clients[model.name], TURN / 2)
        turns = max(1, round(options.seconds / TURN))
        for _ in range(turns):
            for name, senders in clients.items():
                took, answers = load(senders, TURN)
                times.setdefault(name, []).append(took)
                lost += sum(isinstance(answer, Exception) for answer in answers)
    found = {n: figures(np.concatenate(took), TURN * len(took)) for n, took in times.items()}
    if options.json:
        print(json.dumps(found))
    else:
        Console(width=None if sys.stdout.isatty() else 100).print(table(options.kind, found))
    print(f"requests lost: {lost}", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
