"""An optimised Keras model matches and casts its inputs as the original does."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

GIVEN = {"zz": np.full((2, 3), 5.0, np.float32), "aa": np.full((2, 3), 1.0, np.float32)}


def two_inputs(library, structure):
    zz, aa = library.Input([3], name="zz"), library.Input([3], name="aa")
    inputs = {"dict": {"zz": zz, "aa": aa}, "sorted": {"aa": aa, "zz": zz}, "list": [zz, aa]}
    return library.Model(inputs[structure], library.layers.Subtract()([zz, aa]))


@pytest.mark.parametrize("structure", ["dict", "sorted", "list"])
def test_names_decide(library, structure):
    model = two_inputs(library, structure)
    fast = bd.optimize(model)
    for given in (GIVEN, dict(reversed(GIVEN.items())), {k: tf.constant(GIVEN[k]) for k in GIVEN}):
        np.testing.assert_array_equal(fast(given), np.full((2, 3), 4.0))
        np.testing.assert_array_equal(fast(given), model(given))
        np.testing.assert_array_equal(fast.predict(given, verbose=0), np.full((2, 3), 4.0))
    with pytest.raises(ValueError, match="Missing data for input .aa"):
        fast({"zz": GIVEN["zz"], "bb": GIVEN["aa"]})


def test_more_names_than_a_list_has_inputs(library):
    model = two_inputs(library, "list")
    given = {**GIVEN, "other": GIVEN["aa"]}
    np.testing.assert_array_equal(bd.optimize(model)(given), np.full((2, 3), 4.0))


def test_casts(library, functional, same, integers):
    fast = bd.optimize(functional)
    assert fast.report.count("BlockdnnConv") == 1
    sequential = library.Sequential([library.Input([16, 16, 3]), library.layers.Conv2D(16, 3)])
    fast_sequential = bd.optimize(sequential)
    for dtype in ("float64", "float16", "int32", "int64", "uint8", "bool"):
        values = integers(2, 16, 16, 3, low=0).astype(dtype)
        same(fast(values), functional(values))
        same(fast(tf.constant(values)), functional(values))
        same(fast_sequential(tf.constant(values)), sequential(values))


def test_text_beside_what_is_cast(library, integers, floats, same, monkeypatch):
    """As the columns of a table are: numbers of other types than the model's, and text."""
    if library.__name__ == "tf_keras":
        pytest.skip("Keras 2 has no layers that hand on text")
    ids, price = library.Input([3], dtype="int64"), library.Input([2], dtype="float32")
    text = library.Input([1], dtype="string")
    y = library.layers.Dense(32)(library.layers.Concatenate()([price, price]))
    model = library.Model([ids, text, price], [ids * 2, text, y])
    fast = bd.optimize(model)

    def given() -> list:
        words = np.array([["a"], ["b"]], object)
        return [integers(2, 3).astype("int32"), words, floats(2, 2).astype("float64")]

    for make in (list, lambda arrays: list(map(tf.constant, arrays))):
        for _ in range(2):
            x = make(given())
            for got, wanted in zip(fast(x), model(x), strict=True):
                assert got.dtype == wanted.dtype
                is_text = got.dtype == tf.string
                (np.testing.assert_array_equal if is_text else same)(got, wanted)
    monkeypatch.setattr(fast.optimized, "_keras_call", None)
    fast(make(given()))  # It is known where each of them goes.


@pytest.mark.parametrize("dtype", [object, str])
def test_arrays_that_hold_no_numbers_are_cast(library, functional, same, integers, dtype):
    """Keras casts them, as NumPy does; rows of a table may be such."""
    if library.__name__ == "tf_keras":
        pytest.skip("Keras 2 takes none")
    fast, values = bd.optimize(functional), integers(2, 16, 16, 3)
    for _ in range(2):
        same(fast(values.astype(dtype)), functional(values.astype("float32")))
    function = tf.function(lambda x: functional(x), input_signature=[tf.TensorSpec([2, 16, 16, 3])])
    same(bd.optimize(function)(x=values.astype(object)), functional(values.astype("float32")))


