"""LiteRT files, model.tflite, read as TensorFlow's ops: one row of a table for each op.

A tensor of bytes is the float32 tensor that these stand for, rounded where the file says so by
TensorFlow's FakeQuant, which is how models that are trained for quantization say it: the rewriter
knows those, and computes on bytes by them.
"""

import os
import re
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from .errors import SavedModelError
from .metagraph import first_line
from .tensorflow_private import lite_schema

_BYTES = {np.dtype("int8"): (-128, 127), np.dtype("uint8"): (0, 255)}


def read(path: str | os.PathLike):
    """The model as what tf.saved_model.load returns: a module with signatures.

    A file without signatures has one, "serving_default", by the names of the tensors.

    Raises:
        SavedModelError: no LiteRT file, or one with an op that has no row here.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
        schema = lite_schema()
        model = schema.ModelT.InitFromPackedBuf(data, 0)
        module = tf.Module()
        module.signatures = {
            name: _trace(schema, model, *signature)
            for name, signature in _signatures(model).items()
        }
    except _UnknownOp as error:
        raise SavedModelError(f"{path}: {error}") from None
    except Exception as error:  # The file decides what happens here.
        raise SavedModelError(f"{path}: not a LiteRT file ({first_line(error)})") from error
    return module


def _signatures(model) -> dict[str, tuple]:
    """name -> (subgraph, name -> the tensor that is an argument, the same of results)."""
    signatures = {}
    for definition in model.signatureDefs or ():
        sides = (
            {m.name.decode(): m.tensorIndex for m in side}
            for side in (definition.inputs, definition.outputs)
        )
        signatures[definition.signatureKey.decode()] = (
            model.subgraphs[definition.subgraphIndex],
            *sides,
        )
    if not signatures:
        graph = model.subgraphs[0]
        sides = (
            {re.sub(r"\W", "_", graph.tensors[i].name.decode()): i for i in side}
            for side in (graph.inputs, graph.outputs)
        )
        signatures["serving_default"] = (graph, *sides)
    return signatures


def _trace(schema, model, graph, inputs: dict, outputs: dict):
    reader = _Reader(schema, model, graph)

    @tf.function(autograph=False)
    def run(**arguments):
        return reader.run({inputs[name]: x for name, x in arguments.items()}, outputs)

    return run.get_concrete_function(**{n: reader.spec(i, n) for n, i in inputs.items()})


class _UnknownOp(ValueError):
    pass


class _Reader:
    """A subgraph as TensorFlow's ops."""

    def __init__(self, schema, model, graph):
        self.graph, self._model = graph, model
        self.dtypes = {
            number: tf.as_dtype(name.lower())
            for name, number in vars(schema.TensorType).items()
            if name in ("FLOAT32 FLOAT16 FLOAT64 INT8 UINT8 INT16 INT32 INT64 BOOL STRING".split())
        }
        self._ops = {code: name for name, code in vars(schema.BuiltinOperator).items()}

    def spec(self, index: int, name: str) -> tf.TensorSpec:
        tensor = self.graph.tensors[index]
        shape = tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature
        sizes = [None if size < 0 else int(size) for size in shape]
        return tf.TensorSpec(sizes, self.dtype(index), name)

    def dtype(self, index: int) -> tf.DType:
        dtype = self.dtypes.get(self.graph.tensors[index].type)
        if dtype is None:
            raise _UnknownOp(
                f"a tensor of type {self.graph.tensors[index].type} has no reader here"
            )
        return dtype

    def run(self, values: dict, outputs: dict) -> dict:
        """The results by their names, of the arguments by their tensors."""
        self._constants: dict[int, np.ndarray] = {}
        self._values = {i: self._rounded(i, self._real(i, x)) for i, x in values.items()}
        for number, op in enumerate(self.graph.operators):
            code = self._model.operatorCodes[op.opcodeIndex]
            name = self._ops.get(max(code.builtinCode, code.deprecatedBuiltinCode), "?")
            if name == "CUSTOM":
                name = code.customCode.decode()
            if name == "DEQUANTIZE" and op.inputs[0] not in self._values:
                real = self._real_array(op.inputs[0], self.constant(op.inputs[0]))
                self._constants[op.outputs[0]] = real.astype(np.float32)
                continue
            if name not in OPS:
                raise _UnknownOp(f"op {number} is {name}, which has no reader here")
            node = _Node(self, op)
            with tf.name_scope(f"{name.lower()}_{number}"):
                results = OPS[name](node)
                results = results if isinstance(results, list) else [results]
                for index, result in zip(op.outputs, results, strict=True):
                    result = _ACTIVATIONS[node.get("fusedActivationFunction", 0)](result)
                    self._values[index] = self._rounded(index, result)
        return {name: self._stored(i, self.value(i)) for name, i in outputs.items()}

    def value(self, index: int):
        """The tensor, or the constant, of real numbers where it is quantized."""
        if index not in self._values:
            values = self.constant(index)
            self._values[index] = tf.constant(self._real_array(index, values))
        return self._values[index]

    def constant(self, index: int) -> np.ndarray:
        """A constant as it is stored, or as DEQUANTIZE makes it of one.

        Raises:
            _UnknownOp: a tensor that is none.
        """
        if index in self._constants:
            return self._constants[index]
        tensor, dtype = self.graph.tensors[index], self.dtype(index)
        data = self._model.buffers[tensor.buffer].data
        if tensor.sparsity is not None:
            raise _UnknownOp(f"{tensor.name.decode()!r} is sparse, which has no reader here")
        if data is None and 0 not in tensor.shape:
            raise _UnknownOp(f"{tensor.name.decode()!r} is no constant, which it has to be here")
        data = np.zeros(0, np.uint8) if data is None else np.asarray(data, np.uint8)
        shape = () if tensor.shape is None else tensor.shape
        return data.view(dtype.as_numpy_dtype).reshape(shape)

    def quantization(self, index: int):
        """(scales, zero points, their axis) of a quantized tensor; None of any other."""
        grid = self.graph.tensors[index].quantization
        if grid is None or grid.scale is None or self.dtype(index).is_floating:
            return None
        return np.float32(grid.scale), np.int64(grid.zeroPoint), grid.quantizedDimension

    def _real_array(self, index: int, values: np.ndarray) -> np.ndarray:
        if (grid := self.quantization(index)) is None:
            return values
        scales, zeros, axis = grid
        shape = [1] * values.ndim
        if scales.size > 1:
            shape[axis] = -1
        scales, zeros = scales.astype(np.float64).reshape(shape), zeros.reshape(shape)
        return ((values - zeros) * scales).astype(np.float32)

    def weights(self, index: int, order: Callable):
        """Constant weights as `order` puts them, which has the channels of the result last."""
        values, grid = self.constant(index), self.quantization(index)
        real = order(self._real_array(index, values))
        if grid is None or values.dtype != np.int8 or grid[1].any():
            if grid is not None and grid[0].size == 1 and values.dtype in _BYTES:
                return self._rounded(index, tf.constant(real))
            return tf.cast(tf.constant(real), tf.float32)
        scales, least = grid[0], -128 if (values == -128).any() else -127
        if scales.size == 1:
            ends = {"min": float(least * scales[0]), "max": float(127 * scales[0])}
            narrow = least == -127
            return tf.quantization.fake_quant_with_min_max_args(real, **ends, narrow_range=narrow)
        shape = real.shape
        if shape[-1] != scales.size:  # a depthwise filter [kh, kw, C, m]
            real = real.reshape(*shape[:2], scales.size)
        rounded = tf.quantization.fake_quant_with_min_max_vars_per_channel(
            real, least * scales, 127 * scales, narrow_range=least == -127
        )
        return tf.reshape(rounded, shape)

    def _rounded(self, index: int, value):
        grid = self.quantization(index)
        ends = _BYTES.get(np.dtype(self.dtype(index).as_numpy_dtype)) if grid else None
        if ends is None:
            return value
        scale, zero = float(grid[0][0]), int(grid[1][0])
        low, high = (scale * (end - zero) for end in ends)
        return tf.quantization.fake_quant_with_min_max_args(value, low, high)

    def _real(self, index: int, value):
        """An argument as the numbers that it stands for."""
        if (grid := self.quantization(index)) is None:
            return value
        return (tf.cast(value, tf.float32) - float(grid[1][0])) * grid[0][0]

    def _stored(self, index: int, value):
        """A result as the file has it."""
        dtype = self.dtype(index)
        if (grid := self.quantization(index)) is None:
            return tf.cast(value, dtype)
        numbers = tf.round(value / grid[0][0]) + float(grid[1][0])
        return tf.saturate_cast(numbers, dtype)


