"""`import tf_blockdnn` loads the ops; all else loads when asked for, and serving asks little."""

import inspect

import fresh
import pytest
from saved_models import save_tiny

import tf_blockdnn as bd

LOADED = """
import sys
def loaded(*parts):
    return [m for m in sys.modules if m.startswith(tuple(f"tf_blockdnn.python.{p}" for p in parts))]
"""


@pytest.fixture(scope="module")
def optimized(tmp_path_factory):
    """An optimised SavedModel."""
    place = tmp_path_factory.mktemp("optimized")
    bd.optimize_saved_model(save_tiny(place / "model"), place / "fast")
    return place / "fast"


def test_the_import_loads_the_ops_alone():
    fresh.run(
        LOADED + "before = set(sys.modules)\n"
        "import tf_blockdnn as bd\n"
        "new = [m for m in sys.modules if m not in before and m.startswith('tf_blockdnn')]\n"
        "assert len(new) < 10, new\n"
        "bd.ops.softmax([[1.0, 2.0]])\n"
        "assert not loaded('targets', 'layers', 'rewriter', 'showing'), loaded('')\n"
    )


def test_names_and_options_are_few():
    names = {*bd.__all__, *bd.ops.__all__, *bd.rewriter.__all__}
    assert len(names) <= 45, len(names)
    target, *options = inspect.signature(bd.optimize).parameters.values()
    assert len(options) <= 10 and all(one.kind is one.KEYWORD_ONLY for one in options)


def test_names_load_when_they_are_asked_for():
    fresh.run(
        "import tf_blockdnn as bd\n"
        "assert set(bd.__all__) <= set(dir(bd)), dir(bd)\n"
        "from tf_blockdnn import layers, optimize\n"
        "assert bd.layers is layers and bd.optimize is optimize\n"
        "assert bd.TensorDesc is bd.TensorDesc and bd.ops.__name__ == 'tf_blockdnn.ops'\n"
        "try:\n    bd.nothing\n"
        "except AttributeError as error:\n    assert 'nothing' in str(error)\n"
        "else:\n    raise AssertionError\n"
    )


def test_serving_loads_no_layers_and_nothing_that_shows(optimized):
    fresh.run(
        LOADED + "import tensorflow as tf, tf_blockdnn as bd\n"
        "signature = tf.saved_model.load(sys.argv[1]).signatures['serving_default']\n"
        "assert not loaded('targets', 'gradients.', 'layers', 'ops', 'rewriter', 'showing')\n"
        "bd.load(sys.argv[1])\n"
        "assert not loaded('cli', 'comparison', 'layers', 'showing'), loaded('')\n",
        optimized,
    )


def test_an_optimised_model_has_gradients_after_the_import_alone(optimized):
    fresh.run(
        "import sys, tensorflow as tf, tf_blockdnn\n"
        "loaded = tf.saved_model.load(sys.argv[1])\n"
        "signature = loaded.signatures['serving_default']\n"
        "(name, spec), = signature.structured_input_signature[1].items()\n"
        "x = tf.random.normal([1, 8, 8, 3])\n"
        "with tf.GradientTape() as tape:\n"
        "    tape.watch(x)\n"
        "    y, *_ = signature(**{name: x}).values()\n"
        "assert tf.reduce_max(tf.abs(tape.gradient(y, x))) > 0\n",
        optimized,
    )