@pytest.mark.parametrize("kind", [tf.RaggedTensor.from_tensor, tf.sparse.from_dense])
def test_ragged_and_sparse_tensors(library, kind, floats, same):
    """Another one of the same type is no other signature, and is compared with no other."""

    class Rows(library.Model):
        def __init__(self):
            super().__init__()
            self.dense = library.layers.Dense(32)

        def call(self, x):
            dense = x.to_tensor() if isinstance(x, tf.RaggedTensor) else tf.sparse.to_dense(x)
            return self.dense(tf.reshape(dense, [-1, 16]))

    model, values = Rows(), [kind(tf.constant(floats(3, 16))) for _ in range(3)]
    wanted = [model(x) for x in values]
    fast = bd.optimize(model)
    for x, value in zip(values, wanted, strict=True):
        same(fast(x), value)
    assert len(fast.optimized.calls) == 1


@pytest.mark.parametrize("kind", ["one_hot", "gather"])
def test_integers_of_a_subclassed_model(library, kind, integers, same):
    """Keras 3 knows the shapes of what it was called with, and nobody the types."""

    class Ids(library.Model):
        def __init__(self):
            super().__init__()
            self.dense = library.layers.Dense(32)

        def call(self, ids):
            made = tf.gather(tf.eye(9), ids) if kind == "gather" else tf.one_hot(ids, 9)
            return self.dense(made)

    model, ids = Ids(), tf.constant(integers(2, 7, low=0).astype("int32") % 9)
    wanted = model(ids)
    fast = bd.optimize(model)
    same(fast(ids), wanted)
    assert len(fast.optimized.calls) == 1 and fast.report.count("BlockdnnInnerProduct") == 1


@pytest.mark.parametrize("make", [np.asarray, tf.constant], ids=["arrays", "tensors"])
def test_what_keras_casts_is_cast_without_it(library, make, monkeypatch):
    a, b, c = (
        library.Input((1,), name=name, dtype=t)
        for name, t in zip("abc", ("int32", "float32", "float32"), strict=True)
    )
    rows = library.layers.Flatten()(library.layers.Embedding(9, 4)(a))
    model = library.Model([a, b, c], library.layers.Concatenate()([rows, b, b, c]))
    fast, random = bd.optimize(model), np.random.default_rng(0)

    def given() -> dict:
        x = {"c": random.normal(size=5), "b": random.normal(size=(5, 1))}
        return {name: make(value) for name, value in {**x, "a": random.integers(0, 9, 5)}.items()}

    fast(given())
    monkeypatch.delattr(type(fast.optimized), "_ask_keras")
    fast.optimized._keras_call = None
    x = given()
    np.testing.assert_array_equal(fast(x), model(x))


def test_a_last_axis_of_one_comes_and_goes(library):
    x = library.Input([5, 1])
    fast = bd.optimize(library.Model(x, library.layers.Flatten()(x)))
    values = np.ones((2, 5), np.float32)
    np.testing.assert_array_equal(fast(values), values)
    np.testing.assert_array_equal(fast(tf.constant(values)), values)


def test_metrics_are_its_own(functional, pictures, library):
    metric = library.metrics.MeanAbsoluteError()
    functional.compile("sgd", "mse", metrics=[metric])
    bd.optimize(functional).evaluate(pictures, np.zeros((8, 4), np.float32), verbose=0)
    assert float(metric.count) == 0.0


@pytest.mark.parametrize("form", ["list", "tuple", "nested list", "keyword"])
def test_forms_of_one_input(functional, pictures, same, form):
    fast, wanted = bd.optimize(functional), functional(pictures[:1])
    given = pictures[:1]
    args, kwargs = {
        "list": (([given],), {}),
        "tuple": (((given,),), {}),
        "nested list": ((tf.constant(given.tolist()),), {}),
        "keyword": ((), {"inputs": given}),
    }[form]
    same(fast(*args, **kwargs), wanted)
    same(fast(*args, **kwargs, training=False, mask=None), wanted)


