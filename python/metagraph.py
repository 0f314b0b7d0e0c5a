"""Reads and loads SavedModel folders, and says what is wrong with those that cannot be.

A SavedModel stores its graph twice: as a MetaGraph (nodes, functions, signatures) and as a tree of
Python objects that the graph's functions hang from. Python objects age: an optimizer of another
Keras version, a class that is not imported. The MetaGraph does not, so when the objects cannot be
restored, `load` takes the MetaGraph alone.
"""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import weakref

import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.core.framework import variable_pb2
from tensorflow.core.protobuf import saved_model_pb2

from .errors import SavedModelError
from .folders import check_source
from .tensorflow_private import op_def_registry

# Signatures that TensorFlow writes for itself.
_INTERNAL_SIGNATURES = ("__saved_model_init_op", "__saved_model_train_op")


# Lines that TensorFlow writes before the message of an op in a function.
_BEFORE_MESSAGE = ("Graph execution error", "Detected at node", "<stack traces")


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, or the type where there is none."""
    if isinstance(error, KeyError):  # whose message is the key
        return f"there is no {error}"
    lines = (line for line in str(error).splitlines() if line.strip())
    messages = (line for line in lines if not line.startswith(_BEFORE_MESSAGE))
    return next(messages, type(error).__name__)


def read(folder: str | pathlib.Path) -> saved_model_pb2.SavedModel:
    """Parses `folder`'s protocol buffer.

    Raises:
      SavedModelError: no such folder, not a SavedModel, or unreadable.
    """
    folder = check_source(folder)
    binary, text = folder / "saved_model.pb", folder / "saved_model.pbtxt"
    saved = saved_model_pb2.SavedModel()
    try:
        if binary.exists():
            saved.ParseFromString(binary.read_bytes())
        else:
            text_format.Parse(text.read_text(), saved)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError, OSError) as error:
        raise SavedModelError(
            f"{folder}: saved_model.pb cannot be read ({first_line(error)}); is the file complete?"
        ) from error
    if not saved.meta_graphs:
        raise SavedModelError(f"{folder}: saved_model.pb holds no graph; is the file complete?")
    return saved


def meta_graph(saved: saved_model_pb2.SavedModel):
    """The MetaGraphDef for inference: the one tagged `serve`, else the first."""
    tagged = [m for m in saved.meta_graphs if "serve" in m.meta_info_def.tags]
    return (tagged or list(saved.meta_graphs))[0]


def signature_names(meta) -> list[str]:
    """The names of `meta`'s signatures, without those TensorFlow keeps for itself."""
    return sorted(name for name in meta.signature_def if name not in _INTERNAL_SIGNATURES)


def unknown_ops(meta) -> list[str]:
    """The ops in `meta`'s graph and functions that this process has no kernel contract for."""
    library = meta.graph_def.library.function
    used = {node.op for node in meta.graph_def.node}
    used.update(node.op for function in library for node in function.node_def)
    used.difference_update(function.signature.name for function in library)
    return sorted(op for op in used if op_def_registry.get(op) is None)


def check(folder: str | pathlib.Path) -> saved_model_pb2.SavedModel:
    """Reads `folder` and checks that the signatures in it can run here.

    Raises:
      SavedModelError: as `read`; no signature; an op that this TensorFlow does not know.
    """
    saved = read(folder)
    meta = meta_graph(saved)
    if not signature_names(meta):
        raise SavedModelError(
            f"{folder}: no signature; save the model with signatures= "
            "(tf.saved_model.save) or model.export"
        )
    if unknown := unknown_ops(meta):
        ops = "op" if len(unknown) == 1 else "ops"
        raise SavedModelError(
            f"{folder}: TensorFlow {tf.__version__} does not know the {ops} "
            f"{', '.join(unknown)}; import the library that defines it, or save "
            "the model without it"
        )
    return saved


def load(folder: str | pathlib.Path):
    """Loads a SavedModel, from the MetaGraph alone where Python objects cannot be restored.

    Returns: what tf.saved_model.load returns; `.signatures` maps names to ConcreteFunctions.
    Raises:
      SavedModelError: as `check`, or neither objects nor MetaGraph can be loaded.
    """
    saved = check(folder)
    meta = meta_graph(saved)
    tags = list(meta.meta_info_def.tags)
    try:
        return tf.saved_model.load(str(folder), tags=tags)
    except Exception as objects_error:  # Restoring runs code of any library: any type may come.
        try:
            return _load_graph_only(pathlib.Path(folder), saved, tags)
        except Exception:
            raise SavedModelError(f"{folder}: cannot be loaded: {first_line(objects_error)}") from (
                objects_error
            )


def _load_graph_only(folder: pathlib.Path, saved, tags: list[str]):
    """Loads a copy of the SavedModel without Python objects, as TensorFlow 1 wrote them."""
    copy = saved_model_pb2.SavedModel()
    copy.CopyFrom(saved)
    meta = meta_graph(copy)
    meta.ClearField("object_graph_def")
    for name in _INTERNAL_SIGNATURES:
        meta.signature_def.pop(name, None)
    _declare_variables(meta)
    place = pathlib.Path(tempfile.mkdtemp(prefix="tf_blockdnn-"))
    try:
        (place / "saved_model.pb").write_bytes(copy.SerializeToString())
        for part in ("variables", "assets"):
            if (folder / part).exists():
                (place / part).symlink_to((folder / part).absolute())
        loaded = tf.saved_model.load(str(place), tags=tags)
    except BaseException:
        shutil.rmtree(place)
        raise
    weakref.finalize(loaded, shutil.rmtree, place, ignore_errors=True)  # Assets are read from it.
    return loaded


def _declare_variables(meta) -> None:
    """Lists the variables that `meta`'s signatures read where TensorFlow 1 looks for them.

    TensorFlow 2 keeps this list in the object tree. Only variables that the checkpoint restores
    count; the others (paths of assets) are set by the initialiser.
    """
    if "variables" in meta.collection_def:
        return
    nodes = {node.name: node for node in meta.graph_def.node}
    restore = nodes.get(meta.saver_def.restore_op_name)
    restored = {_node_name(name) for name in restore.input} if restore else set()
    reads = {_node_name(n.input[0]): n.name for n in nodes.values() if n.op == "ReadVariableOp"}
    outputs = [
        info.name
        for name in signature_names(meta)
        for info in meta.signature_def[name].outputs.values()
    ]
    declared = meta.collection_def["variables"].bytes_list
    for name in sorted(_ancestors(nodes, outputs) & restored):
        if nodes[name].op == "VarHandleOp":
            declared.value.append(
                variable_pb2.VariableDef(
                    variable_name=f"{name}:0",
                    initializer_name=name,
                    is_resource=True,
                    snapshot_name=f"{reads.get(name, name)}:0",
                ).SerializeToString()
            )


def _node_name(edge: str) -> str:
    return edge.lstrip("^").partition(":")[0]


def _ancestors(nodes: dict, edges: list[str]) -> set[str]:
    seen: set[str] = set()
    waiting = [_node_name(edge) for edge in edges]
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in seen:
            seen.add(name)
            waiting += [_node_name(edge) for edge in nodes[name].input]
    return seen
