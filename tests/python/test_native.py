"""The library is loaded only where it can be, and says what to do otherwise."""

import gc
import json
import os
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import fresh
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python import native


def test_loaded_once():
    assert native.library() is native.library()


def test_collection_goes_on_afterwards():
    assert gc.isenabled()
    with pytest.raises(KeyError), native.without_collection():
        with native.without_collection():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_another_minor_version():
    with pytest.raises(
        ImportError,
        match=r"built for TensorFlow 2\.21.*2\.20\.1 is installed: `pip.* --no-build-isolation \.`",
    ):
        native.check_tensorflow("2.20.1", "2.21.0")


def test_another_patch_version():
    native.check_tensorflow("2.21.9", "2.21.0")


def test_missing_library(tmp_path):
    with pytest.raises(
        ImportError, match="native library is missing.*run `make build` in a checkout"
    ):
        native.built_for(tmp_path)


def _clone_of(folder, version):
    """A checkout without the library, and a site in which that is installed as of `version`."""
    (folder / "site/tf_blockdnn").mkdir(parents=True)
    (folder / "site/tf_blockdnn/_native").symlink_to(native.LIBRARY_PATH.parent)
    about = folder / f"site/tf_blockdnn-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tf_blockdnn\nVersion: {version}")
    root = Path(__file__).resolve().parents[2]
    names = shutil.ignore_patterns("_native", "__pycache__")
    shutil.copytree(root / "tf_blockdnn", folder / "clone/tf_blockdnn", ignore=names, symlinks=True)
    (folder / "clone/python").symlink_to(root / "python")
    return folder / "clone", dict(os.environ, PYTHONPATH=str(folder / "site"))


@pytest.mark.parametrize("version", [f"{bd.__version__}+tf2.21", "0.0.1"])
def test_in_the_checkout_that_was_installed(tmp_path, version):
    """Python finds the checkout's folder first, which has no library. Another version's is none."""
    clone, environ = _clone_of(tmp_path, version)
    command = [sys.executable, "-c", "import tf_blockdnn; print(tf_blockdnn.info()['library'])"]
    out = subprocess.run(command, cwd=clone, env=environ, capture_output=True, text=True)
    if version == "0.0.1":
        assert "ImportError: tf_blockdnn's native library is missing" in out.stderr
    else:
        assert out.stdout.strip() == str(tmp_path / "site/tf_blockdnn" / native._NATIVE), out.stderr


def test_without_tensorflow(tmp_path):
    """The command line, too, says how to get it."""
    program = """
import sys
import weakref
sys.modules["tensorflow"] = None
sys.argv = ["tf-blockdnn", "info"]
from tf_blockdnn.python.cli import main
main()
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    line = "needs TensorFlow 2.21, which is not installed: `pip install 'tensorflow==2.21.*'`"
    assert out.returncode == 2 and line in out.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "spoil, named",
    [
        (
            "from tensorflow.python.eager.polymorphic_function.concrete_function import "
            "ConcreteFunction\ndel ConcreteFunction._call_flat",
            "ConcreteFunction has no _call_flat",
        ),
        (
            "import sys\nimport tensorflow.python.framework as framework\ndel framework.importer\n"
            "sys.modules['tensorflow.python.framework.importer'] = None",
            "importer",
        ),
    ],
)
def test_what_another_tensorflow_lacks_is_named_at_import(spoil, named):
    program = f"import tensorflow as tf\n{spoil}\nfrom tf_blockdnn import optimize"
    command = [sys.executable, "-c", program]
    error = subprocess.run(command, capture_output=True, text=True).stderr.splitlines()[-1]
    assert error.startswith("ImportError: TensorFlow 2.") and named in error
    assert "is not one that tf_blockdnn knows" in error


def test_wrong_version_is_refused_before_loading(tmp_path):
    """In a process of its own: the import fails, TensorFlow's loader is never asked."""
    (tmp_path / "libtf_blockdnn.so").write_bytes(b"not a library")
    (tmp_path / "_build_info.json").write_text(json.dumps({"tensorflow": "1.15.0"}))
    program = f"""
import pathlib
import tf_blockdnn.python.native as native
native.built_for.__defaults__ = (pathlib.Path({str(tmp_path)!r}),)
native.library.cache_clear()
try:
    native.library()
except ImportError as error:
    print(error)
"""
    out = fresh.run(program)
    assert "built for TensorFlow 1.15" in out.stdout, out.stderr


def test_info():
    info = bd.info()
    assert json.loads(json.dumps(info)) == info
    assert info["version"] == bd.__version__
    assert info["tensorflow"] == tf.__version__
    assert info["isa"] in (
        "generic",
        "avx2",
        "avx2_vnni",
        "avx512",
        "avx512_vnni",
        "avx512_bf16",
        "avx512_amx",
    )
    assert info["threads"] >= 1
    assert info["eager_path"] == "available"


class _Cycle:
    def __init__(self):
        self.itself = self


@pytest.fixture
def thawed():
    """As in a process that has frozen nothing; the tests' own has."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_what_was_made_meanwhile_is_collected_and_nothing_else(thawed):
    gc.collect()
    before = _Cycle()
    old, held = weakref.ref(before), _Cycle()
    with native.without_collection():
        del before
        with native.collecting_new():
            new, stays = weakref.ref(_Cycle()), weakref.ref(held)
        assert new() is None and stays() is held and old() is not None
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert old() is None


def test_what_a_server_has_frozen_stays_so():
    frozen = gc.get_freeze_count()
    with native.collecting_new():
        new = weakref.ref(_Cycle())
    assert new() is None and gc.get_freeze_count() >= frozen - 10 > 1000
