"""Memory of fresh processes: the original's weights go, packed ones keep their promise."""

import os
import textwrap

import fresh
import keras
import pytest
import tensorflow as tf

import tf_blockdnn as bd

_LAYERS, _CHANNELS = 4, 512
WEIGHTS = _LAYERS * 9 * _CHANNELS**2 * 4 / 2**20  # MiB
CALL = 12  # MiB: Winograd's tiles of one layer at batch 2, and what lies between layers
SLACK = 30  # MiB: graphs, code that is read from disk at the first call, an activation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    y = x = keras.Input([14, 14, _CHANNELS])
    for _ in range(_LAYERS):
        y = keras.layers.Conv2D(_CHANNELS, 3, padding="same", activation="relu")(y)
    model = keras.Model(x, y)
    model.save(folder / "model.keras")
    bd.optimize(model).save(folder / "fast")

    spec = tf.TensorSpec([None, 14, 14, _CHANNELS], name="x")
    features = tf.function(lambda x: {"y": model(x)}, input_signature=[spec])
    means = tf.function(lambda x: {"y": tf.reduce_mean(model(x), [1, 2])}, input_signature=[spec])
    module = tf.Module()
    module.held = model.variables
    signatures = {"features": features, "means": means}
    tf.saved_model.save(module, str(folder / "two"), signatures=signatures)
    return folder


def grown(make: str, call: str = "fast(image), fast(image)", setup: str = "") -> float:
    """MiB that a fresh process grows by when it makes a network and calls it.

    What has been freed goes back to the system first: how much of it malloc keeps is chance.
    TensorFlow's oneDNN is on, with which TensorFlow keeps all memory that tensors have had.
    """
    script = f"""
        import ctypes, gc, pathlib, keras, tensorflow as tf, tf_blockdnn as bd
        from tf_blockdnn.python import native

        def resident():
            ctypes.CDLL(None).malloc_trim(0)
            return status("VmRSS")

        def status(key):
            text = pathlib.Path("/proc/self/status").read_text()
            return int(text.split(key + ":")[1].split()[0]) / 1024

        small = tf.Variable(tf.ones([3, 3, 16, 16]))
        warm = tf.function(lambda x: tf.nn.conv2d(x, small, 1, "SAME"))
        bd.optimize(warm, input_signature=[tf.TensorSpec([1, 8, 8, 16])])(tf.ones([1, 8, 8, 16]))
        image = tf.random.normal([1, 14, 14, {_CHANNELS}])
        {setup}
        before = resident()
        fast = {make}
        {call}
        gc.collect()
        print(resident() - before)
    """
    done = fresh.run(textwrap.dedent(script), environ=os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1"})
    return float(done.stdout.splitlines()[-1])


def test_the_original_goes_and_packed_weights_keep_their_promise(folder):
    from_file = grown(f"bd.optimize('{folder}/model.keras')")
    loaded = grown(f"bd.load('{folder}/fast')")
    low = grown(f"bd.optimize('{folder}/model.keras', options=bd.Options(memory='low'))")
    # One copy for saving and at most three packed; the original's would be another.
    assert from_file <= (1 + 3) * WEIGHTS + SLACK
    assert from_file <= loaded + 0.5 * WEIGHTS + SLACK
    assert low <= (1 + 9 / 8) * WEIGHTS + SLACK


def test_several_signatures_and_batches_keep_it_too(folder):
    """Both signatures run at two batches, which need not have the same algorithms."""
    call = "[f(x) for x in (image, tf.repeat(image, 2, 0)) * 3 for f in fast.signatures.values()]"
    normal = grown(f"bd.optimize('{folder}/two')", call)
    low = grown(f"bd.optimize('{folder}/two', options=bd.Options(memory='low'))", call)
    # What "normal" keeps for each further signature and batch is the memory of one call.
    assert normal <= (1 + 3) * WEIGHTS + SLACK + 3 * CALL
    assert low <= (1 + 9 / 8) * WEIGHTS + SLACK


def test_calls_before_the_static_plan_leave_nothing():
    """Tensors lie in an arena from the third call on; TensorFlow's allocator kept the first ones'.

    Each is 16 MiB, and of two that follow each other both are there at once.
    """
    setup = """
        convs = [keras.layers.Conv2D(16, 1, activation="relu") for _ in range(3)]
        pool = keras.layers.GlobalAveragePooling2D()
        model = keras.Sequential([keras.Input([512, 512, 16]), *convs, pool])
        image = tf.ones([1, 512, 512, 16])
    """
    call = "[fast(image) for _ in range(4)] and None"
    make = "bd.optimize(model, options=bd.Options(algorithm='direct'))"
    assert grown(make, call, setup) <= 2 * 16 + SLACK


@pytest.mark.parametrize("precision", [None, "bf16", "bf16-weights", "int8", "int8-weights"])
def test_rewriting_needs_one_and_a_half_times_the_weights(precision):
    """What it takes at its peak beside the original, where one layer holds all weights."""
    setup = """
        model = keras.Sequential([keras.Input([8192]), keras.layers.Dense(4096)])  # 128 MiB
        model.predict(tf.ones([1, 8192]), verbose=False)
        native.return_free_memory()
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    """
    call = "print(status('VmHWM') - before); raise SystemExit"
    calibration = "[tf.ones([4, 8192])]" if precision else None
    make = f"bd.optimize(model, precision={precision!r}, calibration={calibration})"
    assert grown(make, call, setup) <= 1.5 * 128 + SLACK


def test_memory_goes_back_at_once_where_tensorflow_may_have_little():
    """TensorFlow's allocator waits for seconds when it is asked for more than it may have."""
    script = """
        import time
        import tensorflow as tf
        from tf_blockdnn.python import native

        kept = [tf.ones([1 << 20]) for _ in range(90)]  # 360 MiB of the 512
        pieces = kept[::2]
        del kept[1::2], kept
        start = time.perf_counter()
        native.return_free_memory()
        print(time.perf_counter() - start)
    """
    limit = {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_MKL_ALLOC_MAX_BYTES": str(512 << 20)}
    done = fresh.run(textwrap.dedent(script), environ=os.environ | limit)
    assert float(done.stdout.splitlines()[-1]) < 5


def test_memory_is_flat_where_results_go():
    """Their graphs, functions and packed weights go with them."""
    setup = """
        from tensorflow.python.eager import context

        def once():
            gc.collect()
            fast = bd.optimize(model)
            return fast(image).shape, fast.predict(image, verbose=0).shape

        model = keras.Sequential([keras.Input([14, 14, 512]), keras.layers.Conv2D(128, 3)])
        [once() for _ in range(3)]
        names = set(context.context().list_function_names())
    """
    call = """
        gc.collect()
        left = set(context.context().list_function_names()) - names
        assert len(left) < 10, left
    """
    assert grown("[once() for _ in range(9)] and None", call, setup) < 12  # of 2.3 MiB each
