"""Keras's grouped convolutions, which it has XLA compile: converted, or as they were."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter import Options, optimize_concrete

KERAS = pytest.mark.parametrize("k", [keras, tf_keras], ids=lambda k: k.__name__)


def _network(k, layer, shape):
    image = k.Input(shape)
    x = k.layers.ReLU()(k.layers.BatchNormalization()(layer(image)))
    return k.Model(image, x)


def _compiled(fast) -> list[str]:
    """The functions of the rewritten graph that XLA compiles."""
    graph = fast.get_concrete_function().graph if hasattr(fast, "get_concrete_function") else fast
    return [
        f.signature.name
        for f in graph.as_graph_def().library.function
        if f.attr["_XlaMustCompile"].b
    ]


def _rewritten(model, **options):
    traced = tf.function(lambda x: model(x), autograph=False)
    concrete = traced.get_concrete_function(tf.TensorSpec([None, *model.input_shape[1:]]))
    return optimize_concrete(concrete, options=Options(**options))


@KERAS
@pytest.mark.parametrize("rank", [1, 2])
def test_converted(rank, k, floats):
    layer = getattr(k.layers, f"Conv{rank}D")(32, 3, groups=4, padding="same", name="grouped")
    model = _network(k, layer, (*[9] * rank, 16))
    result = _rewritten(model)
    assert [item.op for item in result.report.converted].count("BlockdnnConv") == 1
    assert not _compiled(result.concrete.graph)
    x = floats(2, *model.input_shape[1:])
    np.testing.assert_allclose(result.concrete(tf.constant(x)), model(x), atol=1e-4)


@KERAS
@pytest.mark.parametrize("rank", [2, 3])
def test_left_as_it_was(rank, k, floats, tmp_path):
    """Without XLA other kernels than oneDNN's take no groups: none in 3-D, none that is fused."""
    layer = getattr(k.layers, f"Conv{rank}D")(32, 3, groups=4, padding="same", name="grouped")
    model = _network(k, layer, (*[5] * rank, 16))
    result = _rewritten(model, exclude=[r".*grouped.*"])
    assert not [item for item in result.report.converted if item.op == "BlockdnnConv"]
    assert len(_compiled(result.concrete.graph)) == 1
    x = floats(2, *model.input_shape[1:])
    np.testing.assert_allclose(result.concrete(tf.constant(x)), model(x), atol=1e-4)
    fast = bd.optimize(model, exclude=[r".*grouped.*"])
    np.testing.assert_allclose(fast(x), model(x), atol=1e-4)
    fast.save(str(tmp_path / "fast")) if k is tf_keras else fast.export(str(tmp_path / "fast"))
    loaded = tf.saved_model.load(str(tmp_path / "fast"))
    (y,) = loaded.signatures["serving_default"](tf.constant(x)).values()
    np.testing.assert_allclose(y, model(x), atol=1e-4)
