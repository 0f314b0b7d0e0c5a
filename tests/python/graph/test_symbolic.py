"""Sizes as expressions: equal where they must be, different where they may be."""

from hypothesis import given
from hypothesis import strategies as st

from tf_blockdnn.python.graph.symbolic import Expr, estimate, floordiv, mod, unknown, window

_H = unknown("dim", "x", 1)
_W = unknown("dim", "x", 2)


def test_linear_terms_cancel_to_plain_numbers():
    assert (_H + 3) - _H == 3
    assert isinstance((_H + 3) - _H, int)
    assert _H * 2 - _H == _H
    assert 5 - (5 - _H) == _H
    assert _H * 0 == 0


def test_different_unknowns_are_never_equal():
    assert _H != _W
    assert _H + 1 != _H
    assert isinstance(_H - _W, Expr)


def test_order_of_terms_does_not_matter():
    assert _H + _W == _W + _H
    assert hash(_H + _W) == hash(_W + _H)


def test_a_window_of_one_with_a_stride_is_the_same_on_any_padding():
    assert window(_H, 1, 2, "SAME", 0, 0) == window(_H, 1, 2, "VALID", 0, 0)


def test_same_padding_of_stride_one_keeps_the_size():
    assert window(_H, 3, 1, "SAME", 0, 0) == _H
    assert window(_H, 3, 1, "EXPLICIT", 1, 1) == _H


def test_halving_twice_on_two_ways_agrees():
    once = window(window(_H, 3, 2, "SAME", 0, 0), 1, 1, "VALID", 0, 0)
    other = window(_H, 1, 2, "VALID", 0, 0)
    assert once == other


@given(st.integers(8, 40), st.integers(1, 5), st.integers(1, 3), st.sampled_from(["SAME", "VALID"]))
def test_windows_of_numbers_follow_tensorflow(size, kernel, stride, padding):
    expected = -(-size // stride) if padding == "SAME" else -(-(size - kernel + 1) // stride)
    assert window(size, kernel, stride, padding, 0, 0) == expected


@given(st.integers(0, 100), st.integers(1, 7))
def test_division_and_remainder_of_numbers(size, divisor):
    assert floordiv(size, divisor) * divisor + mod(size, divisor) == size


def test_multiples_leave_a_division():
    assert floordiv(_H * 64, 64) == _H
    assert mod(_H * 64, 64) == 0
    assert floordiv(_H * 64 + 3, 64) == _H
    assert mod(_H * 64 + 67, 64) == 3
    assert floordiv(_H * 3 + _W + 5, 2) == _H + 2 + floordiv(_H + _W + 1, 2)
    assert mod(_H * 3, 2) == mod(_H, 2)
    assert isinstance(floordiv(_H + 1, 2), Expr)


@given(
    st.integers(-9, 9),
    st.integers(-9, 9),
    st.integers(-20, 20),
    st.integers(1, 7),
    st.integers(0, 30),
)
def test_division_of_terms_is_that_of_numbers(a, b, constant, divisor, n):
    size = _H * a + _W * b + constant
    number = a * n + b * n + constant
    assert estimate(floordiv(size, divisor), n) == number // divisor
    assert estimate(mod(size, divisor), n) == number % divisor
