"""SavedModels in and out: what must be kept, what must load, what must be refused."""

import json
import os
import shutil

import fresh
import numpy as np
import pytest
import tensorflow as tf
from saved_models import draw_image, save_tiny
from tensorflow.core.protobuf import saved_model_pb2

from tf_blockdnn.python import folders, metagraph
from tf_blockdnn.python.errors import SavedModelError
from tf_blockdnn.python.saved_model import optimize_saved_model, rewrite_saved_model
from tf_blockdnn.python.targets import Settings

WORDS = ["bee", "cow"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def optimised(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("optimised") / "model"
    report = optimize_saved_model(tiny, folder)
    return folder, report


def feed(name):
    words = {"words": tf.constant(WORDS)} if name == "read" else {}
    return {"image": tf.constant(draw_image()), **words}


def run(folder, name="serving_default"):
    loaded = metagraph.load(folder)
    return {key: value.numpy() for key, value in loaded.signatures[name](**feed(name)).items()}


def assert_same(want, got):
    assert want.keys() == got.keys()
    for key in want:
        assert want[key].dtype == got[key].dtype
        np.testing.assert_allclose(got[key], want[key], atol=1e-5, rtol=1e-5)


def edit(folder, change):
    """Applies `change` to the MetaGraph of the SavedModel in `folder`."""
    path = folder / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    change(saved.meta_graphs[0])
    path.write_bytes(saved.SerializeToString())


def copy(folder, place):
    return shutil.copytree(folder, place / "copy")


@pytest.mark.parametrize("name", ["serving_default", "serve", "read"])
def test_signatures_and_numbers_are_unchanged(tiny, optimised, name):
    def specs(folder):
        definition = metagraph.meta_graph(metagraph.read(folder)).signature_def[name]
        sides = (definition.inputs, definition.outputs)
        return [
            {key: (info.dtype, str(info.tensor_shape)) for key, info in side.items()}
            for side in sides
        ]

    assert specs(optimised[0]) == specs(tiny)
    assert_same(run(tiny, name), run(optimised[0], name))


def test_every_signature_is_converted(optimised):
    _, report = optimised
    assert sorted(report.signatures) == ["read", "serve", "serving_default"]
    for one in report.signatures.values():
        assert one.count("BlockdnnConv") == 2
    assert json.loads(report.to_json())["kept"] == []
    assert "signature read" in report.summary()


def test_one_graph_under_two_names_is_written_once(optimised):
    _, report = optimised
    assert report.signatures["serve"] is report.signatures["serving_default"]
    assert report.signatures["read"] is not report.signatures["serve"]
    assert len(report.converted) == sum(
        len(report.signatures[name].converted) for name in ("serve", "read")
    )


def test_tables_and_assets_travel_along(tiny, tmp_path):
    source = copy(tiny, tmp_path)
    optimize_saved_model(source, tmp_path / "out")
    shutil.rmtree(source)
    assert [path.name for path in (tmp_path / "out" / "assets").iterdir()] == ["words.txt"]
    np.testing.assert_array_equal(run(tmp_path / "out", "read")["ids"], [1, -1])


@pytest.mark.parametrize("isa", [None, "avx2", "generic"])
def test_loads_in_a_fresh_process(tiny, optimised, tmp_path, isa):
    np.save(tmp_path / "image.npy", draw_image())
    script = (
        "import sys, numpy as np, tensorflow as tf, tf_blockdnn\n"
        "folder, image, out = sys.argv[1:]\n"
        "loaded = tf.saved_model.load(folder)\n"
        "see = loaded.signatures['serving_default']\n"
        "np.save(out, see(image=tf.constant(np.load(image)))['features'].numpy())\n"
    )
    environ = os.environ | ({"TF_BLOCKDNN_MAX_ISA": isa} if isa else {})
    places = tmp_path / "image.npy", tmp_path / "features.npy"
    fresh.run(script, optimised[0], *places, environ=environ)
    assert_same(run(tiny), {"features": np.load(tmp_path / "features.npy")})


def test_one_that_tensorflow_saved_again(tiny, optimised, tmp_path):
    """Its signatures call functions that call functions of ours: all of them come along."""
    again, twice = tmp_path / "again", tmp_path / "twice"
    loaded = tf.saved_model.load(optimised[0])
    tf.saved_model.save(loaded, again, signatures=dict(loaded.signatures))
    optimize_saved_model(again, twice)
    np.save(tmp_path / "image.npy", draw_image())
    script = (
        "import sys, numpy as np, tensorflow as tf, tf_blockdnn as bd\n"
        "image, *folders, out = sys.argv[1:]\n"
        "loads = [bd.load, bd.load, tf.saved_model.load]\n"
        "sees = [load(f).signatures['serving_default'] for load, f in zip(loads, folders)]\n"
        "features = [see(image=tf.constant(np.load(image)))['features'] for see in sees]\n"
        "np.save(out, features)\n"
    )
    out = tmp_path / "features.npy"
    fresh.run(script, tmp_path / "image.npy", again, twice, twice, out)
    for features in np.load(out):
        assert_same(run(tiny), {"features": features})


def test_only_the_asked_signatures(tiny, tmp_path):
    report = optimize_saved_model(tiny, tmp_path / "out", signatures=["read"])
    assert list(report.signatures) == ["read"]
    assert sorted(report.kept) == ["serve", "serving_default"]
    for name in ("serving_default", "serve", "read"):
        assert_same(run(tiny, name), run(tmp_path / "out", name))


def test_inspect_reports_and_writes_nothing(tiny, tmp_path):
    source = copy(tiny, tmp_path)
    report = rewrite_saved_model(source, Settings())[2]
    assert len(report.signatures["serve"].converted) >= 2
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def break_objects(folder):
    """As left by an optimizer of an older Keras: a slot variable on an object without add_slot."""

    def add_slot(meta):
        nodes = meta.object_graph_def.nodes
        variables = [i for i, node in enumerate(nodes) if node.WhichOneof("kind") == "variable"]
        nodes[0].children.add(node_id=len(nodes), local_name="optimizer")
        optimizer = nodes.add()
        optimizer.user_object.identifier = "optimizer"
        optimizer.user_object.version.producer = 1
        optimizer.slot_variables.add(
            original_variable_node_id=variables[0],
            slot_name="m",
            slot_variable_node_id=variables[1],
        )

    edit(folder, add_slot)
    with pytest.raises(Exception, match="add_slot|incompatible tensor"):
        tf.saved_model.load(str(folder))
    return folder


def test_python_objects_that_cannot_be_restored(tiny, tmp_path):
    source = break_objects(copy(tiny, tmp_path))
    report = optimize_saved_model(source, tmp_path / "out")
    assert report.signatures["serve"].count("BlockdnnConv") == 2
    shutil.rmtree(source)
    for name in ("serving_default", "read"):
        assert_same(run(tiny, name), run(tmp_path / "out", name))


@pytest.mark.parametrize("prepare", [lambda folder: folder, break_objects])
def test_unused_variables_are_left_behind(tmp_path, prepare):
    module = tf.Module()
    module.used = tf.Variable(tf.ones([3, 3, 3, 16]))
    module.unused = tf.Variable(tf.ones([100_000]))
    module.see = tf.function(
        lambda image: {"y": tf.nn.conv2d(image, module.used, 1, "SAME")},
        input_signature=[tf.TensorSpec([None, 8, 8, 3], tf.float32, name="image")],
    )
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.see)
    optimize_saved_model(prepare(tmp_path / "model"), tmp_path / "out")
    checkpoint = str(tmp_path / "out" / "variables" / "variables")
    stored = [(name, shape) for name, shape in tf.train.list_variables(checkpoint) if shape]
    assert [shape for _, shape in stored] == [[3 * 3 * 3 * 16]]


class TestRefusals:
    """Each is one line that names what is wrong, and nothing is written."""

    def refuse(self, source, destination, match, **options):
        before = sorted(path for path in destination.parent.rglob("*"))
        with pytest.raises(SavedModelError, match=match) as caught:
            optimize_saved_model(source, destination, **options)
        assert "\n" not in str(caught.value)
        assert sorted(path for path in destination.parent.rglob("*")) == before

    def test_missing_variables(self, tiny, tmp_path):
        source = copy(tiny, tmp_path)
        shutil.rmtree(source / "variables")
        self.refuse(source, tmp_path / "out", "cannot be loaded")

    def test_no_signature(self, tmp_path):
        module = tf.Module()
        module.weight = tf.Variable(1.0)
        tf.saved_model.save(module, str(tmp_path / "bare"))
        self.refuse(tmp_path / "bare", tmp_path / "out", "no signature")

    def test_a_name_in_the_place_of_a_list(self, tiny, tmp_path):
        words = r"^signatures must be a list of names, such as \['read'\], not 'read'$"
        self.refuse(tiny, tmp_path / "out", words, signatures="read")

    def test_unknown_op(self, tiny, tmp_path):
        source = copy(tiny, tmp_path)

        def rename(meta):
            nodes = [n for f in meta.graph_def.library.function for n in f.node_def]
            next(node for node in nodes if node.op == "Relu").op = "FancyRelu"

        edit(source, rename)
        self.refuse(source, tmp_path / "out", "does not know the op FancyRelu")

    def test_output_is_a_file(self, tiny, tmp_path):
        (tmp_path / "out").write_text("x")
        self.refuse(tiny, tmp_path / "out", "not a folder", force=True)

    @pytest.mark.parametrize("destination", ["copy", "copy/inside", "."])
    def test_output_overlaps_with_input(self, tiny, tmp_path, destination):
        source = copy(tiny, tmp_path)
        self.refuse(source, tmp_path / destination, "overlaps", force=True)


class TestReplacing:
    def test_force_replaces_the_model_and_keeps_other_files(self, tiny, tmp_path):
        out = tmp_path / "out"
        out.mkdir()
        (out / "letter.txt").write_text("dear")
        (out / "saved_model.pb").write_text("old")
        optimize_saved_model(tiny, out, force=True)
        assert (out / "letter.txt").read_text() == "dear"
        assert_same(run(tiny), run(out))
        assert [path.name for path in tmp_path.iterdir()] == ["out"]

    def test_failure_leaves_everything_as_it_was(self, tiny, tmp_path, monkeypatch):
        out = tmp_path / "out"
        out.mkdir()
        (out / "saved_model.pb").write_text("old")

        def fail(module, folder, **_):
            (folders.pathlib.Path(folder) / "half").write_text("written")
            raise RuntimeError("disk on fire")

        monkeypatch.setattr(tf.saved_model, "save", fail)
        with pytest.raises(RuntimeError, match="disk on fire"):
            optimize_saved_model(tiny, out, force=True)
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        assert [path.name for path in out.iterdir()] == ["saved_model.pb"]

    def test_makes_parents_and_an_ordinary_folder(self, tmp_path):
        with folders.replacing(tmp_path / "a" / "b") as fresh:
            (fresh / "x").write_text("1")
        assert (tmp_path / "a" / "b" / "x").read_text() == "1"
        plain = tmp_path / "plain"
        plain.mkdir()
        assert (tmp_path / "a" / "b").stat().st_mode == plain.stat().st_mode


def test_regions_of_several_results_are_saved_with_their_shapes(tmp_path):
    """TensorFlow renames a node that is called as a result is, but not where it notes shapes."""
    network, draw = tf.Module(), np.random.default_rng(0).standard_normal
    network.weights = [tf.Variable(draw((16, 24)), dtype=tf.float32) for _ in range(4)]

    @tf.function(input_signature=[tf.TensorSpec([None, 16])], autograph=False)
    def function(x):
        products = [tf.matmul(x, weights) for weights in network.weights]
        results = [*tf.math.top_k(products[0], 3), tf.sort(products[1])]
        results += [tf.nn.in_top_k(tf.constant([1, 2, 3]), products[2][:3], 5)]
        results += [tf.argsort(products[3])]
        return {str(place): result for place, result in enumerate(results)}

    tf.saved_model.save(network, tmp_path / "plain", signatures=function)
    report = optimize_saved_model(tmp_path / "plain", tmp_path / "fast")
    assert report.signatures["serving_default"].count("BlockdnnInnerProduct") == 4
    x = tf.constant(draw((5, 16)), tf.float32)
    got = tf.saved_model.load(tmp_path / "fast").signatures["serving_default"](x)
    assert_same(*({key: y.numpy() for key, y in results.items()} for results in (function(x), got)))
