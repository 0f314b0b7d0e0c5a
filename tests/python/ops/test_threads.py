"""The number of threads that ops run on: who decides it, and that results do not depend on it."""

import json
import os
import pathlib

import fresh
import numpy as np
import pytest

import tf_blockdnn as bd


def _siblings(cpu):
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return path.read_text() if path.exists() else str(cpu)


# Hyperthreads are one; a machine of fast and efficient cores would count others.
_CORES = len({_siblings(cpu) for cpu in os.sched_getaffinity(0)})
_SPEAK = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS")


def run(program: str, *, environ=()):
    """What a fresh process prints, as JSON."""
    clean = {name: value for name, value in os.environ.items() if name not in _SPEAK}
    program = "import json, tensorflow as tf, tf_blockdnn as bd\n" + program
    result = fresh.run(program, environ=clean | dict(environ))
    return json.loads(result.stdout.splitlines()[-1])


# The threads of the ops themselves, and what info says before and after they are made.
_PRINT = """
from tf_blockdnn.python.ops.memory import pool_threads
before = bd.info()
ops = pool_threads()
print(json.dumps([before["threads"], ops, bd.info()["threads"], before["threads_source"]]))
"""


@pytest.mark.parametrize(
    "environ, first, threads, source",
    [
        ({}, "", _CORES, "the cores of the CPUs that this process may run on"),
        ({"OMP_NUM_THREADS": "1"}, "", 1, "OMP_NUM_THREADS" if _CORES > 1 else "the cores"),
        ({"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "5"}, "", 5, "TF_NUM_INTRAOP_THREADS"),
        (
            {"TF_NUM_INTRAOP_THREADS": "5"},
            "tf.config.threading.set_intra_op_parallelism_threads(7)",
            7,
            "TensorFlow's intra-op setting",
        ),
        ({"TF_NUM_INTRAOP_THREADS": "5"}, "bd.set_threads(9, callers=2)", 4, "bd.set_threads"),
    ],
)
def test_who_decides(environ, first, threads, source):
    *numbers, said = run(first + _PRINT, environ=environ)
    assert numbers == [threads] * 3
    assert said.startswith(source)


def test_affinity():
    numbers = run("import os\nos.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n" + _PRINT)
    assert numbers[:3] == [1, 1, 1]


def test_the_number_is_fixed_by_the_first_op():
    late = """
bd.ops.memory_plan("conv", (1, 1, 8, 8, 16), (3, 3, 16, 16), padding="SAME").scratchpad
bd.set_threads(3)  # says what holds
try:
    bd.set_threads(4)
except RuntimeError as error:
    print(json.dumps([str(error), bd.info()["threads"]]))
"""
    error, threads = run("bd.set_threads(2, callers=2)\nbd.set_threads(3)\n" + late)
    assert "set_threads comes too late" in error and "\n" not in error
    assert threads == 3


@pytest.mark.parametrize("n", [0, -1, 1025, 1.0, "2", None, True])
def test_a_number_of_no_sense(n):
    with pytest.raises(ValueError, match="n must be from 1 to 1024, got"):
        bd.set_threads(n)


@pytest.mark.parametrize("callers", [0, 3, 1.0, None, True])
def test_callers_of_no_sense(callers):
    with pytest.raises(ValueError, match="callers must be from 1 to n, which is 2, got"):
        bd.set_threads(2, callers=callers)


_NETWORK = """
import sys, numpy as np, keras
keras.utils.set_random_seed(1)
x = image = keras.Input((30, 30, 3))
x = keras.layers.Conv2D(40, 3, 2, activation="relu")(x)
y = keras.layers.Conv2D(40, 3, padding="same")(x)
x = keras.layers.ReLU()(keras.layers.Add()([x, y]))
x = keras.layers.DepthwiseConv2D(3, activation="relu6")(x)
x = keras.layers.MaxPooling2D(2)(keras.layers.Conv2D(70, 1)(x))
x = keras.layers.Dense(50)(keras.layers.GlobalAveragePooling2D()(x))
fast = bd.optimize(keras.Model(image, x))
images = np.random.default_rng(1).standard_normal((4, 30, 30, 3)).astype("float32")
for _ in range(4):  # op by op, recorded, and by plan
    results = [np.asarray(fast(images[:n])).tolist() for n in (1, 4)]
print(json.dumps([bd.info()["threads"], results]))
"""


def test_results_with_more_threads_than_cpus():
    """Algorithms may differ between numbers of threads, so results agree to rounding."""
    _, wanted = run("bd.set_threads(1)" + _NETWORK)
    for threads in (2, 7, 64):
        used, results = run(f"bd.set_threads({threads})" + _NETWORK)
        assert used == threads
        for got, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
