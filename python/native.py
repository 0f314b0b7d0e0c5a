"""Loads the C++ library: once, and only into the TensorFlow it was built for."""

import contextlib
import ctypes
import functools
import gc
import importlib.metadata
import json
import os
import sys
import types
from pathlib import Path

from .version import VERSION

_NATIVE = Path("_native", "libtf_blockdnn.so")


def _library_path() -> Path:
    """The library beside these sources, or else that of the installed package of their version.

    In a checkout Python finds the checkout's sources first, though `pip install .` has put the
    library elsewhere.
    """
    package = Path(sys.modules[__package__.partition(".")[0]].__file__).resolve().parent
    installed = importlib.metadata.distributions(name=package.name)
    same = (each for each in installed if each.version.partition("+")[0] == VERSION)
    others = (Path(each.locate_file(package.name / _NATIVE)) for each in same)
    here = package / _NATIVE
    return here if here.exists() else next((path for path in others if path.exists()), here)


LIBRARY_PATH = _library_path()
# Written by the build: {"tensorflow": "2.21.0"}.
BUILD_INFO_PATH = LIBRARY_PATH.with_name("_build_info.json")

_HOW_TO_BUILD = (
    "run `make build` in a checkout of tf_blockdnn, or install it from there with `pip install .`"
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
            "with `pip install --no-build-isolation .` in its checkout."
        )


def import_tensorflow():
    """The module; where there is none an ImportError says how to get it."""
    try:
        import tensorflow
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        minor = _minor(built_for())
        raise ImportError(
            f"tf_blockdnn needs TensorFlow {minor}, which is not installed: "
            f"`pip install 'tensorflow=={minor}.*'`, or tensorflow-cpu."
        ) from None
    return tensorflow


@functools.cache
def library() -> types.ModuleType:
    """The module of the ops' functions, `library().blockdnn_conv(...)` and so on.

    Raises:
      ImportError: the library is missing, or TensorFlow has another minor
        version than the one it was built for, or has loaded another library of ours.
    """
    tf = import_tensorflow()
    check_tensorflow(tf.__version__, built_for())
    if (loaded := _loaded()) is None:
        tf.load_library(os.fspath(LIBRARY_PATH))
    elif not loaded.samefile(LIBRARY_PATH):
        raise ImportError(
            f"TensorFlow has loaded {loaded}, which is installed, and not {LIBRARY_PATH}: set "
            "TF_BLOCKDNN_PLUGIN=0 before TensorFlow is imported, or `pip uninstall tf_blockdnn`"
        )
    return _functions()


def _loaded() -> Path | None:
    """The library that the plug-in of the wheel (cc/plugin.c) has loaded with TensorFlow."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps:
            if line.endswith(f"/{LIBRARY_PATH.name}\n"):
                return Path(line[line.index("/") : -1])
    return None


def _functions() -> types.ModuleType:
    """A module in which TensorFlow writes an op's function when somebody asks for it.

    tf.load_op_library writes all at once, which takes 60 ms.
    """
    module = types.ModuleType("tf_blockdnn_ops")
    sys.modules[module.__name__] = module  # AutoGraph looks there for the module of a function.

    def write(name: str):
        from .tensorflow_private import source_of_function  # which starts threads: no fork after it

        op = "".join(map(str.capitalize, name.split("_")))
        source = source_of_function(op) if name.startswith("blockdnn_") else None
        if source is None:
            raise AttributeError(f"there is no op {name}")
        exec(source, module.__dict__)
        return module.__dict__[name]

    module.__getattr__ = write
    return module


def _fields(names: str, kind: type) -> list[tuple[str, type]]:
    return [(name, kind) for name in names.split()]


class CTensorDesc(ctypes.Structure):
    """BlockdnnTensorDesc of cc/tensorflow/c_api/c_api.h."""

    _fields_ = [
        *_fields("rank dtype layout shape_rank is_dense is_whole", ctypes.c_int32),
        ("dims", ctypes.c_int64 * 6),
        ("strides", ctypes.c_int64 * 6),
        ("offset", ctypes.c_int64),
        ("blocks", ctypes.c_int64 * 6),
        ("padded_dims", ctypes.c_int64 * 6),
        ("shape", ctypes.c_int64 * 8),
        *_fields("size size_bytes", ctypes.c_int64),
    ]


class CList(ctypes.Structure):
    """BlockdnnList of cc/tensorflow/c_api/c_api.h."""

    _fields_ = [("count", ctypes.c_int32), ("values", ctypes.POINTER(ctypes.c_int64))]

    @classmethod
    def of(cls, values) -> "CList":
        values = list(values)
        return cls(len(values), (ctypes.c_int64 * len(values))(*values))


class CEager(ctypes.Structure):
    """BlockdnnEager of cc/tensorflow/c_api/c_api.h."""

    _fields_ = _fields(
        "context handle_of executor_of_thread executor_is_async delete_executor", ctypes.c_void_p
    )


class CArray(ctypes.Structure):
    """BlockdnnArray of cc/tensorflow/c_api/c_api.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * 8),
    ]


