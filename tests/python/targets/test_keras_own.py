"""What a class of the user's adds to a Keras model stays with the optimised one."""

import dataclasses
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


@pytest.fixture
def task(library):
    """A functional model of a class that has preprocessing, decoding and metrics of its own."""

    class Task(library.Model):
        def __init__(self, preprocessor, **kwargs):
            x = library.Input([16, 16, 3])
            y = library.layers.Conv2D(4, 3, activation="relu")(x)
            super().__init__(x, library.layers.GlobalAveragePooling2D()(y), **kwargs)
            self.preprocessor, self.seen = preprocessor, library.metrics.Mean(name="seen")

        def predict(self, x, **kwargs):
            return {"order": super().predict(self.preprocessor(x), **kwargs)[:, 0].argsort()}

        def predict_step(self, data):
            return super().predict_step(data) * self.scale

        @property
        def scale(self):
            return -1.0

        def test_step(self, data):
            self.seen.update_state(self(data[0], training=False))
            return {"seen": self.seen.result()}

    made = Task(lambda x: x / 255.0)
    made.compile("sgd", "mse")
    return made


def test_methods_of_the_class_stay(task, pictures, same):
    fast, values = bd.optimize(task), pictures * 100.0
    assert isinstance(fast, type(task)) and fast.report.count("BlockdnnConv") == 1
    same(fast(pictures), task(pictures))
    wanted = task.predict(values, verbose=0)["order"]
    np.testing.assert_array_equal(fast.predict(values, verbose=0)["order"], wanted)
    assert len(set(wanted)) > 1
    same(fast.predict_on_batch(pictures), task.predict_on_batch(pictures))
    assert isinstance(fast.predict_function, tf.types.experimental.PolymorphicFunction)
    again = bd.optimize(fast)
    np.testing.assert_array_equal(again.predict(values, verbose=0)["order"], wanted)


def test_a_step_reads_the_batch_behind_loops_over_it(pictures, same):
    """As the decoder of KerasHub's D-FINE does."""

    class Rows(keras.layers.Layer):
        def call(self, x):
            largest = keras.ops.map(lambda row: keras.ops.max(row, [0, 1]), x)
            places = keras.ops.arange(keras.ops.shape(x)[0])
            return keras.ops.take(largest, places, axis=0) + keras.ops.zeros_like(largest)

        def compute_output_spec(self, x):
            return keras.KerasTensor([x.shape[0], x.shape[-1]])

    class Detector(keras.Model):
        def predict_step(self, data):
            results = super().predict_step(data)
            return keras.ops.stack([results[i] for i in range(results.shape[0])])

    x = keras.Input([16, 16, 3])
    model = Detector(x, Rows()(keras.layers.Conv2D(4, 3)(x)))
    fast = bd.optimize(model)
    assert fast.report.count("BlockdnnConv") == 1
    for batch in (1, 4, 8):
        for one in (model, fast):
            one.make_predict_function(force=True)
        got = fast.predict(pictures, batch_size=batch, verbose=0)
        same(got, model.predict(pictures, batch_size=batch, verbose=0))


def test_metrics_of_the_class_count_for_one(task, pictures, same):
    fast, labels = bd.optimize(task), np.zeros((8, 4), np.float32)
    got = fast.evaluate(pictures, labels, verbose=0)
    assert float(task.seen.result()) == 0.0 and float(fast.seen.result()) > 0.0
    same(got, task.evaluate(pictures, labels, verbose=0))


def test_what_neither_has(task):
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = bd.optimize(task).nothing


def test_training_steps_of_the_class_are_refused(library, pictures):
    class Trains(library.Model):
        def train_step(self, data):
            return {"loss": 0.0}

        def fit(self, *args, **kwargs):
            return super().fit(*args, **kwargs)

    x = library.Input([16, 16, 3])
    model = Trains(x, library.layers.Conv2D(4, 3)(x))
    model.compile("sgd", "mse")
    fast = bd.optimize(model)
    for run in (fast.fit, fast.train_on_batch, lambda *a: fast.train_step(a)):
        with pytest.raises(ValueError, match="^an optimised model is for inference: train the"):
            run(pictures, pictures)
    with pytest.raises(ValueError, match="^an optimised model has no layers to quantize: quantize"):
        fast.quantize("int8")


