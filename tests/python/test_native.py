"""The library is loaded only where it can be, and says what to do otherwise."""

import gc
import json

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
        ImportError, match=r"built for TensorFlow 2\.21.*2\.20\.1 is installed: `pip"
    ):
        native.check_tensorflow("2.20.1", "2.21.0")


def test_another_patch_version():
    native.check_tensorflow("2.21.9", "2.21.0")


def test_missing_library(tmp_path):
    with pytest.raises(
        ImportError, match="native library is missing.*run `make build` in a checkout"
    ):
        native.built_for(tmp_path)


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
    )
    assert info["threads"] >= 1
    assert info["eager_path"] == "available"
