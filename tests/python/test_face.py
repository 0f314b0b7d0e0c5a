"""`import tf_blockdnn` loads the ops; all else loads when asked for, and serving asks little."""

import inspect
import re

import fresh
import keras
import pytest
from saved_models import save_tiny

import tf_blockdnn as bd
from tf_blockdnn.python.targets.optimizing import Choices

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
    assert [one.name for one in options] == list(Choices.__annotations__)


TYPED = """
import keras, tf_blockdnn as bd
@bd.optimize
def plain(x: int) -> int: return x
@bd.optimize(precision="bf16")
def chosen(x: int) -> int: return x
reveal_type(plain)  # OptimizedFunction
reveal_type(chosen)  # OptimizedFunction
reveal_type(bd.optimize(len, verify=True).report)  # Report
class Model:
    def compile(self, loss: str) -> None: ...
    def predict(self, x: int) -> int: return x
    def __call__(self, x: int) -> int: return x
reveal_type(bd.optimize(Model(), weights="live"))  # OptimizedKerasModel
reveal_type(bd.optimize("model").save)  # def (folder:
reveal_type(bd.load("model"))  # OptimizedModel | OptimizedKerasModel
bd.optimize(plain, precision="bf17")  # No overload variant
bd.optimize(plain, weight="live")  # Unexpected keyword
"""


def test_type_checkers_know_results_by_their_targets(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "typed.py").write_text(TYPED)
    flags = "--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={tmp_path}"
    said, _, _ = api.run([*flags, str(tmp_path / "typed.py")])
    for number, line in enumerate(TYPED.splitlines(), 1):
        if "# " in line:
            about = "".join(re.findall(rf"typed.py:{number}: .*", said))
            short = re.sub(r"[\w.]+\.(?=\w)", "", about)
            assert line.partition("# ")[2] in short, said


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


def test_a_loaded_result_is_called_without_the_rewriter(tmp_path):
    """Which comes when somebody wants more than calls, with the same numbers."""
    layers = [keras.layers.Conv2D(8, 3, activation="relu"), keras.layers.Flatten()]
    bd.optimize(keras.Sequential([keras.Input((8, 8, 3), name="image"), *layers])).save(
        tmp_path / "fast"
    )
    fresh.run(
        LOADED + "import numpy as np, tensorflow as tf, tf_blockdnn as bd\n"
        "fast = bd.load(sys.argv[1])\n"
        "x = np.ones((2, 8, 8, 3), 'f')\n"
        "results = [fast(x), fast(image=x), fast(tf.constant(x)), fast(x.tolist())]\n"
        "others = loaded('graph', 'layers', 'lite', 'ops', 'rewriter.r', 'targets.keras')\n"
        "assert not others, others\n"
        "results.append(tf.function(lambda x: fast(x))(tf.constant(x)))\n"
        "with tf.GradientTape() as tape:\n"
        "    tape.watch(x := tf.constant(x))\n"
        "    results.append(fast(x))\n"
        "(first, *others) = [next(iter(result.values())) for result in results]\n"
        "assert all(np.array_equal(first, other) for other in others)\n"
        "assert np.any(tape.gradient(others[-1], x))\n"
        "assert [op for _, op in fast.report.blocked] == ['BlockdnnConv'], fast.report\n",
        tmp_path / "fast",
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
