"""A convolution without post-ops, as its gradients see it."""

from dataclasses import dataclass

import tensorflow as tf

from ...ops.conv.conv import conv


@dataclass(frozen=True)
class ConvGeometry:
    """What a convolution is, apart from its tensors.

    Attributes:
      weights_shape: [kh, kw, channels / groups, output channels].
      padding: "SAME", "VALID" or [[top, bottom], [left, right]].
      algorithm: of the convolution, and of the convolutions that compute its gradients.
    """

    weights_shape: tuple[int, ...]
    groups: int
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: "str | list"
    src_layout: str
    dst_layout: str
    algorithm: str = "auto"

    @classmethod
    def of(cls, called) -> "ConvGeometry":
        """That of a convolution or of its gradient by the weights."""
        return cls(
            weights_shape=tuple(called.weights_shape),
            groups=called.groups,
            strides=tuple(called.strides),
            dilations=tuple(called.dilations),
            padding=called.padding_argument,
            src_layout=called.src_layout,
            dst_layout=called.dst_layout,
            algorithm=called.algorithm,
        )

    @property
    def channels(self) -> int:
        return self.weights_shape[2] * self.groups

    @property
    def out_channels(self) -> int:
        return self.weights_shape[3]

    def reach(self, axis: int) -> int:
        """Pixels from the first tap of a window to its last one, along height (0) or width (1)."""
        return (self.weights_shape[axis] - 1) * self.dilations[axis]

    def paddings(self, size, out, axis: int) -> tuple:
        """Pixels of padding before and after an axis of `size` pixels and `out` results.

        With VALID padding, what a stride leaves over is negative padding after.
        """
        if self.padding == "SAME" and self.strides[axis] == 1:
            need = self.reach(axis)
        else:
            need = (out - 1) * self.strides[axis] + self.reach(axis) + 1 - size
        if self.padding == "VALID":
            return 0, need
        if self.padding == "SAME":
            need = max(need, 0) if isinstance(need, int) else tf.maximum(need, 0)
            return need // 2, need - need // 2
        return tuple(self.padding[axis])

    def forward(self, src, weights, scratchpad_mode: str = "user"):
        """The convolution itself."""
        return conv(
            src,
            weights,
            strides=list(self.strides),
            padding=self.padding,
            dilations=list(self.dilations),
            groups=self.groups,
            src_layout=self.src_layout,
            dst_layout=self.dst_layout,
            how=f"{self.algorithm} {scratchpad_mode}",
        )
