"""Weights in files: assets of SavedModels, mapped by all that load these, and shared."""

import gc
import os
import pathlib
import shutil

import fresh
import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python import metagraph
from tf_blockdnn.python.errors import SavedModelError


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).standard_normal((1, 8, 8, 256)).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    conv = keras.layers.Conv2D(256, 3, activation="relu")  # folded, packed: 2.25 MiB
    dense = keras.layers.Dense(64)  # read as it is: 2.25 MiB
    return keras.Sequential([keras.Input((8, 8, 256)), conv, keras.layers.Flatten(), dense])


@pytest.fixture
def saved(model, tmp_path):
    bd.optimize(model).save(tmp_path / "fast")
    return tmp_path / "fast"


def _assets(folder) -> list[pathlib.Path]:
    return [path for path in (folder / "assets").iterdir() if path.is_file()]


def _call(loaded, x):
    function = loaded.signatures["serving_default"]
    (name,) = function.structured_input_signature[1]
    (result,) = function(**{name: tf.constant(x)}).values()
    return result


def _mappings() -> int:
    gc.collect()
    return pathlib.Path("/proc/self/maps").read_text().count("blockdnn_weights")


def test_large_weights_are_one_asset_and_no_variable(model, saved, x):
    (asset,) = _assets(saved)
    weights = 4 * sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    assert weights <= asset.stat().st_size + 256 <= weights + 1024
    data = saved / "variables" / "variables.data-00000-of-00001"
    assert data.stat().st_size < 2048
    np.testing.assert_allclose(_call(tf.saved_model.load(saved), x), model(x), atol=1e-4)


def test_results_that_are_saved_again_hold_them_once(model, saved, x, tmp_path):
    again = bd.load(saved)
    again.save(tmp_path / "again")
    (first,), (second,) = _assets(saved), _assets(tmp_path / "again")
    assert second.stat().st_size == first.stat().st_size
    assert sorted(second.read_bytes()) == sorted(first.read_bytes())
    shutil.rmtree(saved)
    wanted = model(x)
    np.testing.assert_allclose(next(iter(again(x).values())), wanted, atol=1e-4)
    np.testing.assert_allclose(_call(tf.saved_model.load(tmp_path / "again"), x), wanted, atol=1e-4)


def test_saving_what_was_loaded_adds_no_functions(saved, tmp_path):
    """Of all that TensorFlow has called in between."""
    folders = [saved, tmp_path / "second", tmp_path / "third"]
    for folder, copy in zip(folders, folders[1:], strict=False):
        bd.load(folder).save(copy)
    graphs = [metagraph.read(folder).meta_graphs[0].graph_def for folder in folders]
    assert len({len(graph.library.function) for graph in graphs}) == 1


def test_sessions_load_them(model, saved, x, tmp_path):
    bd.load(saved).save(tmp_path / "again")
    for folder in (saved, tmp_path / "again"):
        with tf.compat.v1.Session(graph=tf.Graph()) as session:
            meta = tf.compat.v1.saved_model.load(session, ["serve"], str(folder))
            signature = meta.signature_def["serving_default"]
            (image,), (result,) = signature.inputs.values(), signature.outputs.values()
            got = [session.run(result.name, {image.name: x}) for _ in range(2)]
        np.testing.assert_allclose(got[1], model(x), atol=1e-4)


def test_saving_in_their_place_leaves_them_to_who_has_them(model, saved, x):
    wanted, other = model(x), keras.models.clone_model(model)
    theirs, ours = tf.saved_model.load(saved), bd.load(saved)  # neither of which reads them yet
    bd.optimize(other).save(saved)
    np.testing.assert_allclose(_call(theirs, x), wanted, atol=1e-4)
    np.testing.assert_allclose(next(iter(ours(x).values())), wanted, atol=1e-4)
    again = bd.load(saved)
    again.save(saved)
    for new in (again, bd.load(saved)):
        np.testing.assert_allclose(next(iter(new(x).values())), other(x), atol=1e-4)


def test_each_load_has_its_own_and_the_file_is_mapped_once(model, saved, x):
    before = _mappings()
    first, second, third = (load(saved) for load in [tf.saved_model.load] * 2 + [bd.load])
    assert _mappings() == before + 1
    del first
    wanted = model(x)
    np.testing.assert_allclose(_call(second, x), wanted, atol=1e-4)
    np.testing.assert_allclose(next(iter(third(x).values())), wanted, atol=1e-4)
    del second, third
    assert _mappings() == before


@pytest.mark.parametrize("bytes", [0, 100, 2_400_000])
def test_a_file_that_lacks_a_part_is_an_error(saved, bytes):
    (asset,) = _assets(saved)
    os.truncate(asset, bytes)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit; is it complete"):
        tf.saved_model.load(saved)


