"""Calibration data in all its forms, and what is said of data that do not fit."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter.precision.calibration import Calibration, split


def concrete(*specs, **named):
    def function(*args, **kwargs):
        return [tf.identity(x) for x in (*args, *kwargs.values())]

    specs = [tf.TensorSpec(shape) for shape in specs]
    named = {name: tf.TensorSpec(shape, name=name) for name, shape in named.items()}
    return tf.function(function, autograph=False).get_concrete_function(*specs, **named)


def shapes(data, function):
    return [[tuple(t.shape) for t in batch] for batch in Calibration(data).batches(function)]


def test_an_array_of_samples_is_cut():
    assert shapes(np.zeros((70, 3)), concrete([None, 3])) == [[(17, 3)]] * 4 + [[(2, 3)]]
    assert shapes(np.zeros((5, 3)), concrete([2, 3])) == [[(2, 3)], [(2, 3)]]
    assert shapes(tf.zeros((1, 3)), concrete([None, 3])) == [[(1, 3)]]


@pytest.mark.parametrize("once", [False, True])
def test_batches(once):
    batches = [np.zeros((4, 3)), np.zeros((0, 3)), np.zeros((2, 3))]
    data = iter(batches) if once else batches
    calibration, function = Calibration(data), concrete([None, 3])
    for _ in range(2):  # a generator too is read again
        assert [b[0].shape[0] for b in calibration.batches(function)] == [4, 2]
    dataset = tf.data.Dataset.from_tensor_slices(np.zeros((5, 3))).batch(2)
    assert shapes(dataset, function) == [[(2, 3)], [(2, 3)], [(1, 3)]]


def test_several_arguments():
    data = {"b": np.zeros((4, 2)), "a": np.zeros((4, 3))}
    assert shapes(data, concrete(a=[None, 3], b=[None, 2])) == [[(1, 3), (1, 2)]] * 4
    pairs = [(np.zeros((1, 3)), np.zeros((1, 2)))]
    assert shapes(pairs, concrete([None, 3], [None, 2])) == [[(1, 3), (1, 2)]]


def test_integers_become_what_the_function_takes():
    (batch,) = Calibration(np.zeros((1, 3), np.uint8)).batches(concrete([None, 3]))
    assert batch[0].dtype == tf.float32


def test_values_far_beyond_those_of_most_samples_are_zero():
    """Of each argument by itself, whatever the batch; samples of zeros tell nothing."""
    a, b = np.full((9, 3), 0.5, np.float32), np.full((9, 2), -3e4, np.float32)
    a[::2], a[2, 1], a[5] = 0, 257, (1, -256, 256)
    function = concrete(a=[None, 3], b=[None, 2])
    calibration = Calibration([{"a": a[:4], "b": b[:4]}, {"a": a[4:], "b": b[4:]}])
    got = [np.concatenate(parts) for parts in zip(*calibration.batches(function), strict=True)]
    assert calibration.limits == {"a": 256}
    a[2, 1] = 0
    np.testing.assert_array_equal(got[0], a)
    np.testing.assert_array_equal(got[1], b)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.zeros((4, 5)), r"batch 0, .* is \(1, 5\); the function takes \(None, 3\)"),
        ([np.zeros(3)] * 4, r"batch 0, .* is \(3,\); .* \(None, 3\): give batches, such as"),
        (np.full((4, 3), np.nan), "batch 0, .* holds NaN"),
        (np.zeros((0, 3)), "holds no samples"),
        ([], "holds no samples"),
        ([np.zeros((0, 3))], "holds no samples"),
        (np.float32(1), "samples along its first dimension"),
        (7, "not int"),
        ("images", "no such file or folder"),
        ([(np.zeros((2, 3)), np.zeros(2))], "without labels"),
        ({"y": np.zeros((2, 3))}, r"has \['y'\]; the function takes"),
        ([["text"]], "no tensor of float32"),
    ],
)
def test_what_does_not_fit_is_named(data, words):
    with pytest.raises(ValueError, match=words):
        list(Calibration(data).batches(concrete([None, 3])))


def test_too_few_for_a_batch_and_unequal_numbers():
    with pytest.raises(ValueError, match="1 samples; a batch of the function has 2"):
        shapes(np.zeros((1, 3)), concrete([2, 3]))
    with pytest.raises(ValueError, match="other numbers of samples"):
        shapes({"a": np.zeros((1, 3)), "b": np.zeros((2, 2))}, concrete(a=[None, 3], b=[None, 2]))


def test_none_says_how_to_get_it():
    with pytest.raises(ValueError, match='precision="int8", or max_loss, needs calibration'):
        Calibration(None)


def test_batches_are_counted_as_they_are_done():
    def counted(data):
        counts = []
        calibration = Calibration(data, lambda *count: counts.append(count))
        for _ in calibration.batches(concrete([None, 3])):
            counts.append("batch")
        return counts

    batches = [np.zeros((1, 3)), np.zeros((0, 3))]  # an empty one counts, and is not run
    wanted = [(0, 2), "batch", (1, 2), (2, 2)]
    assert counted(batches) == counted(iter(batches)) == wanted
    dataset = tf.data.Dataset.from_tensor_slices(np.zeros((2, 3))).batch(1)
    assert counted(dataset) == [(0, 2), "batch", (1, 2), "batch", (2, 2)]
    unknown = dataset.filter(lambda x: True)
    assert counted(unknown)[-1] == (2, None)
    assert counted(np.zeros((4, 3)))[-1] == (4, 4)


def test_some_are_held_back():
    assert [held for _, held in split([[i] for i in range(6)])] == [
        *(False, True, False, False, False, True)
    ]
    assert list(split([[1]])) == [([1], False), ([1], True)]
    assert sum(held for _, held in split([[i] for i in range(1000)])) == 16
    assert list(split([])) == []


def test_files(tmp_path):
    samples = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.savez(tmp_path / "one.npz", samples)
    np.savez(tmp_path / "two.npz", a=samples, b=samples)
    np.save(tmp_path / "array.npy", samples)
    (tmp_path / "folder").mkdir()
    for i in (1, 0):
        np.save(tmp_path / "folder" / f"{i}.npy", samples[i])

    def read(name, function):
        batches = list(Calibration(tmp_path / name).batches(function))
        return [np.concatenate(argument).tolist() for argument in zip(*batches, strict=True)]

    one = concrete([None, 3])
    assert read("one.npz", one) == read("array.npy", one) == [samples.tolist()]
    assert read("folder", one) == [samples[:2].tolist()]
    two = concrete(a=[None, 3], b=[None, 3])
    assert read("two.npz", two) == [samples.tolist(), samples.tolist()]


def test_files_that_are_none(tmp_path):
    (tmp_path / "text.npz").write_text("no arrays")
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "none.npz")
    for name, words in {
        "text.npz": "text.npz holds no arrays",
        "empty": "holds no .npy files",
        "none.npz": "holds no arrays",
        "missing": "no such file",
    }.items():
        with pytest.raises(ValueError, match=words):
            Calibration(tmp_path / name)
