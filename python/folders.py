"""SavedModel folders on disk: checked before anything is loaded, replaced in one step."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import shutil
from collections.abc import Iterator

from .errors import SavedModelError

# What a SavedModel consists of; anything else in the folder belongs to the user.
_PARTS = (
    "saved_model.pb",
    "saved_model.pbtxt",
    "fingerprint.pb",
    "variables",
    "assets",
    "assets.extra",
    "debug",
    "keras_metadata.pb",
)


# Files of other libraries, by the ends of their names, and the way from them to a SavedModel.
_OTHERS = {
    (".onnx",): "an ONNX file: onnx2tf makes a SavedModel of it",
    (".pt", ".pth", ".bin", ".safetensors"): "weights of PyTorch: write the model as ONNX "
    "(torch.onnx.export), of which onnx2tf makes a SavedModel",
    (".weights.h5", ".ckpt", ".index"): "weights without their model: build the model, load them, "
    "and write it with model.export(folder)",
}


def is_keras_file(path: str | os.PathLike) -> bool:
    """Whether the name says that Keras wrote it: model.keras or model.h5."""
    return pathlib.Path(path).suffix in (".keras", ".h5", ".hdf5")


def is_lite_file(path: str | os.PathLike) -> bool:
    """Whether the name says that it is LiteRT's: model.tflite."""
    return pathlib.Path(path).suffix == ".tflite"


def check_model(path: str | os.PathLike) -> pathlib.Path:
    """`path` as a path, once it may be a Keras file, a LiteRT file or a SavedModel.

    Raises:
      SavedModelError: no such file or folder, or one without a model.
    """
    path = pathlib.Path(path)
    other = next((kind for ends, kind in _OTHERS.items() if path.name.endswith(ends)), None)
    if other and path.is_file():
        raise SavedModelError(f"{path}: {other}")
    if not is_keras_file(path) and not is_lite_file(path):
        return check_source(path)
    if not path.is_file():
        raise SavedModelError(
            f"{path}: {'a folder, not a file' if path.exists() else 'no such file'}"
        )
    if is_lite_file(path):
        with path.open("rb") as file:
            if file.read(8)[4:] != b"TFL3":
                raise SavedModelError(f"{path}: not a LiteRT file (it does not begin as one)")
    return path


def check_source(folder: str | os.PathLike) -> pathlib.Path:
    """`folder` as a path, once it looks like a SavedModel.

    Raises:
      SavedModelError: no such folder, a file, or no saved_model.pb inside.
    """
    folder = pathlib.Path(folder)
    if not folder.exists():
        raise SavedModelError(f"{folder}: no such file or folder")
    if is_keras_file(folder):
        raise SavedModelError(f"{folder}: a file that Keras wrote; tf_blockdnn.optimize reads it")
    if not folder.is_dir():
        raise SavedModelError(
            f"{folder}: not a folder; give the folder that holds saved_model.pb, or a file that "
            "Keras wrote (.keras, .h5)"
        )
    if not any((folder / name).is_file() for name in ("saved_model.pb", "saved_model.pbtxt")):
        raise SavedModelError(
            f"{folder}: not a SavedModel (no saved_model.pb in it); make one "
            "with model.export(folder) or tf.saved_model.save"
        )
    return folder


def check_destination(
    folder: str | os.PathLike, *, source: str | os.PathLike, force: bool
) -> pathlib.Path:
    """`folder` as a path, once a SavedModel may be written there.

    Raises:
      SavedModelError: a file, a folder that is not empty (unless `force`), one that overlaps with
        `source`, a place where other file systems are mounted, or one that nobody can write.
    """
    folder = pathlib.Path(folder)
    here, there = folder.resolve(), pathlib.Path(source).resolve()
    if here == there or here in there.parents or there in here.parents:
        raise SavedModelError(f"{folder}: overlaps with the input {source}; choose another folder")
    if folder.exists() and not folder.is_dir():
        raise SavedModelError(f"{folder}: exists and is not a folder; choose another name")
    if folder.exists() and any(folder.iterdir()) and not force:
        raise SavedModelError(
            f"{folder}: exists and is not empty; choose another folder, or "
            "--force (force=True) to replace the SavedModel in it"
        )
    if os.path.ismount(folder):  # It could not be replaced in one step.
        raise SavedModelError(f"{folder}: a mounted folder; name a new one in it")
    place = next(parent for parent in here.parents if parent.exists())
    check_writable(place, f"{folder}: cannot be written ({place} takes no new folder)")
    return folder


def check_writable(place: pathlib.Path, message: str) -> None:
    """Raises SavedModelError with `message` where nothing can be written in the folder `place`."""
    try:
        trial = place / f".{secrets.token_hex(8)}"
        trial.mkdir()
        trial.rmdir()
    except OSError:
        raise SavedModelError(message) from None


@contextlib.contextmanager
def replacing(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a temporary sibling to write into, which replaces `folder` at the end.

    If the block raises, the sibling goes and `folder` stays as it was. Files in `folder` that are
    no part of a SavedModel are kept.

    Raises:
      SavedModelError: the place cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
        fresh.mkdir()  # for whom this process makes folders: those of tempfile are for one user
    except OSError as error:
        raise SavedModelError(f"{folder}: cannot be written ({error.strerror})") from error
    try:
        yield fresh
        _swap(fresh, folder)
    except OSError as error:
        raise SavedModelError(f"{folder}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(fresh: pathlib.Path, folder: pathlib.Path) -> None:
    if not folder.exists():
        fresh.rename(folder)
        return
    old = fresh.with_name(fresh.name + ".old")
    folder.rename(old)
    try:
        fresh.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    for entry in old.iterdir():
        if entry.name not in _PARTS:
            entry.rename(folder / entry.name)
    shutil.rmtree(old)