def test_without_its_file_it_is_an_error(saved):
    shutil.rmtree(saved / "assets")
    with pytest.raises(FileNotFoundError, match="cannot open the weights in .*assets"):
        tf.saved_model.load(saved)
    with pytest.raises(SavedModelError, match="cannot open the weights in .*assets"):
        bd.load(saved)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"offset": 32}, "multiples of 64 bytes"),
        ({"offset": 4096}, "does not fit"),
        ({"offset": 2**62 - 2**62 % 64}, "does not fit"),
        ({"shape": [2**40, 2**20]}, "does not fit"),
        ({"shape": [257]}, "does not fit"),
        ({"dtype": tf.string}, "no tensor of string"),
    ],
)
def test_what_no_file_holds_is_an_error(tmp_path, arguments, message):
    (tmp_path / "weights").write_bytes(bytes(1024))
    arguments = {"dtype": tf.float32, "shape": [256], "offset": 0} | arguments
    read = bd.python.native.library().blockdnn_read_weights
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        read(str(tmp_path / "weights"), **arguments)


def test_nobody_writes_into_them(tmp_path):
    """Ops take the memory of what nobody else reads for their results; this is the file's."""
    (tmp_path / "weights").write_bytes(bytes(1024))
    library = bd.python.native.library()

    @tf.function
    def next_values():
        return library.blockdnn_read_weights(str(tmp_path / "weights"), tf.float32, [256], 0) + 1.0

    np.testing.assert_array_equal(next_values(), np.ones(256))
    variable = tf.Variable(
        library.blockdnn_read_weights(str(tmp_path / "weights"), tf.float32, [256], 0)
    )
    variable.assign_add(np.ones(256, np.float32))
    np.testing.assert_array_equal(variable, np.ones(256))
    assert (tmp_path / "weights").read_bytes() == bytes(1024)


_TWO_PROCESSES = """
import os, pathlib, sys, numpy as np, tf_blockdnn as bd

def of_weights(key):
    own, total = False, 0
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        if not line.split()[0].endswith(":"):
            own = "blockdnn_weights" in line
        elif own and line.startswith(key + ":"):
            total += int(line.split()[1]) / 1024
    return total

ready, done = os.pipe(), os.pipe()
is_child = not os.fork()
fast, x = bd.load(sys.argv[1]), np.zeros((1, 4096), np.float32)
fast(x), fast(x)
if is_child:
    os.write(ready[1], b"1"), os.read(done[0], 1), os._exit(0)
os.read(ready[0], 1)
print(of_weights("Rss"), of_weights("Pss"))
os.write(done[1], b"1")
"""


def test_two_processes_share_what_is_read_as_it_is(tmp_path):
    model = keras.Sequential([keras.Input([4096]), keras.layers.Dense(4096)])  # 64 MiB
    bd.optimize(model).save(tmp_path / "fast")
    done = fresh.run(_TWO_PROCESSES, tmp_path / "fast")
    resident, share = map(float, done.stdout.splitlines()[-1].split())
    assert 63 < resident < 67 and share < 0.55 * resident


def test_results_leave_nothing(saved, x):
    before = _mappings(), len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        bd.load(saved)(x)
    assert (_mappings(), len(os.listdir("/proc/self/fd"))) == before


def test_a_signature_alone_has_them(saved, x):
    """As it has its variables: they go with the last function that reads them."""
    before = _call(tf.saved_model.load(saved), x)
    function = tf.saved_model.load(saved).signatures["serving_default"]
    gc.collect()
    (name,) = function.structured_input_signature[1]
    (after,) = function(**{name: tf.constant(x)}).values()
    np.testing.assert_array_equal(after, before)
    assert _mappings()
    del function
    assert not _mappings()


_WRITTEN_INTO = "somebody has written into .*blockdnn_weights while its weights are in use"


@pytest.mark.parametrize("batch", [1, 3])  # whose form is packed, and is not
def test_a_file_that_somebody_writes_into_is_an_error(saved, x, batch):
    loaded, other = tf.saved_model.load(saved), bd.load(saved)
    for _ in range(3):
        _call(loaded, x), other(x)
    (asset,) = _assets(saved)
    with open(asset, "r+b") as file:  # as `cp` does
        file.truncate()
    x = np.repeat(x, batch, 0)
    for call in (lambda: _call(loaded, x), lambda: other(x)):
        with pytest.raises(tf.errors.FailedPreconditionError, match=_WRITTEN_INTO):
            call()


def test_so_it_is_where_python_reads_them(saved, x, tmp_path):
    """Where a page that the file has lost would end the process."""
    loaded, x = bd.load(saved), tf.constant(x)
    os.truncate(_assets(saved)[0], 0)
    with pytest.raises(ValueError, match=_WRITTEN_INTO), tf.GradientTape() as tape:
        tape.watch(x)
        loaded(x)
    with pytest.raises(ValueError, match=_WRITTEN_INTO):
        loaded.save(tmp_path / "again")
