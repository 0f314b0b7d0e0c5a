"""Gradients of the ops; importing this registers them.

Each is made of ops that have gradients themselves, so that second derivatives exist where
TensorFlow has them.
"""

from . import batch_norm, movement, pixels, planes, products, region
from .conv import conv, conv_depthwise, conv_transpose, conv_volume
