"""Servers of docs/examples under load: right answers, and none is lost when a replica is killed.

TF_BLOCKDNN_LOAD_SECONDS says how long each is under load.
"""

import os
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import load_test

SECONDS = float(os.environ.get("TF_BLOCKDNN_LOAD_SECONDS", "12"))
CLIENTS = 4


@pytest.fixture
def image(images):
    return tf.io.decode_image((images / "0000.jpg").read_bytes(), 3).numpy()


@pytest.fixture
def scores(models):
    """Image -> scores, without tf_blockdnn."""
    run = tf.saved_model.load(str(models / "plain")).signatures["serving_default"]
    ((name, spec),) = run.structured_input_signature[1].items()

    def of(image):
        pixels = tf.image.resize(image, spec.shape[1:3])[None]
        return pixels[0].numpy(), next(iter(run(**{name: pixels}).values()))[0].numpy()

    return of


def under_load(server, clients, replicas):
    """Answers to the clients, one of whose replicas dies meanwhile; it is replaced in time."""
    end = time.monotonic() + 120
    while len(server.workers()) < replicas:
        assert time.monotonic() < end, server.text
        time.sleep(0.2)
    for send in clients:
        send()  # Returns once the server is there.
    before = server.workers()
    killed = []
    # Early enough that the one that replaces it answers, too.
    thread = threading.Timer(SECONDS / 4, lambda: killed.append(server.kill_a_worker(busy=0.2)))
    thread.start()
    times, answers = load_test.load(clients, SECONDS)
    thread.join()
    assert killed, "nothing was killed"
    print(load_test.figures(times, SECONDS), f"{SECONDS:g} s, one replica killed")
    end = time.monotonic() + 60
    while len([pid for pid in server.workers() if pid not in killed]) < replicas:
        assert time.monotonic() < end, "the replica was not replaced"
        time.sleep(0.2)
    assert {*server.workers()} - {*before}
    lost = [answer for answer in answers if isinstance(answer, Exception)]
    assert not lost, lost[:3]
    assert len(answers) == len(times) > 50
    return answers


def test_grpc(models, image, scores, start):
    port = load_test.free_port()
    server = start("grpc_server.py", models / "fast", port, 2)
    pixels, wanted = scores(image)
    key = load_test.input_key(models / "fast")
    clients = [load_test.grpc_client(port, "fast", pixels, key) for _ in range(CLIENTS)]
    for answer in under_load(server, clients, replicas=2):
        np.testing.assert_allclose(answer, wanted, rtol=1e-3, atol=1e-5)
    server.process.terminate()
    assert server.wait(30) == 0
    assert re.search(r"process \d+ has ended; another one starts", server.text)


def test_grpc_says_what_is_wrong(models, start):
    import grpc
    from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2
    from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

    port = load_test.free_port()
    start("grpc_server.py", models / "fast", port, 1)
    stub = PredictionServiceStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
    key = load_test.input_key(models / "fast")

    def predict(name="fast", signature="", **inputs):
        request = predict_pb2.PredictRequest()
        request.model_spec.name, request.model_spec.signature_name = name, signature
        for given, value in inputs.items():
            request.inputs[given].CopyFrom(tf.make_tensor_proto(value))
        return stub.Predict(request, timeout=90, wait_for_ready=True)

    image = np.zeros((1, 96, 96, 3), np.float32)
    assert len(predict(**{key: image}).outputs) == 1
    for code, arguments in (
        ("NOT_FOUND", {"name": "other", key: image}),
        ("NOT_FOUND", {"signature": "train", key: image}),
        ("INVALID_ARGUMENT", {}),
        ("INVALID_ARGUMENT", {key: image[..., :2]}),
        ("INVALID_ARGUMENT", {key: image.astype(np.int32)}),
        ("INVALID_ARGUMENT", {key: image, "another": image}),
    ):
        with pytest.raises(grpc.RpcError) as error:
            predict(**arguments)
        assert error.value.code().name == code, (arguments.keys(), error.value)
        assert error.value.details() and "\n" not in error.value.details()

    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "fast"
    reply = stub.GetModelMetadata(request, timeout=60)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert reply.metadata["signature_def"].Unpack(signatures)
    assert key in signatures.signature_def["serving_default"].inputs


def test_ray_serve(models, image, scores, start):
    port = load_test.free_port()
    server = start("ray_serve_images.py", models / "fast", port, 2)
    _, wanted = scores(image)
    clients = [load_test.http_client(port, image, patience=90) for _ in range(CLIENTS)]
    for answer in under_load(server, clients, replicas=2):
        assert answer["score"] == pytest.approx(wanted.max(), rel=1e-3, abs=1e-5)
        assert answer["class"] == wanted.argmax()
    server.process.terminate()
    server.wait(60)
