"""Loads the C++ library: once, and only into the TensorFlow it was built for."""

import functools
import json
import os
import sys
from pathlib import Path

# The import package these sources belong to, however it was installed.
_PACKAGE_DIR = Path(sys.modules[__package__.partition(".")[0]].__file__).resolve().parent
LIBRARY_PATH = _PACKAGE_DIR / "_native" / "libtf_blockdnn.so"
# Written by the build: {"tensorflow": "2.21.0"}.
BUILD_INFO_PATH = LIBRARY_PATH.with_name("_build_info.json")

_HOW_TO_BUILD = (
    "build it with `make` in a checkout of tf_blockdnn, or install the package with `pip install`"
)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def built_for(folder: Path = LIBRARY_PATH.parent) -> str:
    """Version of TensorFlow that the library in `folder` was compiled against.

    Raises:
      ImportError: there is no library.
    """
    library_path, build_info = folder / LIBRARY_PATH.name, folder / BUILD_INFO_PATH.name
    for path in (library_path, build_info):
        if not path.exists():
            raise ImportError(f"tf_blockdnn's native library is missing ({path}): {_HOW_TO_BUILD}.")
    return json.loads(build_info.read_text())["tensorflow"]


def check_tensorflow(running: str, built: str) -> None:
    """Raises ImportError unless TensorFlow `running` can load a library built for `built`.

    The C++ interface of TensorFlow changes with every minor version; without
    this check the loader reports an undefined symbol.
    """
    wanted = _minor(built)
    if _minor(running) != wanted:
        raise ImportError(
            f"tf_blockdnn was built for TensorFlow {wanted}, but {running} is installed: "
            f"`pip install 'tensorflow=={wanted}.*'`, or rebuild tf_blockdnn against {running} "
            "with `pip install --no-build-isolation`."
        )


@functools.cache
def library():
    """The module of generated op functions, `library().blockdnn_conv(...)` and so on.

    Raises:
      ImportError: the library is missing, or TensorFlow has another minor
        version than the one it was built for.
    """
    import tensorflow as tf

    check_tensorflow(tf.__version__, built_for())
    return tf.load_op_library(os.fspath(LIBRARY_PATH))