class _Node:
    """An op: the inputs are `node(0)`, `node(1)`, .., and the options are attributes."""

    def __init__(self, reader: _Reader, op):
        self.reader, self.op = reader, op

    def __call__(self, place: int):
        return self.reader.value(self.op.inputs[place])

    def has(self, place: int) -> bool:
        return place < len(self.op.inputs) and self.op.inputs[place] >= 0

    def all(self) -> list:
        return [self(i) for i in range(len(self.op.inputs))]

    def weights(self, place: int, order: Callable):
        """Constant weights in TensorFlow's order."""
        return self.reader.weights(self.op.inputs[place], order)

    def get(self, name: str, default=None):
        return getattr(self.op.builtinOptions, name, default)

    def __getattr__(self, name: str):
        return getattr(self.op.builtinOptions, name)

    @property
    def window(self) -> dict:
        """strides and padding of a convolution or a pooling."""
        strides = [self.strideH, self.strideW]
        return {"strides": strides, "padding": ("SAME", "VALID")[self.padding]}

    @property
    def dtype(self) -> tf.DType:
        """Of the result."""
        return self.reader.dtype(self.op.outputs[0])

    def biased(self, y, place: int = 2):
        return y + self(place) if self.has(place) else y


def _conv(node: _Node):
    filters = node.weights(1, lambda w: w.transpose(1, 2, 3, 0))
    dilations = [node.dilationHFactor, node.dilationWFactor]
    return node.biased(tf.nn.conv2d(node(0), filters, **node.window, dilations=dilations))


