"""Ways to hand over an image, and ways to call a function of one.

A way takes a `Call`, which is a function from an image to an answer, and the image. It is the same
program for an original and for what `bd.optimize` made of it, so both have to give the same.
"""

import dataclasses
import functools
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
import tf_keras

function = functools.partial(tf.function, autograph=False)


@dataclasses.dataclass(eq=False)
class Call:
    """Calls `entry` with what `arguments` makes of an image."""

    entry: Callable
    arguments: Callable  # image -> (args, kwargs)

    def __post_init__(self):
        self.kept = function(self)

    def __call__(self, x):
        args, kwargs = self.arguments(x)
        return self.entry(*args, **kwargs)


# What the image is handed over as.


class Marked(np.ndarray):
    """A subclass of arrays, as pandas, astropy and others have."""


def _memmap(x):
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, x)
        return np.load(file.name, mmap_mode="r")


def _read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


FORMS = {
    "tensor": tf.constant,
    "array": lambda x: x,
    "memmap": _memmap,
    "subclass of arrays": lambda x: x.view(Marked),
    "array of strides": lambda x: np.repeat(x, 2, 2)[:, :, ::2],
    "array of columns": np.asfortranarray,
    "read-only array": _read_only,
    "variable": tf.Variable,
}
MISFITS = {
    "lists": lambda x: x.tolist(),
    "float64 array": lambda x: x.astype(np.float64),
    "float16 tensor": lambda x: tf.cast(x, tf.float16),
    "float64 tensor": lambda x: tf.cast(x, tf.float64),
    "ints": lambda x: np.round(x * 3).astype(np.int32),
    "bytes": lambda x: tf.cast(np.abs(x) * 20, tf.uint8),
    "too few axes": lambda x: x[0, 0] if len(x) else x[..., 0],
    "other channels": lambda x: x[..., :2],
    "other size": lambda x: x[:, :-1, :-2],
}
ALL_FORMS = FORMS | MISFITS

# How it is called.


def eager(call, x):
    return call(x)


def again(call, x):
    """Thrice, as the fast way records its plan at the second call."""
    return [call(x) for _ in range(3)]


def in_a_thread(call, x):
    answers = []

    def run():
        try:
            answers.append(call(x))
        except Exception as error:  # it belongs to the thread that asked
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(answers[0], Exception):
        raise answers[0]
    return answers[0]


def in_a_function(call, x):
    """As an argument, of open batch where it is a tensor."""
    if not isinstance(x, tf.Tensor):
        return function(call)(x)
    spec = tf.TensorSpec([None, *x.shape[1:]], x.dtype)
    return function(call, input_signature=[spec])(x)


def kept_function(call, x):
    """In a function that was traced at the first such call, and outlives changes of weights."""
    return call.kept(x)


def closed_over(call, x):
    return function(lambda: call(x))()


def in_a_branch(call, x):
    first = function(lambda x: tf.nest.flatten(call(x))[0])

    @function
    def choose(flag, x):
        return tf.cond(flag, lambda: first(x), lambda: first(x * 2.0))

    return [choose(tf.constant(flag), _tensor(x)) for flag in (True, False)]


def in_a_loop(call, x):
    def one(row):
        return tf.cast(tf.nest.flatten(call(row[tf.newaxis]))[0][0], tf.float32)

    return function(lambda x: tf.map_fn(one, x, parallel_iterations=1))(_tensor(x))


def in_a_map(call, x):
    return list(tf.data.Dataset.from_tensors(_tensor(x)).map(call))


def in_a_parallel_map(call, x):
    data = tf.data.Dataset.from_tensor_slices(_tensor(x)).repeat(3).batch(2)
    first = data.map(lambda x: tf.nest.flatten(call(x))[0], num_parallel_calls=2)
    return list(first.prefetch(1))


def in_a_py_function(call, x):
    x = _tensor(x)
    run = lambda x: tf.nest.flatten(call(x))[0]  # noqa: E731
    return function(lambda x: tf.py_function(run, [x], tf.float32))(x)


@functools.cache
def _strategy(name):
    if name == "one device":
        return tf.distribute.OneDeviceStrategy("/cpu:0")
    return tf.distribute.MirroredStrategy(["/cpu:0"])


