"""Arguments in every form reach the fast way, and wrong ones TensorFlow's message."""

from collections import Counter, defaultdict

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

A, B = tf.TensorSpec([None, 2], name="a"), tf.TensorSpec([None, 2], name="b")


def combine(pair, scale=1.0, *, last):
    return (pair["a"] - 2.0 * pair["b"][0]) * scale - 5.0 * last


def again(fast, *args, **kwargs):
    """What a call gives; a second one of its form is not TensorFlow's to bind."""
    wanted, (call,) = fast(*args, **kwargs), fast.calls
    bind, call.bind = call.bind, None
    try:
        np.testing.assert_array_equal(fast(*args, **kwargs), wanted)
    finally:
        call.bind = bind
    return wanted


@pytest.fixture
def fast():
    given = {"b": [B], "a": A}
    function = tf.function(combine)
    return bd.optimize(function.get_concrete_function(given, 3.0, last=tf.TensorSpec([])))


@pytest.fixture
def pair(floats):
    return {"a": tf.constant(floats(3, 2)), "b": [floats(3, 2)]}


def test_nests_and_names(fast, pair):
    last = tf.constant(0.5)
    wanted = combine(pair, 3.0, last=last)
    for args, kwargs in [
        ((pair, 3.0), {"last": last}),
        ((pair,), {"last": 0.5}),
        ((dict(reversed(pair.items())),), {"last": np.array(0.5, np.float32)}),
        ((), {"last": last, "pair": pair, "scale": 3.0}),
    ]:
        np.testing.assert_allclose(again(fast, *args, **kwargs), wanted, rtol=1e-6)


class _Named(dict):
    def __init__(self, name, **values):
        super().__init__(**values)
        self.name = name


def _attribute(value):
    """As a tf.Module has it: lists and dictionaries become classes of TensorFlow's."""
    module = tf.Module()
    module.value = value
    return module.value


@pytest.mark.parametrize(
    "contained, is_traced",
    [
        (lambda pair: defaultdict(list, pair), False),
        (lambda pair: Counter(pair), True),  # of which TensorFlow traces none
        (lambda pair: _Named("pair", **pair), True),
        (_attribute, False),
        (lambda pair: {**pair, "b": _attribute(pair["b"])}, False),
    ],
)
def test_containers_with_constructors_of_their_own(fast, pair, contained, is_traced):
    pair, last = contained(pair), tf.constant(0.5)
    fast = fast if is_traced else bd.optimize(tf.function(combine))
    for _ in range(2):
        np.testing.assert_allclose(
            fast(pair, 3.0, last=last), combine(pair, 3.0, last=last), rtol=1e-6
        )


def test_objects(pair):
    """As defaults of lambdas have them, which bind what a loop goes over."""

    class Scale:
        value = 3.0

    scale, other = Scale(), Scale()
    function = tf.function(lambda a, by=scale: a * by.value)
    fast = bd.optimize(function.get_concrete_function(A, scale))
    for args, kwargs in [((pair["a"],), {}), ((pair["a"], scale), {}), ((), {"a": pair["a"]})]:
        np.testing.assert_allclose(fast(*args, **kwargs), pair["a"] * 3.0)
    with pytest.raises(TypeError, match="the function takes a: float32"):
        fast(pair["a"], other)


@pytest.mark.parametrize(
    "change",
    [
        lambda pair: ((pair, 2.0), {"last": 0.5}),
        lambda pair: ((pair,), {}),
        lambda pair: ((pair,), {"last": 0.5, "other": 1}),
        lambda pair: (({"a": pair["a"]},), {"last": 0.5}),
        lambda pair: (({**pair, "b": tuple(pair["b"])},), {"last": 0.5}),
        lambda pair: (({**pair, "b": pair["b"] * 2},), {"last": 0.5}),
        lambda pair: ((pair, 3.0, 0.5, 1), {}),
        lambda pair: ((pair,), {"last": 0.5, "pair": pair}),
    ],
)
def test_another_structure_is_refused(fast, pair, change):
    args, kwargs = change(pair)
    with pytest.raises(
        TypeError, match="; the function takes pair, scale, last: float32 "
    ) as error:
        fast(*args, **kwargs)
    assert "\n" not in str(error.value)


def test_a_wrong_shape_is_named_in_graphs_too(fast, pair):
    wrong = {**pair, "a": tf.zeros([3, 4])}
    message = r"shape=\(3, 4\), .* to TensorSpec\(shape=\(None, 2\), .*; the function takes pair"
    with pytest.raises(TypeError, match=message):
        fast(wrong, last=0.5)
    with pytest.raises(TypeError, match=message):
        tf.function(lambda: fast(wrong, last=0.5), autograph=False)()


class Subclass(np.ndarray):
    pass


ARRAYS = {
    "a memory map": lambda x, folder: _mapped(x, folder / "x.dat"),
    "a subclass": lambda x, folder: x.view(Subclass),
    "a masked array": lambda x, folder: np.ma.masked_array(x),
    "not contiguous": lambda x, folder: x[:, ::-1],
    "a variable": lambda x, folder: tf.Variable(x),
}


def _mapped(x, path):
    mapped = np.memmap(path, "float32", "w+", shape=x.shape)
    mapped[:] = x
    return mapped


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("has_signature", [False, True])
def test_arrays_of_every_kind(kind, has_signature, floats, tmp_path):
    signature = [A] if has_signature else None
    function = tf.function(lambda a: tf.matmul(a, tf.ones([2, 16])), input_signature=signature)
    value, fast = ARRAYS[kind](floats(3, 2), tmp_path), bd.optimize(function)
    for _ in range(2):
        np.testing.assert_allclose(fast(value), function(value), rtol=1e-5)


