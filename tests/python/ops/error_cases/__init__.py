"""What ops refuse: pairs of the words of a message and a call that it refuses."""

from . import conv, movement, pixels, planes, post_ops, products

OF_KERNELS = [*conv.OF_KERNELS.items(), *planes.OF_KERNELS.items()]
CASES = [
    case
    for one in (conv, movement, pixels, planes, post_ops, products)
    for case in one.CASES.items()
]
