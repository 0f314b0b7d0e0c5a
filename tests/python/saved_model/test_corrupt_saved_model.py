"""SavedModels that are broken inside: one clear line, and nothing is written."""

import random

import pytest
from tensorflow.core.framework import types_pb2
from test_saved_model import copy, edit, tiny  # noqa: F401

from tf_blockdnn.python.errors import UserError
from tf_blockdnn.python.saved_model import optimize_saved_model


def _nodes(meta, op):
    """Those of that op in the graph and its functions."""
    functions = (node for f in meta.graph_def.library.function for node in f.node_def)
    return [node for node in (*meta.graph_def.node, *functions) if node.op == op]


def _dangling(meta):
    _nodes(meta, "Conv2D")[0].input[0] = "nobody:output:0"


def _port(meta):
    node = _nodes(meta, "Conv2D")[0]
    node.input[0] = node.input[0].rpartition(":")[0] + ":7"


def _too_few_inputs(meta):
    del _nodes(meta, "Conv2D")[0].input[:]


def _wrong_dtype(meta):
    for node in _nodes(meta, "Conv2D"):
        node.attr["T"].type = types_pb2.DT_INT64


def _no_such_dtype(meta):
    for node in _nodes(meta, "Conv2D"):
        node.attr["T"].type = 99


def _cycle(meta):
    conv = _nodes(meta, "Conv2D")[0]
    conv.input[0] = f"{conv.name}:output:0"


def _negative_stride(meta):
    for node in _nodes(meta, "Conv2D"):
        node.attr["strides"].list.i[:] = [1, -1, -1, 1]


def _no_strides(meta):
    for node in _nodes(meta, "Conv2D"):
        del node.attr["strides"].list.i[:]


def _absurd_constant(meta):
    for node in _nodes(meta, "Const"):
        shape = node.attr["value"].tensor.tensor_shape
        del shape.dim[:]
        shape.dim.add(size=1 << 40)
        shape.dim.add(size=1 << 40)


def _no_function(meta):
    del meta.graph_def.library.function[:]


_CORRUPTIONS = (
    _dangling,
    _port,
    _too_few_inputs,
    _wrong_dtype,
    _no_such_dtype,
    _cycle,
    _negative_stride,
    _no_strides,
    _absurd_constant,
    _no_function,
)


@pytest.mark.parametrize("corrupt", _CORRUPTIONS, ids=lambda corrupt: corrupt.__name__)
def test_a_broken_graph(tiny, tmp_path, corrupt):  # noqa: F811
    source = copy(tiny, tmp_path)
    edit(source, corrupt)
    with pytest.raises(UserError) as caught:
        optimize_saved_model(source, tmp_path / "out")
    assert str(source) in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def _no_such_output(meta):
    for function in meta.graph_def.library.function:
        for name in function.ret:
            function.ret[name] = "nobody:output:0"


def test_a_missing_name_is_said(tiny, tmp_path):  # noqa: F811
    source = copy(tiny, tmp_path)
    edit(source, _no_such_output)
    with pytest.raises(UserError, match=r"cannot be loaded: there is no 'nobody:output:0'"):
        optimize_saved_model(source, tmp_path / "out")


@pytest.mark.parametrize("part", ["saved_model.pb", "variables/variables.index"])
def test_any_truncation(tiny, tmp_path, part):  # noqa: F811
    """Cut anywhere: a line that says so, or, if nothing that matters is gone, a result."""
    source = copy(tiny, tmp_path)
    whole = (source / part).read_bytes()
    for seed in range(6):
        (source / part).write_bytes(whole[: random.Random(seed).randrange(len(whole))])
        try:
            optimize_saved_model(source, tmp_path / f"out{seed}")
        except UserError as error:
            assert "\n" not in str(error)
            assert not (tmp_path / f"out{seed}").exists()