DEFAULTS = [2.0, np.float32(2), np.full(16, 2.0, "float32"), tf.constant(2.0), tf.Variable(2.0)]


@pytest.mark.parametrize("default", DEFAULTS, ids=lambda default: type(default).__name__)
@pytest.mark.parametrize("has_signature", [False, True])
def test_defaults_of_every_type(default, has_signature, floats):
    def scaled(a, by=default):
        return tf.matmul(a, tf.ones([2, 16])) * by

    if has_signature and isinstance(default, tf.Variable):
        pytest.skip("TensorFlow refuses it beside a signature")
    function = tf.function(scaled, input_signature=[A] if has_signature else None)
    fast, a = bd.optimize(function), tf.constant(floats(3, 2))
    calls = [((a,), {})]
    if not has_signature:
        calls += [((a, default), {}), ((a,), {"by": default})]
    for args, kwargs in calls * 2:
        np.testing.assert_allclose(fast(*args, **kwargs), function(*args, **kwargs), rtol=1e-5)


def test_names_beside_any_number_of_arguments(tmp_path, same):
    """All that a function with *args takes is positional only in the type of a trace."""

    def function(a, b=2.0, *more, by=1.0):
        return tf.matmul(a, tf.ones([3, 16])) * b * by + sum(more)

    module, a, b = tf.Module(), tf.ones([2, 3]), tf.constant(3.0)
    module.function = tf.function(function)
    calls = [((), {"a": a}), ((), {"b": b, "a": a}), ((a,), {"b": b, "by": 2.0})]
    calls += [((a, b, b), {"by": b}), ((), {"a": a, "by": b})]
    wanted = [module.function(*args, **kwargs) for args, kwargs in calls]
    tf.saved_model.save(module, str(tmp_path), signatures=module.function.get_concrete_function(a))
    for fast in (bd.optimize(module.function), bd.load(tmp_path).function):
        for _ in range(2):
            for (args, kwargs), value in zip(calls, wanted, strict=True):
                same(fast(*args, **kwargs), value)

    def only(a, /, *more):
        return tf.matmul(a, tf.ones([3, 16]))

    with pytest.raises(TypeError, match="positional only"):
        bd.optimize(tf.function(only))(a=a)


@pytest.mark.parametrize("number", [0, 1, 2, True, 1.5, np.int64(3)])
def test_numbers_of_python_are_no_places(number, tmp_path, same):
    """An endpoint's call is learnt by the places of its tensors, which are integers, too."""
    module, a = tf.Module(), tf.ones([2, 3])
    signature = [tf.TensorSpec(None), tf.TensorSpec([2, 3]), tf.TensorSpec(None)]
    module.function = tf.function(
        lambda by, a, more: tf.matmul(a, tf.ones([3, 16])) * by + tf.reduce_sum(more),
        input_signature=signature,
    )
    tf.saved_model.save(module, str(tmp_path), signatures=module.function)
    for fast in (bd.optimize(module.function), bd.load(tmp_path).function):
        for args in ((number, a, number), (2.0, a, number), (number, a, a)):
            for _ in range(2):
                same(fast(*args), module.function(*args))


def test_variables_are_arguments(weights, floats, same):
    """First, several, one twice, assigned by somebody or by the function: as in the original."""
    kernel = weights(3, 3, 3, 16)

    @tf.function
    def function(v, x, w):
        w.assign_add(1.0)
        return tf.nn.conv2d(x, kernel, 1, "SAME") * v - w

    fast, x = (
        bd.optimize(function, options=bd.Options(strict=True)),
        tf.constant(floats(1, 8, 8, 3)),
    )
    mine, theirs = ([tf.Variable(2.0), tf.Variable(3.0)] for _ in range(2))
    for first, second in ((0, 1), (1, 0), (0, 0), (0, 1)):
        same(fast(mine[first], x, mine[second]), function(theirs[first], x, theirs[second]))
        for pair in (mine, theirs):
            pair[0].assign_add(5.0)
    same(mine[0], theirs[0])
    assert all(call.report.count("BlockdnnConv") == 1 for call in fast.calls)


def test_empty_containers_are_no_none(weights, floats, same):
    kernel = weights(3, 3, 3, 16)

    @tf.function
    def function(x, sizes=None):
        y = tf.nn.conv2d(x, kernel, 1, "SAME")
        return y if sizes is None else (y * 2.0, {"e": [], "t": (), "n": None}, len(sizes))

    fast, x = bd.optimize(function), tf.constant(floats(1, 8, 8, 3))
    for args, kwargs in [((x,), {}), ((x, []), {}), ((x, ()), {}), ((x,), {"sizes": []})]:
        got, wanted = fast(*args, **kwargs), function(*args, **kwargs)
        tf.nest.assert_same_structure(got, wanted)
        same(tf.nest.flatten(got)[0], tf.nest.flatten(wanted)[0])


def test_names_are_no_positions(tmp_path):
    """Arguments of a signature lie in the order of their names, in which nobody wrote them."""

    @tf.function(input_signature=[A, tf.TensorSpec([None, 2], name="Another")])
    def minus(a, another):
        return a - 2.0 * another

    x, y = tf.ones([1, 2]), tf.fill([1, 2], 3.0)
    bd.optimize(minus).save(tmp_path / "two")
    loaded = bd.load(tmp_path / "two")
    with pytest.raises(TypeError, match="too many positional arguments; the function") as error:
        loaded(x, y)
    assert "\n" not in str(error.value)
    np.testing.assert_array_equal(loaded(Another=y, a=x)["output_0"], minus(x, y))
