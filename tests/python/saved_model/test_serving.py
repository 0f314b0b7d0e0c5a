"""An optimised SavedModel served by a C++ program that has no Python in it."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.native import LIBRARY_PATH

_ROOT = Path(__file__).resolve().parents[3]
_BAZEL = _ROOT / "build_tools" / "bazel"


@pytest.fixture(scope="module")
def programs():
    """Where "serve" and "serve_linked" are; they are built where Bazel is."""
    if not (shutil.which("bazelisk") or Path("/usr/bin/bazel-4").exists()):
        pytest.skip("no Bazel to build tests/cc/serving with")
    subprocess.run([_BAZEL, "build", "//tests/cc/serving:all"], check=True, cwd=_ROOT)
    return _ROOT / ".build" / "bazel-bin" / "tests" / "cc" / "serving"


@pytest.fixture
def network():
    kernels = [tf.Variable(tf.random.stateless_normal([3, 3, 32, 32], [i, 7])) for i in range(4)]

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 32], name="image")])
    def function(image):
        for kernel in kernels:
            image = tf.nn.relu(tf.nn.conv2d(image, kernel * 0.1, 1, "SAME") + image)
        return {"scores": tf.nn.softmax(tf.reduce_mean(image, [1, 2]))}

    function.kernels = kernels
    return function


@pytest.mark.parametrize("program, library", [("serve", LIBRARY_PATH), ("serve_linked", "linked")])
def test_the_same_bits_from_several_threads(programs, program, library, network, tmp_path):
    module = tf.Module()
    module.function, module.kernels = network, network.kernels
    tf.saved_model.save(module, str(tmp_path / "plain"), signatures=network)
    bd.optimize_saved_model(tmp_path / "plain", tmp_path / "fast")
    image = tf.random.stateless_normal([2, 14, 14, 32], [3, 5])
    loaded = tf.saved_model.load(str(tmp_path / "fast")).signatures["serving_default"]
    wanted = loaded(image=image)["scores"].numpy()
    np.testing.assert_allclose(wanted, network(image)["scores"], rtol=1e-4)

    files = [tmp_path / "image", tmp_path / "scores"]
    files[0].write_bytes(tf.make_tensor_proto(image).SerializeToString())
    command = [programs / program, library, tmp_path / "fast", *files, "4", "30"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert re.fullmatch(r"alone .* ms, 4 threads .* ms a call\n", run.stdout)
    got = np.frombuffer(files[1].read_bytes(), np.float32).reshape(wanted.shape)
    np.testing.assert_array_equal(got, wanted)


def test_without_the_library_the_missing_op_is_named(programs, network, tmp_path):
    fast = bd.optimize(network)
    fast.save(tmp_path / "fast")
    (tmp_path / "image").write_bytes(
        tf.make_tensor_proto(tf.zeros([1, 3, 3, 32])).SerializeToString()
    )
    libc = "/lib/x86_64-linux-gnu/libm.so.6"  # any library without our ops
    files = [tmp_path / "fast", tmp_path / "image", tmp_path / "out"]
    command = [programs / "serve", libc, *files, "1", "1"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1 and "BlockdnnRegion" in run.stderr