def test_numbers_of_tokens(library, same):
    """Nobody knows the dtype of a subclassed model's inputs before it is called."""

    class Looks(library.Model):
        def __init__(self):
            super().__init__()
            self.table = self.add_weight(shape=(8, 4), initializer="uniform", name="table")

        def call(self, ids):
            return tf.gather(tf.convert_to_tensor(self.table), tf.cast(ids, tf.int32)) + float(
                ids.dtype.is_integer if hasattr(ids.dtype, "is_integer") else "int" in ids.dtype
            )

    model, ids = Looks(), np.array([[1, 2, 3]], np.int32)
    model(ids)
    fast = bd.optimize(model)
    for given in (ids, tf.constant(ids), ids.astype("int64"), ids.astype("uint8")):
        same(fast(given), model(given))
        same(fast.predict(given, verbose=0), model(given))
    same(fast(ids.astype("float32")), model(ids.astype("float32")))
    same(fast(ids.astype("float64")), model(ids.astype("float64")))


@pytest.fixture
def caller(library):
    """A subclassed model of several arguments."""

    class Caller(library.Model):
        def __init__(self):
            super().__init__()
            self.conv = library.layers.Conv2D(8, 3, padding="same")
            self.scale = library.layers.Dense(8)

        def call(self, x, context=None, flip=False, training=None, gain=1.0):
            y = self.conv(x)
            if context is not None:
                y = y + self.scale(context)[:, None, None, :]
            if flip:
                y = -y
            return {"y": y * gain, "training": tf.constant(float(bool(training)))}

    model = Caller()
    model(np.zeros((1, 16, 16, 3), np.float32), np.zeros((1, 2), np.float32))
    return model


def test_arguments_of_call(caller, pictures, same, floats):
    context = floats(8, 2)
    fast = bd.optimize(caller)
    calls = [
        ((pictures,), {}),
        ((pictures, context), {}),
        ((pictures,), {"context": context}),
        ((pictures,), {"context": context, "flip": True}),
        ((), {"x": pictures}),
        ((pictures,), {"gain": 3.0, "training": False}),
        ((pictures, None), {"flip": True}),
    ]
    for args, kwargs in calls:
        same(fast(*args, **kwargs), caller(*args, **kwargs))
        assert all(one.report.count("BlockdnnConv") for one in fast.optimized.calls)


def test_structures_of_results(pictures, same):
    @dataclasses.dataclass
    class Result:
        y: tf.Tensor
        mean: tf.Tensor

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.conv = keras.layers.Conv2D(8, 3)

        def call(self, x):
            y = self.conv(x)
            return {"deep": [(y, {"more": y + 1.0})], "none": None}

    model = Model()
    model(pictures)
    got, wanted = bd.optimize(model)(pictures), model(pictures)
    assert isinstance(got["deep"][0], tuple) and got["none"] is None
    same(got["deep"], wanted["deep"])


def test_a_class_with_a_call_of_its_own_around_a_functional_one(library, pictures, same):
    class Doubles(library.Model):
        def call(self, inputs, training=None, mask=None):
            return 2.0 * super().call(inputs, training=training, mask=mask)

    x = library.Input([16, 16, 3])
    model = Doubles(x, library.layers.Conv2D(4, 3)(x))
    fast = bd.optimize(model)
    same(fast(pictures), model(pictures))
    same(fast.predict(pictures, verbose=0), model(pictures))


def test_a_class_that_is_called_in_its_own_way(library, pictures, same):
    """What it does around Keras's call is done once."""

    class Halves(library.Model):
        def __call__(self, inputs, **kwargs):
            return super().__call__(inputs / 2.0, **kwargs)

    x = library.Input([16, 16, 3])
    model = Halves(x, library.layers.Conv2D(4, 3)(x))
    fast = bd.optimize(model)
    for given in (pictures, tf.constant(pictures), pictures.astype("float64")):
        same(fast(given), model(given))
    same(fast.predict(pictures, verbose=0), model(pictures))


def test_symbolic_calls_of_a_subclassed_model(library, caller, pictures, same):
    x = library.Input([16, 16, 3])
    fast = bd.optimize(caller)
    outer = library.Model(x, fast(x)["y"])
    assert tuple(outer.output_shape) == (None, 16, 16, 8)
    same(outer(pictures), caller(pictures)["y"])


def test_two_threads_optimise_at_once(library, pictures, same, in_threads):
    def model(channels):
        x = library.Input([16, 16, 3])
        y = library.layers.Conv2D(channels, 3, activation="relu")(x)
        return library.Model(x, library.layers.Dense(4)(library.layers.Flatten()(y)))

    models = [model(8 + i) for i in range(4)]
    fast = in_threads(4, lambda i: bd.optimize(models[i]))
    for one, original in zip(fast, models, strict=True):
        same(one(pictures), original(pictures))


