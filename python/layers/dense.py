"""keras.layers.Dense on the inner product."""

import keras
import tensorflow as tf

from ..ops.products.inner_product import inner_product
from .activation import chain_of, fuses
from .blocked_layer import BlockedLayer
from .classes import register


@register
class Dense(BlockedLayer, keras.layers.Dense):
    """keras.layers.Dense on our inner product, with bias and activation in it.

    Blocked, it multiplies the channels, the last axis of the plain tensor.

    Example:
      >>> bd.layers.Dense(5)(tf.ones((4, 20))).shape
      TensorShape([4, 5])
    """

    @property
    def computes_itself(self) -> bool:
        """Plain and under a mixed policy not: Keras's compute_dtype has low precision."""
        blocked = self.reads_blocked or self.writes_blocked
        mixed = self._policy_dtype != "float32" and not blocked
        return self.is_float32 and not mixed and self.quantization_mode is None

    def quantize(self, mode=None, type_check=True, *config, **options):
        """As Keras's own layer, which refuses classes derived from it, of which this is one."""
        super().quantize(mode, type_check and type(self) is not Dense, *config, **options)

    def quantized_call(self, inputs, training=None):
        return self.by_keras(inputs, super().quantized_call, training=training)

    def _int8_call(self, inputs, training=None):
        """One op quantizes rows and multiplies by int8; a gradient takes both as floats."""
        usual = type(self.inputs_quantizer) is keras.quantizers.AbsMaxQuantizer
        if training or self.lora_enabled or not usual or inputs.dtype != tf.float32:
            return super()._int8_call(inputs, training=training)
        self.refuse_xla()
        kernel, scales = (tf.convert_to_tensor(w) for w in (self._kernel, self.kernel_scale))

        @tf.custom_gradient
        def product(x):
            y = inner_product(x, kernel, weight_scales=1.0 / scales, quantize_rows=True)
            floats = tf.cast(kernel, tf.float32) / scales
            return y, lambda dy: tf.matmul(dy, floats, transpose_b=True)

        y = product(inputs)
        y = y if self.bias is None else y + self.bias
        return y if self.activation is None else self.activation(y)

    def call(self, inputs, training=None):
        # Keras's __call__ leaves integers as they are, and a wrapper calls this with any type.
        fits = not isinstance(inputs, tf.SparseTensor) and inputs.dtype == tf.float32
        if not self.computes_itself or self.lora_enabled or not fits:
            return self.by_keras(inputs, training=training)
        self.refuse_xla()
        kernel, chain = tf.convert_to_tensor(self.kernel), chain_of(self, training)
        y = inner_product(self.plain(inputs), kernel, post_ops=chain)
        return self.finish(y if fuses(self.activation, training) else self.activation(y))
