"""What all layers share: which of their tensors are blocked, and how that is known.

A blocked activation is a tensor [N, ceil(C / 16), H, W, 16] (without H in one dimension; a volume
is its slices, [N, D, ceil(C / 16), H, W, 16]) that does not tell C, nor that it is blocked. So the
layer that reads it knows: `blocked_channels` is part of its configuration, and saved with it. A
layer that is not told finds out when it is first called: layers mark the blocked tensors that they
return, and the mark of a tensor lasts within one call of a model, as Keras's masks do.
"""

import contextlib
from contextvars import ContextVar

import keras
import tensorflow as tf
from keras import tree

from ..gradients.blocked import slices, volumes
from ..layout import BLOCK, NCHW16C, NHWC, num_blocks
from ..ops.movement.reorder import reorder
from ..tensorflow_private import is_in_xla
from .fusing import note_images, note_readers

_MARK = "_blockdnn_channels"
# The layers whose methods of Keras run on plain tensors in this thread. It is no attribute of a
# layer, which other threads may be calling meanwhile.
_VIEWED_PLAIN = ContextVar("viewed_plain", default=())


ALGORITHMS = ("auto", "direct")


def check_algorithm(algorithm: str) -> str:
    """`algorithm`, if a layer may ask for it.

    Raises:
      ValueError: it may not.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {ALGORITHMS}, not {algorithm!r}")
    return algorithm


def channels_of(tensor) -> "int | None":
    """C of a tensor that a layer returned in blocks; None for any other."""
    return getattr(tensor, _MARK, None)


def mark(tensor, channels: int) -> None:
    """Makes `channels_of(tensor)` return `channels`."""
    with contextlib.suppress(AttributeError):  # a NumPy array: what follows must be told
        setattr(tensor, _MARK, channels)


def to_blocked(x):
    """[N, .., C] in blocks; rank 3 to 5."""
    return from_images(reorder(images(x, 1), NHWC, NCHW16C), x.shape.rank - 2, x)


def from_blocked(x, channels: int):
    """The inverse of `to_blocked`."""
    y = reorder(images(x, 2), NCHW16C, NHWC, channels=channels)
    return from_images(y, x.shape.rank - 3, x)


def images(x, height_axis: int):
    """A line as an image of height 1, the slices of a volume as images; an image is itself.

    Args:
      height_axis: of an image: 2 if x is blocked, 1 if it is plain.
    """
    spatial = x.shape.rank - height_axis - 1
    if spatial == 1:
        return tf.expand_dims(x, height_axis)
    if spatial == 2:
        return x
    return slices(x)


def from_images(y, spatial: int, like, depth: "int | None" = None):
    """The inverse of `images`.

    Args:
      spatial: dimensions of the tensor that y is to be.
      like: a tensor [N, D, ..] that says how many volumes there are, and slices of each
      depth: where the slices are others than those of `like`.
    """
    if spatial == 2:
        return y
    if spatial == 1:
        z = tf.squeeze(y, 2 if y.shape.rank == 5 else 1)
    else:
        static = like.shape[1] if depth is None else depth
        z = volumes(y, tf.shape(like)[1] if static is None else static)
        z.set_shape([like.shape[0], static, *y.shape[1:]])
    note_images(z, y, lambda y: from_images(y, spatial, like, depth))
    return z


def on_images(function, x):
    """function(x), which is for blocked images, of a blocked tensor of any rank."""
    return from_images(function(images(x, 2)), x.shape.rank - 3, x)


def blocks_axis(rank: int) -> int:
    """The axis of the blocks of a blocked tensor."""
    return 2 if rank == 6 else 1


def blocked_shape(shape) -> tuple:
    """The shape in blocks of a plain [N, .., C]."""
    before = blocks_axis(len(shape) + 1)
    return (*shape[:before], num_blocks(shape[-1]), *shape[before:-1], BLOCK)


def plain_shape(shape, channels: int) -> tuple:
    """The plain shape of a blocked one."""
    before = blocks_axis(len(shape))
    return (*shape[:before], *shape[before + 1 : -1], channels)


class BlockedLayer:
    """A mixin before one of Keras's layers, whose arguments and weights stay as they are.

    A subclass computes in `compute`, where `reads_blocked` and `writes_blocked` say which
    tensors are blocked; `self.plain` and `self.finish` reorder where it has no kernel for them.
    """

    def __init__(self, *args, blocked_channels=None, blocked_output=None, **kwargs):
        """Adds two arguments to those of Keras.

        Args:
          blocked_channels: C, if the input is blocked; with several inputs a list, None for
            those that are plain. By default the layer finds out when it is first called.
          blocked_output: whether the result is blocked. By default if the input is.

        Raises:
          ValueError: when it is called: an input that is not blocked as the layer was told, a
            blocked one of another type than float32, or a function that XLA compiles.
        """
        super().__init__(*args, **kwargs)
        self.set_blocked(blocked_channels, blocked_output)

    def set_blocked(self, blocked_channels=None, blocked_output=None):
        """What this class adds to a layer of Keras's."""
        self.supports_jit = False
        if isinstance(blocked_channels, (list, tuple)):
            blocked_channels = tuple(blocked_channels)
        self.blocked_channels = blocked_channels
        self.blocked_output = blocked_output
        self._is_settled = blocked_channels is not None
        self._channels = None  # of the result, if it is blocked
        if blocked_channels is not None:
            self.input_spec = None

    # What is blocked.

    @property
    def _sees_plain(self) -> bool:
        return any(layer is self for layer in _VIEWED_PLAIN.get())

    @property
    def reads_blocked(self) -> bool:
        """Whether the input, or one of them, is blocked."""
        return self.blocked_channels is not None and not self._sees_plain

    @property
    def writes_blocked(self) -> bool:
        """Whether the result is blocked."""
        if self._sees_plain:
            return False
        return self.reads_blocked if self.blocked_output is None else bool(self.blocked_output)

    @property
    def is_float32(self) -> bool:
        """Whether the weights are float32, so that our kernels may compute: also where a mixed
        policy asks for activations of lower precision, which kernels do not have yet."""
        policies = ("float32", "float16", "bfloat16")
        return self.variable_dtype == "float32" and self._policy_dtype in policies

    @property
    def computes_itself(self) -> bool:
        """Whether the layer computes with our ops even where all is plain."""
        return False

    @property
    def _policy_dtype(self) -> str:
        return super().compute_dtype

    @property
    def compute_dtype(self) -> str:
        """float32 where our kernels compute, also under a mixed policy."""
        ours = self.reads_blocked or self.writes_blocked or self.computes_itself
        return "float32" if ours and self.is_float32 else self._policy_dtype

    # The call.

    def __call__(self, *args, **kwargs):
        first = args[0] if args else next(iter(kwargs.values()), None)
        self._settle(first)
        outputs = super().__call__(*args, **kwargs)
        if self.writes_blocked:
            channels = self._channels
            if self._has_nothing_to_build:  # any number of them may come in a later call
                channels = self._result_channels(
                    self._plain_shapes(tree.map_structure(lambda x: tuple(x.shape), first))
                )
            mark(outputs, channels)
            note_readers(outputs, self)
        return outputs

    def _settle(self, inputs) -> None:
        """Finds out which inputs are blocked, once; checks it afterwards."""
        inputs = tree.flatten(inputs)
        marks = [channels_of(x) for x in inputs]
        if not self._is_settled and any(marks):
            self._require_float32()
            self.blocked_channels = tuple(marks) if self._takes_many else marks[0]
            self.input_spec = None
        self._is_settled = True
        if self.writes_blocked:
            self._require_float32()
        expected = self._channels_each(len(inputs))
        for i, (x, marked, c) in enumerate(zip(inputs, marks, expected, strict=True)):
            self._check_input(f"input {i}" if len(inputs) > 1 else "its input", x, marked, c)

    def _channels_each(self, count: int) -> list:
        """C of each of `count` inputs, None for those that are plain."""
        if isinstance(self.blocked_channels, tuple) and len(self.blocked_channels) == count:
            return list(self.blocked_channels)
        if isinstance(self.blocked_channels, tuple):
            raise ValueError(
                f'Layer "{self.name}" has {len(self.blocked_channels)} blocked_channels, '
                f"but got {count} inputs: give one for each"
            )
        return [self.blocked_channels] * count

    def _check_input(self, which: str, x, marked, expected) -> None:
        shape = tuple(getattr(x, "shape", ()))
        if marked == expected:
            return
        if expected is None:
            raise ValueError(
                f'Layer "{self.name}" reads plain tensors, but {which} is blocked (nChw16c of '
                f"{marked} channels): put bd.layers.FromBlocked() before it"
            )
        if marked is None and 4 <= len(shape) <= 6:
            axes = {blocks_axis(len(shape)): num_blocks(expected), -1: BLOCK}
            if all(shape[axis] in (None, size) for axis, size in axes.items()):
                return
        what, remedy = f"plain, of shape {shape}", "put bd.layers.ToBlocked() before it"
        if marked is not None:
            what = f"blocked of {marked} channels"
            remedy = f"give it blocked_channels={marked}"
        raise ValueError(
            f'Layer "{self.name}" reads blocked tensors of {expected} channels, but {which} is '
            f"{what}: {remedy}"
        )

    @property
    def _takes_many(self) -> bool:
        return False

    def _require_float32(self) -> None:
        if not self.is_float32:
            raise ValueError(
                f'Layer "{self.name}" of dtype {self.dtype_policy.name} cannot be blocked: kernels '
                "compute in float32; use dtype float32 or a mixed policy"
            )

    def refuse_xla(self) -> None:
        """Raises ValueError where XLA is tracing: it knows nothing of our ops."""
        if is_in_xla():
            raise ValueError(
                f'Layer "{self.name}" cannot run in a function with jit_compile=True: XLA does not '
                'have its ops; leave jit_compile at "auto" or False'
            )

    # Reorders.

    def plain(self, inputs):
        """The inputs, each reordered if it is blocked."""
        return self._reorder_each(inputs, lambda x, c: x if c is None else from_blocked(x, c))

    def blocked(self, inputs):
        """The inputs, each reordered if it is plain."""
        return self._reorder_each(inputs, lambda x, c: to_blocked(x) if c is None else x)

    def _reorder_each(self, inputs, reorder):
        flat = tree.flatten(inputs)
        flat = map(reorder, flat, self._channels_each(len(flat)))
        return tree.pack_sequence_as(inputs, list(flat))

    def finish(self, result, channels: "int | None" = None):
        """What the layer returns: `result` in the layout and type that it is to have.

        Args:
          channels: C of `result` if it is blocked, otherwise None.
        """
        if self.writes_blocked:
            return to_blocked(result) if channels is None else result
        result = result if channels is None else from_blocked(result, channels)
        return tf.cast(result, self._policy_dtype)

    def call(self, inputs, training=None):
        self.refuse_xla()
        if self.is_ours(inputs):
            return self.compute(inputs, training)
        return self.by_keras(inputs)

    def is_ours(self, inputs) -> bool:
        """Whether `compute` is for these inputs; others are Keras's."""
        return self.reads_blocked and getattr(self, "data_format", None) != "channels_first"

    def compute(self, inputs, training):
        """What the layer returns, by our ops."""
        raise NotImplementedError

    def by_keras(self, inputs, call=None, **kwargs):
        """Keras's own computation on plain tensors, with reorders around it."""
        call = call or super().call
        if not (self.reads_blocked or self.writes_blocked):
            return call(inputs, **kwargs)
        self.refuse_xla()
        plain = self.plain(inputs)
        with self._view_plain():
            result = call(plain, **kwargs)
        return self.finish(result)

    # Shapes.

    @contextlib.contextmanager
    def _view_plain(self):
        """Keras's methods see plain shapes inside, in this thread alone."""
        token = _VIEWED_PLAIN.set((*_VIEWED_PLAIN.get(), self))
        try:
            yield
        finally:
            _VIEWED_PLAIN.reset(token)

    def _plain_shapes(self, shapes):
        if not self.reads_blocked:
            return shapes
        if shapes and isinstance(shapes[0], (list, tuple)):
            each = zip(shapes, self._channels_each(len(shapes)), strict=True)
            return [s if c is None else plain_shape(s, c) for s, c in each]
        return plain_shape(shapes, self.blocked_channels)

    @property
    def _has_nothing_to_build(self) -> bool:
        """Whether Keras considers such a layer built as soon as it is constructed."""
        theirs = super().build.__func__ is keras.layers.Layer.build
        return theirs and type(self).build is BlockedLayer.build

    def _build_at_init(self):
        """Where Keras's layer calls it: Keras looks at `build`, which is ours."""
        if not self._has_nothing_to_build:
            return super()._build_at_init()
        self.built = True
        self._post_build()
        self._lock_state()

    def _result_channels(self, plain_shapes):
        with self._view_plain():
            return super().compute_output_shape(plain_shapes)[-1]

    def build(self, input_shape):
        shapes = self._plain_shapes(input_shape)
        with self._view_plain():
            super().build(shapes)
        if self.writes_blocked:
            self._channels = self._result_channels(shapes)
        if self.reads_blocked:
            self.input_spec = None

    def compute_output_shape(self, input_shape):
        shapes = self._plain_shapes(input_shape)
        with self._view_plain():
            shape = super().compute_output_shape(shapes)
        return blocked_shape(shape) if self.writes_blocked else shape

    def compute_output_spec(self, inputs, *args, **kwargs):
        if not (self.reads_blocked or self.writes_blocked or self.computes_itself):
            return super().compute_output_spec(inputs, *args, **kwargs)
        shapes = tree.map_structure(lambda x: tuple(x.shape), inputs)
        dtype = "float32" if self.writes_blocked else self._policy_dtype
        return keras.KerasTensor(self.compute_output_shape(shapes), dtype=dtype)

    def get_config(self):
        config = super().get_config()
        if self.blocked_channels is not None:
            channels = self.blocked_channels
            config["blocked_channels"] = [*channels] if isinstance(channels, tuple) else channels
        if self.blocked_output is not None:
            config["blocked_output"] = self.blocked_output
        return config