# BlockdnnFollow of cc/tensorflow/c_api/c_api.h.
FollowFunction = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

# The functions of cc/tensorflow/c_api/c_api.h: what they return and take. Those that
# return `_error` raise ValueError when called through `c_call`.
_int, _text, _pointer = ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p
_error, _desc, _eager = _text, ctypes.POINTER(CTensorDesc), ctypes.POINTER(CEager)
_texts, _pointers, _longs = map(ctypes.POINTER, (_text, _pointer, ctypes.c_int64))
_C_FUNCTIONS = {
    "BlockdnnActiveIsa": (_text, []),
    "BlockdnnThreads": (_int, [_int, _texts]),
    "BlockdnnSetThreads": (_error, [_int, _int]),
    "BlockdnnLayoutName": (_text, [_int]),
    "BlockdnnDataTypeName": (_text, [_int]),
    "BlockdnnPostOpFunctions": (_text, []),
    "BlockdnnMakeTensorDesc": (_error, [_text, _text, CList, CList, ctypes.c_int64, _desc]),
    "BlockdnnSubmemory": (_error, [_desc, CList, CList, _desc]),
    "BlockdnnPackCount": (ctypes.c_int64, []),
    "BlockdnnCheckWeights": (_error, [_pointer]),
    "BlockdnnReturnFreeMemory": (None, []),
    "BlockdnnMakeEagerCall": (_error, [_text, _eager, _pointer, _int, _int, _pointers]),
    "BlockdnnRunEagerCall": (_int, [_pointer, _pointer, ctypes.POINTER(CArray), _pointer]),
    "BlockdnnDropEagerCall": (None, [_pointer]),
    "BlockdnnMakeWatch": (_error, [_eager, _pointer, _pointer, _int, _pointers]),
    "BlockdnnWatchChanged": (_int, [_pointer]),
    "BlockdnnDropWatch": (None, [_pointer]),
    "BlockdnnOnFollow": (None, [FollowFunction]),
    "BlockdnnVariableAddress": (_error, [_eager, ctypes.py_object, _pointers]),
    "BlockdnnOffset": (ctypes.c_int64, [_desc, _longs]),
    "BlockdnnOffsets": (None, [_desc, _int, _longs]),
    "BlockdnnMemoryPlan": (_error, [_text, ctypes.c_int64, CList, CList, _int, _texts]),
}


@functools.cache
def c_library() -> ctypes.CDLL:
    """The same library for ctypes: `c_library().BlockdnnActiveIsa()` and so on.

    Raises:
      ImportError: as `library`.
    """
    library()
    loaded = ctypes.CDLL(os.fspath(LIBRARY_PATH))
    for name, (result, arguments) in _C_FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def c_call(name: str, *args) -> None:
    """Calls the function `name` of cc/tensorflow/c_api/c_api.h, which returns an error or nothing.

    Raises:
      ValueError: with that error.
    """
    error = getattr(c_library(), name)(*args)
    if error is not None:
        raise ValueError(error.decode())


def return_free_memory() -> None:
    """Gives memory that was freed, but that allocators keep for later, back to the system.

    Loading, rewriting and packing free buffers as large as the weights, which stay resident
    without this.
    """
    c_library().BlockdnnReturnFreeMemory()


@contextlib.contextmanager
def without_collection():
    """Suspends Python's search for unreachable cycles.

    Where millions of objects are created that stay, it would visit all that Keras and TensorFlow
    hold again and again, 0.4 s each time. That is so for all threads, as the collector has one
    switch: what others drop in cycles meanwhile waits for the end, at most some seconds.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def collecting_new():
    """Objects that were created meanwhile and that nobody holds are freed at the end, also cycles.

    All that is there before, such as the modules of Keras and TensorFlow, is left out, since to go
    through it takes 0.1 s. A process that has frozen objects itself, as servers do before they
    fork, has left those out.
    """
    freezes = gc.get_freeze_count() == 0
    if freezes:
        gc.freeze()
    try:
        yield
        gc.collect()
    finally:
        if freezes:
            gc.unfreeze()


# The instruction sets that multiply numbers of a type as they are.
_MULTIPLYING = {
    "int8": ("avx2_vnni", "avx512_vnni", "avx512_bf16", "avx512_amx"),
    "bf16": ("avx512_bf16", "avx512_amx"),
}


def active_isa() -> str:
    """The instructions that kernels use, as `bd.info()` has them."""
    return c_library().BlockdnnActiveIsa().decode()


def multiplies(kind: str) -> bool:
    """Whether kernels multiply numbers of "int8" or "bf16" as they are, and need not widen them."""
    return active_isa() in _MULTIPLYING[kind]