class Pair(NamedTuple):
    x: tf.Tensor
    size: tf.Tensor


def _arguments(library, name):
    """A subclassed model whose call takes its arguments in another way, and calls of it."""

    class Base(library.Model):
        def __init__(self):
            super().__init__()
            self.conv = library.layers.Conv2D(4, 3)

    class Two(Base):
        def call(self, x, size):
            return self.conv(x) * size

    class Several(Base):
        def call(self, *several):
            return sum(map(self.conv, several))

    class Named(Base):
        def call(self, x, **more):
            return self.conv(x) * more.get("size", 1.0)

    class KeywordOnly(Base):
        def call(self, x, *, size):
            return self.conv(x) * size

    class Nests(Base):
        def call(self, inputs, more):
            return self.conv(inputs["a"]) + more["b"][0]

    class Fields(Base):
        def call(self, pair):
            y = self.conv(pair.x)
            return tf.cond(pair.size > 2.0, lambda: y, lambda: y * pair.size)

    class Empty(Base):
        def call(self, x, sizes=None):
            return self.conv(x) * (1.0 if sizes is None else 2.0 + len(sizes))

    x, size = tf.random.stateless_normal([2, 16, 16, 3], [1, 2]), tf.constant(3.0)
    calls = {
        Two: [((x, size), {}), ((x,), {"size": size}), ((), {"x": x, "size": size})],
        Several: [((x,), {}), ((x, 2.0 * x), {})],
        Named: [((x,), {}), ((x,), {"size": size})],
        KeywordOnly: [((x,), {"size": size})],
        Nests: [(({"a": x}, {"b": [size]}), {})],
        Fields: [((Pair(x, size),), {}), ((Pair(size=0.1 * size, x=x),), {})],
        Empty: [((x,), {}), ((x,), {"sizes": []}), ((x,), {"sizes": [size]})],
    }
    kind = next(kind for kind in calls if kind.__name__ == name)
    return kind(), calls[kind]


@pytest.mark.parametrize("name", "Two Several Named KeywordOnly Nests Fields Empty".split())
def test_calls_that_take_several_arguments(library, name, same):
    model, calls = _arguments(library, name)
    wanted = [model(*args, **kwargs) for args, kwargs in calls]
    fast = bd.optimize(model)
    for _ in range(2):
        for (args, kwargs), value in zip(calls, wanted, strict=True):
            same(fast(*args, **kwargs), value)
    reports = [call.report for call in fast.optimized.calls]
    assert reports and all(report.count("BlockdnnConv") for report in reports)
    assert name != "Fields" or len(reports) == 1  # What it was built for tells all of it.


def test_classes_derived_from_sequential(library, pictures, same, tmp_path):
    class Adds(library.Sequential):
        def __init__(self):
            super().__init__()
            self.add(library.layers.Conv2D(4, 3))
            self.add(library.layers.ReLU())

        def twice(self, x):
            return 2.0 * self(x)

    class Calls(library.Sequential):
        def call(self, x, training=None):
            return 2.0 * super().call(x, training=training)

    for model in (Adds(), Calls([library.Input([16, 16, 3]), library.layers.Conv2D(4, 3)])):
        wanted = model(pictures)
        fast = bd.optimize(model)
        assert isinstance(fast, type(model)) and fast.report.count("BlockdnnConv") == 1
        same(fast(pictures), wanted)
        same(fast.predict(pictures, verbose=0), wanted)
        if isinstance(model, Adds):
            same(fast.twice(pictures), model.twice(pictures))
        fast.export(tmp_path / type(model).__name__)
        (got,) = bd.load(tmp_path / type(model).__name__)(pictures).values()
        same(got, wanted)


def test_names_of_the_user_are_the_users(library, pictures, same):
    class Named(library.Model):
        report = "mine"

        def __init__(self):
            super().__init__()
            self.conv = library.layers.Conv2D(4, 3)
            self.concrete, self.optimized, self._first = "wall", "by hand", 1

        def call(self, x):
            return self.conv(x)

    model = Named()
    wanted = model(pictures)
    fast = bd.optimize(model)
    same(fast(pictures), wanted)
    assert (fast.report, fast.concrete, fast.optimized, fast._first) == (
        "mine",
        "wall",
        "by hand",
        1,
    )