def _depthwise(node: _Node):
    channels = node(0).shape[-1]
    filters = node.weights(1, lambda w: w.reshape(*w.shape[1:3], channels, -1))
    window = node.window
    window["strides"] = [1, *window["strides"], 1]
    dilations = [node.dilationHFactor, node.dilationWFactor]
    y = tf.nn.depthwise_conv2d(node(0), filters, **window, dilations=dilations)
    return node.biased(y)


def _transposed(node: _Node):
    filters = tf.transpose(node.weights(1, lambda w: w.transpose(1, 2, 3, 0)), (0, 1, 3, 2))
    return node.biased(tf.nn.conv2d_transpose(node(2), filters, node(0), **node.window), 3)


def _dense(node: _Node):
    x = node(0)
    weights = node.weights(1, np.transpose)
    if not node.keepNumDims and x.shape.rank != 2:
        x = tf.reshape(x, [-1, weights.shape[0]])
    return node.biased(tf.linalg.matmul(x, weights))


def _pool(pool: Callable) -> Callable:
    def row(node: _Node):
        return pool(node(0), [node.filterHeight, node.filterWidth], **node.window)

    return row


def _resize(op: Callable) -> Callable:
    def row(node: _Node):
        sides = {"align_corners": node.alignCorners, "half_pixel_centers": node.halfPixelCenters}
        return op(images=node(0), size=node(1), **sides)

    return row


def _of_all(function: Callable) -> Callable:
    """A function of the inputs and nothing else."""
    return lambda node: function(*node.all())


def _reduce(function: Callable) -> Callable:
    return lambda node: function(node(0), node(1), keepdims=node.keepDims)


