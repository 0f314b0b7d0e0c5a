"""Recurrent layers over whole sequences, on weights that are packed once."""

import typing

import tensorflow as tf

from ...native import c_library
from ..arguments import refuse_references
from ..call import OpCall, function_of
from ..record import Record


class Rnn(Record, title="recurrent layer"):
    """Made of loops (passes/canonical/replace_loops.py), with the weights where they are."""


class RnnResult(typing.NamedTuple):
    """What `rnn` returns.

    Attributes:
      dst: float32, [batch, steps, units] with return_sequences ([steps, batch, units] with
        time_major), else [batch, units]: the output of the last step of the computation.
      states: after all steps, [batch, units] each: (h,), or (h, c) of an LSTM.
    """

    dst: tf.Tensor
    states: tuple[tf.Tensor, ...]


@function_of(
    Rnn,
    "activation recurrent_activation go_backwards restore_order return_sequences "
    "zero_output_for_mask time_major training",
)
def rnn(
    src,
    kernel,
    recurrent_kernel,
    bias=None,
    *,
    cell: str,
    reset_after: bool = True,
    initial_state=(),
    mask=None,
    lengths=None,
    weight_scales=None,
) -> RnnResult:
    """A vanilla, LSTM or GRU layer over a whole sequence.

    The weights are packed at first use, and again when they have changed. All
    steps run as one op. Weights, gates and masks are as in Keras.

    Args:
      src: float32, [batch, steps, inputs]. After no steps the states are those before the first,
        and the last output is zero.
      kernel: float32, [inputs, gates * units]. Gates of "lstm" are i, f, c, o, of "gru" z, r, h;
        "vanilla" has one. Or bfloat16 or int8, for inference: they stay so in memory,
        and arithmetic is that of float32.
      recurrent_kernel: of the same type, [units, gates * units].
      bias: float32, [gates * units], or [2, gates * units]: for a GRU with reset_after by src and
        by the state, otherwise (as cuDNN has it) the sum of both rows counts. None: zero.
      cell: "vanilla", "lstm" or "gru".
      activation: "tanh", "relu", "sigmoid" or "linear".
      recurrent_activation: of the gates: "sigmoid", "hard_sigmoid" (relu6(x + 3) / 6), "tanh",
        "relu" or "linear".
      reset_after: whether a GRU's reset gate comes after the product with recurrent_kernel.
      initial_state: float32, [batch, units] each: (h,), or (h, c) of an LSTM; (): zero.
      mask: bool, [batch, steps]; a step that is False leaves the state as it is, and repeats the
        output of the step before, which is zero in the beginning.
      lengths: int32, [batch]; steps from there on are masked.
      go_backwards: from the last step to the first; dst is in the order of the computation.
      restore_order: with go_backwards: dst is in the order of src.
      return_sequences: the output of every step, not of the last only.
      zero_output_for_mask: outputs of masked steps are zero.
      time_major: src and dst are [steps, batch, ..], and mask [steps, batch].
      training: keeps what the gradient needs, and packs weights that change in each call.
        Gradients are right without it, but then run the layer twice.
      how: words in any order. "direct" never uses FIP (docs/algorithms.md, "FIP"), by which the
        default, "auto", multiplies several rows on a CPU that gains from it. Gradients have the
        same. "constant": both kernels never change, so that the op may keep their packed form
        without looking at them again. "rounded", with kernels of bfloat16, for CPUs with
        AVX512-BF16: rows of src, and states of several rows, become bfloat16 where they are
        multiplied. Sums stay float32. Without it, and on other CPUs, these keep the digits of
        float32.
      weight_scales: with kernels of int8: (of kernel, of recurrent_kernel), float32,
        [gates * units] each; column j stands for scales[j] times its integers.

    Returns:
      `RnnResult`.

    Gradients: of everything but mask and lengths; second derivatives go through TensorFlow's ops,
    step by step. Layers with bfloat16 or int8 weights have none.

    Source: keras.layers.LSTM, GRU and SimpleRNN; "Intel MKL Packed on PaddlePaddle".

    Example:
      >>> w, u, b = (tf.random.normal(shape) for shape in ([8, 64], [16, 64], [64]))
      >>> y, (h, c) = bd.ops.rnn(tf.ones([2, 5, 8]), w, u, b, cell="lstm")
      >>> print(y.shape, h.shape, c.shape)
      (2, 16) (2, 16) (2, 16)
    """
    refuse_references("kernel", kernel)
    refuse_references("recurrent_kernel", recurrent_kernel)
    kernel, recurrent_kernel = map(tf.convert_to_tensor, (kernel, recurrent_kernel))
    if bias is not None and not (cell == "gru" and reset_after):
        bias = tf.convert_to_tensor(bias)
        bias = tf.reduce_sum(bias, 0) if bias.shape.rank == 2 and bias.shape[0] == 2 else bias
    if weight_scales and len(weight_scales) != 2:
        raise ValueError("weight_scales must be two, of kernel and of recurrent_kernel")
    biases, masks, lengths = ([] if x is None else [x] for x in (bias, mask, lengths))
    lists = biases, list(initial_state), masks, lengths, list(weight_scales or ())

    def then(results):
        dst, state, cell_state, _ = results
        return RnnResult(dst, (state, cell_state) if cell == "lstm" else (state,))

    return OpCall((src, kernel, recurrent_kernel, *lists), then=then)


def pack_count() -> int:
    """How often weights have been packed since the library was loaded, for tests.

    One packing of a recurrent layer's two matrices counts once.
    """
    return c_library().BlockdnnPackCount()
