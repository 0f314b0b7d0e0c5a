"""What ops refuse: `CASES`, what is wrong -> (a call that does it, the words of its message)."""

from . import conv, movement, planes, post_ops, products

CASES = {
    **conv.CASES,
    **movement.CASES,
    **planes.CASES,
    **post_ops.CASES,
    **products.CASES,
}