def test_nests_of_inputs(library, same, floats):
    """Nested ones go by sorted names where they are dicts, by place where they are lists."""
    if library.__name__ == "tf_keras":
        pytest.skip("Keras 2 has no nests of nests")
    x, y, z = (library.Input([3], name=name) for name in "xyz")
    total = library.layers.Concatenate()([z, library.layers.Subtract()([x, y])])
    model = library.Model({"b": [x, y], "a": {"z": z}}, {"out": [total]})
    fast = bd.optimize(model)
    given = {"b": [floats(2, 3), floats(2, 3)], "a": {"z": floats(2, 3)}}
    same(fast(given), model(given))
    same(fast({"a": given["a"], "b": given["b"]}), model(given))
    same(fast(tf.nest.map_structure(tf.constant, given)), model(given))
    same(fast.predict(given, verbose=0), model.predict(given, verbose=0))


def test_data_of_all_kinds(functional, pictures, same):
    """What predict and evaluate read: batches of tf.data, of a generator, and uint8."""
    functional.compile("sgd", "mse", metrics=["mae"])
    fast, labels = bd.optimize(functional), np.zeros((8, 4), np.float32)
    wanted = functional.predict(pictures, verbose=0)
    batches = tf.data.Dataset.from_tensor_slices(pictures).batch(3)
    same(fast.predict(batches, verbose=0), wanted)
    same(fast.predict(((pictures[i : i + 4],) for i in (0, 4)), verbose=0), wanted)
    same(fast.predict_on_batch(pictures), wanted)
    wanted = functional.evaluate(pictures, labels, verbose=0)
    same(
        fast.evaluate(
            tf.data.Dataset.zip(batches, batches.map(tf.zeros_like)).map(
                lambda x, y: (x, tf.zeros([tf.shape(x)[0], 4]))
            ),
            verbose=0,
        ),
        wanted,
    )
    same(fast.test_on_batch(pictures, labels), functional.test_on_batch(pictures, labels))
    integers = (np.abs(pictures) * 20).astype(np.uint8)
    same(fast.predict(integers, verbose=0), functional.predict(integers, verbose=0))


def test_wrong_shapes_are_refused_as_by_keras(functional, pictures):
    fast = bd.optimize(functional)
    for run in (functional, fast):
        with pytest.raises(ValueError, match="expected shape=.None, 16, 16, 3"):
            run(pictures[:, :8].astype("float64"))


@pytest.fixture
def upsampling(library):
    """Of unknown height and width; UpSampling2D of most Keras 3 wants sizes in Python."""
    x = library.Input([None, None, 8])
    y = library.layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    return library.Model(x, library.layers.UpSampling2D(interpolation="bilinear")(y))


@pytest.fixture
def wants_sizes(upsampling) -> bool:
    """Whether this Keras traces it with known ones alone."""
    try:
        tf.function(upsampling).get_concrete_function(tf.TensorSpec([1, None, None, 8]))
    except (TypeError, ValueError):
        return True
    return False


def test_sizes_that_only_calls_know(wants_sizes, upsampling, same, floats):
    """Each size is converted when it comes."""
    model, fast = upsampling, bd.optimize(upsampling)
    if wants_sizes:
        assert "first call of each height and width" in fast.report.notes[0]
        assert "\n" not in fast.report.notes[0]
        with pytest.raises(ValueError, match="called with 0 signatures"):
            fast.save("nowhere")
    for height in (4, 6, 7):
        values = floats(3, height, 5, 8)
        same(fast(values), model(values))
        same(fast(tf.constant(values[:1])), model(values[:1]))
        same(fast.predict(values, batch_size=2, verbose=0), model(values))
    assert all(one.report.count("BlockdnnConv") == 1 for one in fast.optimized.calls)
    assert tuple(fast.output_shape) == (None, None, None, 16)
    if wants_sizes:
        with pytest.raises(ValueError, match="^Keras cannot trace [^\n]* known height[^\n]*$"):
            tf.function(fast, autograph=False).get_concrete_function(tf.TensorSpec([1, None, 8, 8]))
        assert "first call of each height and width" in fast.report.notes[0]
    given = tf.function(fast).get_concrete_function(tf.TensorSpec([None, 6, 8, 8]))
    same(given(values := floats(2, 6, 8, 8)), model(values))


