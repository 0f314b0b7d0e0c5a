"""Keras layers on blocked tensors, and recurrent ones on packed weights."""

from .activation import ELU, Activation, LeakyReLU, PReLU, ReLU
from .attention import GroupedQueryAttention, GroupQueryAttention, MultiHeadAttention
from .convert import Conversion, convert
from .convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    DepthwiseConv1D,
    DepthwiseConv2D,
    SeparableConv1D,
    SeparableConv2D,
)
from .dense import Dense
from .merging import Add, Concatenate, Multiply
from .normalization import BatchNormalization, LayerNormalization, RMSNormalization
from .pooling import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    GlobalMaxPooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)
from .recurrent import GRU, LSTM, RNN, SimpleRNN
from .reshaping import ChannelShuffle, FromBlocked, ToBlocked, UpSampling2D, ZeroPadding2D

# All that is imported here.
__all__ = [name for name in dir() if callable(globals()[name])]