def on_one_device(call, x):
    """In a thread of its own: an error within a scope leaves TensorFlow's thread in it."""

    def run(x):
        with _strategy("one device").scope():
            return call(x)

    return in_a_thread(run, x)


def replicated(call, x):
    strategy = _strategy("mirrored")
    step = function(lambda x: strategy.run(call, (x,)))
    return in_a_thread(step, _tensor(x))


# Gradients, by inputs: of a weighted sum of all that is float in the answer.


def _tensor(x):
    return x if isinstance(x, tf.Variable) else tf.convert_to_tensor(x)


def loss(answer):
    total = 0.0
    for leaf in tf.nest.flatten(answer):
        if leaf is not None and leaf.dtype.is_floating:
            weights = tf.cos(tf.cast(tf.range(tf.size(leaf)), tf.float32))
            total += tf.reduce_sum(tf.reshape(tf.cast(leaf, tf.float32), [-1]) * weights)
    return total


def gradient(call, x):
    x = _tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        answer = call(x)
        total = loss(answer)
    return answer, tape.gradient(total, x)


def persistent_tape(call, x):
    x = _tensor(x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        answer = call(x)
        one, other = loss(answer), loss(answer) * 2.0
    return [tape.gradient(total, x) for total in (one, other, one)]


def gradient_in_a_function(call, x):
    return function(lambda x: gradient(call, x))(_tensor(x))


def tf_gradients(call, x):
    return function(lambda x: tf.gradients(loss(call(x)), x)[0])(_tensor(x))


def nested_tapes(call, x):
    x = _tensor(x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            total = loss(call(x))
        first = inner.gradient(total, x)
        norm = tf.reduce_sum(first * first)
    return first, outer.gradient(norm, x)


def jacobian(call, x):
    x = _tensor(x)[:1]
    with tf.GradientTape() as tape:
        tape.watch(x)
        first = tf.nest.flatten(call(x))[0]
    return tape.jacobian(first, x)


def forward_mode(call, x):
    x = _tensor(x)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x) * 0.5) as accumulator:
        total = loss(call(x))
    return accumulator.jvp(total)


def recomputed(call, x):
    return gradient(tf.recompute_grad(lambda x: loss(call(x))), x)


def by_weight(call, x, weight):
    with tf.GradientTape() as tape:
        total = loss(call(x))
    gradient = tape.gradient(total, weight)
    return gradient if gradient is None else tf.convert_to_tensor(gradient)


def in_a_fork(call, x):
    """What a forked child computes, as arrays, which has some seconds for it."""
    call(x)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            os.write(writer, pickle.dumps(tf.nest.map_structure(np.asarray, call(x))))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return pickle.loads(answer)


CALLS = [eager, again, in_a_thread, in_a_function, kept_function, closed_over]
CALLS += [on_one_device, replicated]
# Of what an empty batch makes no sense for.
OF_SOMETHING = [in_a_map, in_a_branch, in_a_loop, in_a_parallel_map, in_a_py_function]
# Where an error would leave one of TensorFlow's functions locked for ever: it keeps its lock when
# arguments do not fit.
IN_THREADS = [in_a_thread, in_a_py_function, on_one_device, replicated]
GRADIENTS = [gradient, gradient_in_a_function, persistent_tape, tf_gradients, nested_tapes]
GRADIENTS += [jacobian, forward_mode, recomputed]


# Of Keras models only.


def predict(call, x):
    (batch,), _ = call.arguments(x)
    return call.entry.predict(batch, verbose=0, batch_size=2)


def predict_on_batch(call, x):
    (batch,), _ = call.arguments(x)
    return call.entry.predict_on_batch(batch)


def as_a_layer(call, x):
    library = tf_keras if isinstance(call.entry, tf_keras.Model) else keras
    spec = library.Input(x.shape[1:])
    return library.Model(spec, call(spec))(x)


OF_KERAS = [predict, predict_on_batch, as_a_layer]
WAYS = {way.__name__: way for way in CALLS + OF_SOMETHING + GRADIENTS + OF_KERAS}