def test_an_unknown_number_of_steps(library, same, floats):
    """Keras 3's TimeDistributed goes over as many as there are samples, where it is traced so."""
    x = library.Input([None, 6, 6, 3])
    frames = library.Sequential([library.Input([6, 6, 3]), library.layers.Conv2D(16, 3)])
    model = library.Model(x, library.layers.TimeDistributed(frames)(x))
    fast = bd.optimize(model)
    for batch, steps in ((2, 3), (3, 2)):
        values = floats(batch, steps, 6, 6, 3)
        same(fast(values), model(values))
    assert fast.report.count("BlockdnnConv") >= 1


def test_the_sizes_of_an_example(wants_sizes, upsampling, same, floats, tmp_path):
    """They are converted at once, for any batch, and saved; others still come with calls."""
    fast = bd.optimize(upsampling, example=[floats(1, 6, 5, 8)])
    if wants_sizes:
        assert "for the sizes of example" in fast.report.notes[0]
    assert fast.report.count("BlockdnnConv") == 1
    for shape in ((3, 6, 5, 8), (2, 4, 7, 8)):
        same(fast(values := floats(*shape)), upsampling(values))
        same(fast.predict(values, batch_size=1, verbose=0), upsampling(values))
    fast.save(tmp_path / "saved")
    fast.export(tmp_path / "exported", verbose=False)
    values = floats(3, 6, 5, 8)
    (got,) = bd.load(tmp_path / "saved")(values).values()
    same(got, upsampling(values))
    loaded = tf.saved_model.load(tmp_path / "exported")
    same(loaded.serve(values), upsampling(values))


def test_an_example_that_does_not_fit(wants_sizes, upsampling, floats):
    if wants_sizes:
        with pytest.raises(
            ValueError, match="example must hold 1 tensors, one for each argument, not 2"
        ):
            bd.optimize(upsampling, example=[floats(1, 6, 5, 8)] * 2)
        with pytest.raises(ValueError, match=r"example: .* is \(None, None, None, 8\), not"):
            bd.optimize(upsampling, example=floats(1, 6, 5, 7))


@pytest.mark.parametrize("is_built_by", ["list", "dict"])
def test_keras_is_asked_once_a_form(library, is_built_by, floats, same):
    """Names, lists and arrays of each form go past Keras from the second call on."""
    a, b = (library.Input([8, 8, 3], name=name) for name in "ab")
    y = library.layers.Conv2D(4, 3)(library.layers.Subtract()([a, b]))
    model = library.Model([a, b] if is_built_by == "list" else {"a": a, "b": b}, y)
    fast, arrays = bd.optimize(model), {"a": floats(2, 8, 8, 3), "b": floats(2, 8, 8, 3)}
    x = {name: tf.constant(array) for name, array in arrays.items()}
    forms = [x, dict(reversed(x.items())), arrays]
    forms += [list(x.values())] if is_built_by == "list" else []
    optimized = fast.optimized
    for form in forms:
        wanted = model(form)
        same(fast(form), wanted)
        keras_call, optimized._keras_call = optimized._keras_call, None
        same(fast(form), wanted)
        optimized._keras_call = keras_call
    casts = {name: array.astype("float64") for name, array in arrays.items()}
    for _ in range(2):
        same(fast(casts), model(casts))


def test_a_variable_is_its_value_at_each_call(library, functional, pictures, same):
    fast, variable = bd.optimize(functional), tf.Variable(pictures)
    for factor in (1.0, 2.0, 3.0):
        variable.assign(factor * pictures)
        same(fast(variable), functional(factor * pictures))
