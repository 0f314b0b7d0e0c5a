"""What weights alone determine is computed once, and stored with the folded weights."""

import errno
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from graph_nodes import all_nodes

import tf_blockdnn as bd
from tf_blockdnn.python.ops.bundle import Bundle
from tf_blockdnn.python.rewriter import emit, weights_file
from tf_blockdnn.python.rewriter.weights_file import in_file


def _relative(x, table, indices):
    """Attention's bias by distance, on a product of ours."""
    bias = tf.transpose(tf.gather(table, indices), [1, 0])
    return tf.exp(tf.matmul(x, tf.ones([40, 24])) + bias)


def _ops_of(function, **options):
    return {node.op for node in all_nodes(bd.optimize(function, **options).concrete)}


@pytest.mark.parametrize("indices", [[3, 0, 3, 29, 1], [3, 30]])
def test_what_weights_alone_determine_is_computed_once(indices, weights, tmp_path):
    """An index that the table has not is an error of each call, as before."""
    table, indices = weights(30, 5), np.resize(indices, 24)
    function = tf.function(
        lambda x: _relative(x, table, indices), input_signature=[tf.TensorSpec([None, 40])]
    )
    x = tf.constant(np.random.default_rng(0).standard_normal((5, 40), np.float32))
    fast, ops = bd.optimize(function), _ops_of(function)
    assert "BlockdnnInnerProduct" in ops
    if 30 in indices:
        assert "ResourceGather" in ops
        with pytest.raises(tf.errors.InvalidArgumentError, match="30"):
            fast(x)
        return
    assert not ops & {"GatherV2", "ResourceGather", "Transpose"}
    wanted = function(x)
    np.testing.assert_allclose(fast(x), wanted, rtol=1e-5)
    fast.save(tmp_path / "fast")
    loaded = tf.saved_model.load(tmp_path / "fast").signatures["serving_default"]
    table.assign_add(tf.ones_like(table))
    np.testing.assert_array_equal(list(loaded(x).values())[0], fast(x))
    np.testing.assert_allclose(fast(x), wanted, rtol=1e-5)


@pytest.mark.parametrize("options", [{"weights": "live"}, {"options": bd.Options(memory="low")}])
def test_a_table_stays_where_it_may_change_or_memory_is_scarce(options, weights):
    function = tf.function(
        lambda x: _relative(x, weights(30, 5), np.arange(24)),
        input_signature=[tf.TensorSpec([5, 40])],
    )
    x = tf.constant(np.random.default_rng(0).standard_normal((5, 40), np.float32))
    assert "ResourceGather" in _ops_of(function, **options)
    np.testing.assert_allclose(bd.optimize(function, **options)(x), function(x), rtol=1e-5)


def test_a_large_tensor_of_weights_alone_is_not_stored(weights, monkeypatch):
    function = tf.function(
        lambda x: _relative(x, weights(30, 5), np.arange(24)),
        input_signature=[tf.TensorSpec([5, 40])],
    )
    monkeypatch.setattr(emit, "_MOST_FOLDED_BYTES", 4 * 24 * 5 - 1)
    assert "ResourceGather" in _ops_of(function)
    monkeypatch.setattr(emit, "_MOST_FOLDED_BYTES", 4 * 24 * 5)
    assert "ResourceGather" not in _ops_of(function)


@pytest.mark.parametrize("options", [{}, {"weights": "live"}])
def test_a_product_of_weights_alone_is_none_of_each_call(options, weights):
    """DeBERTa multiplies its table of relative positions by the projections of each layer."""
    table, kernel = weights(24, 40), weights(40, 24)
    function = tf.function(
        lambda x: tf.exp(x @ kernel) + tf.math.bessel_i0e(table @ kernel),
        input_signature=[tf.TensorSpec([24, 40])],
    )
    fast = bd.optimize(function, **options)
    assert fast.report.counts() == {"BlockdnnInnerProduct": 1}
    x = tf.constant(np.random.default_rng(0).standard_normal((24, 40), np.float32))
    np.testing.assert_allclose(fast(x), function(x), rtol=1e-5)


def test_small_parts_of_a_large_bundle_lie_together():
    """A bias between two packed filters keeps pages of both resident."""
    bundle = Bundle()
    parts = [np.full(size, i, np.float32) for i, size in enumerate([1 << 17, 10] * 20)]
    offsets = [bundle.add_array(part) for part in parts]
    vector = np.zeros(bundle.length, np.float32)
    for offset, values in bundle.parts:
        vector[offset:][: values().size] = values()
    for part, offset in zip(parts, offsets, strict=True):
        np.testing.assert_array_equal(vector[offset : offset + part.size], part)
    assert np.ptp(offsets[1::2]) == 19 * 16


@pytest.mark.parametrize("has_room", [True, False])
def test_weights_lie_in_a_file_where_there_is_room(monkeypatch, has_room):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "no space left on device")

    if not has_room:
        monkeypatch.setattr(weights_file, "_write", refuse)
    values = np.arange(1 << 19, dtype=np.float32)
    tensor = in_file(values.size + 8, [(16, lambda: values[8:]), (2, lambda: np.int8([3, 4]))])
    middle = np.append(np.zeros(2), np.int8([3, 4, 0, 0]).view(np.float32))
    np.testing.assert_array_equal(tensor[:16], np.append(middle, np.zeros(13)))
    np.testing.assert_array_equal(tensor[16:], values[8:])
    address = np.asarray(tensor).ctypes.data
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    bounds = ([int(end, 16) for end in line.split()[0].split("-")] for line in lines)
    (line,) = (
        line for line, (first, end) in zip(lines, bounds, strict=True) if first <= address < end
    )
    assert ("(deleted)" in line) == has_room


def test_a_vector_in_a_file_is_not_copied():
    """Large weights are not in memory a second time while they are written."""
    values, grown = np.zeros(1 << 24, np.float32), []

    def after():
        grown.append(_anonymous() - before)
        return values[:4]

    before = _anonymous()
    in_file(values.size + 16, [(0, lambda: values), (values.size, after)])
    assert grown[0] < values.nbytes // 2


def _anonymous() -> int:
    """Bytes of memory of this process that lie in no file."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])