def _slice(node: _Node):
    names = {"new_axis": "newAxis", "shrink_axis": "shrinkAxis"}
    masks = {
        f"{name}_mask": node.get(f"{names.get(name, name)}Mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    return tf.strided_slice(*node.all(), **masks)


def _clip(x):
    return tf.clip_by_value(x, -1.0, 1.0)


# Of `fusedActivationFunction`.
_ACTIVATIONS = (lambda x: x, tf.nn.relu, _clip, tf.nn.relu6, tf.tanh, tf.sign)
# Ops that are called in LiteRT as they are in TensorFlow, by their module there.
_OF_THE_SAME_NAME = {
    tf.math: "abs add ceil cos equal exp floor greater greater_equal less less_equal log "
    "logical_and logical_not logical_or maximum minimum not_equal pow round rsqrt sign sin sqrt "
    "square squared_difference tanh",
    tf.nn: "elu log_softmax relu relu6",
    tf: "broadcast_to expand_dims fill gather_nd pad range slice tile transpose zeros_like",
}
# The op's name in the file -> the tensor, or the list of tensors, that a node of it makes.
OPS: dict[str, Callable[[_Node], object]] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _transposed,
    "FULLY_CONNECTED": _dense,
    "AVERAGE_POOL_2D": _pool(tf.nn.avg_pool2d),
    "MAX_POOL_2D": _pool(tf.nn.max_pool2d),
    "RESIZE_BILINEAR": _resize(tf.raw_ops.ResizeBilinear),
    "RESIZE_NEAREST_NEIGHBOR": _resize(tf.raw_ops.ResizeNearestNeighbor),
    "BATCH_MATMUL": lambda n: tf.linalg.matmul(n(0), n(1), n.adjX, n.adjY),
    "ADD_N": lambda n: tf.add_n(n.all()),
    "CONCATENATION": lambda n: tf.concat(n.all(), n.axis),
    "RESHAPE": lambda n: tf.reshape(n(0), n(1) if n.has(1) else n.newShape),
    "SQUEEZE": lambda n: tf.squeeze(n(0), n.squeezeDims),
    "STRIDED_SLICE": _slice,
    "SPLIT": lambda n: tf.split(n(1), n.numSplits, n(0)),
    "SPLIT_V": lambda n: tf.split(n(0), n(1), n(2), n.numSplits),
    "PACK": lambda n: tf.stack(n.all(), n.axis),
    "UNPACK": lambda n: tf.unstack(n(0), n.num, n.axis),
    "GATHER": lambda n: tf.gather(n(0), n(1), axis=n.axis, batch_dims=n.batchDims),
    "EMBEDDING_LOOKUP": lambda n: tf.gather(n(1), n(0)),
    "PADV2": lambda n: tf.pad(n(0), n(1), constant_values=n(2)),
    "MIRROR_PAD": lambda n: tf.pad(n(0), n(1), ("REFLECT", "SYMMETRIC")[n.mode]),
    "SPACE_TO_DEPTH": lambda n: tf.nn.space_to_depth(n(0), n.blockSize),
    "DEPTH_TO_SPACE": lambda n: tf.nn.depth_to_space(n(0), n.blockSize),
    "SOFTMAX": lambda n: tf.nn.softmax(n(0) if n.beta == 1 else n.beta * n(0)),
    "LEAKY_RELU": lambda n: tf.nn.leaky_relu(n(0), n.alpha),
    "GELU": lambda n: tf.nn.gelu(n(0), n.approximate),
    "CAST": lambda n: tf.cast(n(0), n.dtype),
    "SHAPE": lambda n: tf.shape(n(0), n.dtype),
    "ARG_MAX": lambda n: tf.argmax(n(0), n(1), n.dtype),
    "ARG_MIN": lambda n: tf.argmin(n(0), n(1), n.dtype),
    "CUMSUM": lambda n: tf.cumsum(n(0), n(1), n.exclusive, n.reverse),
    "QUANTIZE": lambda n: n(0),
    "DEQUANTIZE": lambda n: tf.cast(n(0), tf.float32),
    "MEAN": _reduce(tf.reduce_mean),
    "SUM": _reduce(tf.reduce_sum),
    **{
        f"REDUCE_{name.upper()}": _reduce(getattr(tf, f"reduce_{name}"))
        for name in ("max", "min", "prod", "any", "all")
    },
    **{
        name.upper(): _of_all(getattr(module, name))
        for module, names in _OF_THE_SAME_NAME.items()
        for name in names.split()
    },
    **{
        name: _of_all(function)
        for name, function in {
            "SUB": tf.subtract,
            "MUL": tf.multiply,
            "DIV": tf.divide,
            "FLOOR_DIV": tf.math.floordiv,
            "FLOOR_MOD": tf.math.floormod,
            "SELECT": tf.compat.v1.where,
            "SELECT_V2": tf.where,
            "RELU_N1_TO_1": _clip,
            "PRELU": lambda x, slopes: tf.nn.relu(x) - slopes * tf.nn.relu(-x),
            "HARD_SWISH": lambda x: x * tf.nn.relu6(x + 3.0) * (1 / 6),
            "LOGISTIC": tf.sigmoid,
            "L2_NORMALIZATION": lambda x: tf.nn.l2_normalize(x, -1),
            "NEG": tf.negative,
            "REVERSE_V2": tf.reverse,
            "SPACE_TO_BATCH_ND": tf.space_to_batch,
            "BATCH_TO_SPACE_ND": tf.batch_to_space,
        }.items()
    },
}
