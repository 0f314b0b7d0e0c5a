"""Integer expressions over unknown sizes: enough algebra to prove shapes equal.

A size is an `int` or an `Expr`, a linear combination of atoms with an integer
constant. An atom is hashable: a fresh unknown such as ("dim", tensor, axis), or
("floordiv", size, d), ("mod", size, d), ("exact", size, d). Equal expressions compare equal, so

    SAME, stride s:      (size - 1) // s + 1
    VALID, kernel k:     (size - k) // s + 1

give one and the same Expr for a 1x1 convolution of stride 2 on either padding. Multiples of a
divisor leave a division, so that 64 n windows of n pictures are n again.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass


@dataclass(slots=True, unsafe_hash=True, repr=False)
class Expr:
    """constant + sum of coefficient * atom; nobody changes one, and none is a plain constant."""

    constant: int
    terms: frozenset[tuple[Hashable, int]]

    def __repr__(self) -> str:
        parts = [f"{c}*{atom}" for atom, c in sorted(self.terms, key=repr)]
        return " + ".join(parts + ([str(self.constant)] if self.constant else []))

    def __add__(self, other: "Size") -> "Size":
        return _combine(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: "Size") -> "Size":
        return _combine(self, other, -1)

    def __rsub__(self, other: int) -> "Size":
        return _combine(other, self, -1)

    def ratio(self, other: "Expr") -> int:
        """By what `other` is multiplied to give this; 0 where that is no whole number."""
        (atom, c), *_ = other.terms
        times = dict(self.terms).get(atom, 0) // c
        return times if times > 0 and other * times == self else 0

    def __mul__(self, factor: int) -> "Size":
        if factor == 0:
            return 0
        whole = Expr(self.constant * factor, frozenset((a, c * factor) for a, c in self.terms))
        for atom, c in whole.terms:  # d * ("exact", size, d) = size
            if atom[0] == "exact" and c % atom[2] == 0:
                rest = _combine(whole, Expr(0, frozenset([(atom, c)])), -1)
                whole = rest + atom[1] * (c // atom[2])
        return whole

    __rmul__ = __mul__


Size = int | Expr


def unknown(*key: Hashable) -> Expr:
    """A size of which nothing is known but that it equals itself."""
    return Expr(0, frozenset([(key, 1)]))


def times(a: Size, b: Size) -> Size:
    """A product; of two open sizes no more is known than that it equals itself."""
    is_open = isinstance(a, Expr) and isinstance(b, Expr)
    return unknown("times", a, b) if is_open else a * b


def floordiv(size: Size, divisor: int) -> Size:
    multiple, rest = _divide(size, divisor)
    return multiple if isinstance(rest, int) else multiple + unknown("floordiv", rest, divisor)


def mod(size: Size, divisor: int) -> Size:
    rest = _divide(size, divisor)[1]
    return rest if isinstance(rest, int) else unknown("mod", rest, divisor)


def _divide(size: Size, divisor: int) -> tuple[Size, Size]:
    """(a, r): size = a * divisor + r, r with constant and coefficients from 0 to divisor - 1.

    Where r is a number, a is the quotient: 64 n // 64 = n.
    """
    if isinstance(size, int):
        return divmod(size, divisor)
    parts = [(atom, divmod(c, divisor)) for atom, c in size.terms]
    constants = divmod(size.constant, divisor)
    return tuple(
        _size(constants[i], frozenset((atom, part[i]) for atom, part in parts if part[i]))
        for i in (0, 1)
    )


def exact_division(size: Size, divisor: int) -> Size:
    """size / divisor of what is known to be a multiple of it."""
    if isinstance(size, int):
        return size // divisor
    if size.constant % divisor == 0 and all(c % divisor == 0 for _, c in size.terms):
        return Expr(size.constant // divisor, frozenset((a, c // divisor) for a, c in size.terms))
    return unknown("exact", size, divisor)


def is_count(size: Size) -> bool:
    """Whether it is never negative, as all atoms are: a division's rest is made of them."""
    if isinstance(size, int):
        return size >= 0
    return size.constant >= 0 and all(c > 0 for _, c in size.terms)


def evaluate(size: Size, number: Callable[[Hashable], int]) -> int:
    """The size when each unknown is the number that `number` gives for the atom."""
    if isinstance(size, int):
        return size
    return size.constant + sum(c * _evaluate_atom(atom, number) for atom, c in size.terms)


def _evaluate_atom(atom, number: Callable[[Hashable], int]) -> int:
    if atom[0] in ("floordiv", "exact"):
        return evaluate(atom[1], number) // atom[2]
    if atom[0] == "times":
        return evaluate(atom[1], number) * evaluate(atom[2], number)
    if atom[0] == "mod":
        return evaluate(atom[1], number) % atom[2]
    return number(atom)


def estimate(size: Size, nominal: int) -> int:
    """The size when every unknown of the input is `nominal`."""
    return evaluate(size, lambda _: nominal)


def window(size: Size, kernel: int, stride: int, padding: str, before: int, after: int) -> Size:
    """Output size of a window of (dilated) length `kernel` along one axis."""
    slack = -1 if padding == "SAME" else before + after - kernel
    return floordiv(size + slack, stride) + 1


def _combine(a: Size, b: Size, sign: int) -> Size:
    if isinstance(b, int):
        return Expr(a.constant + sign * b, a.terms)
    terms = {} if isinstance(a, int) else dict(a.terms)
    for atom, c in b.terms:
        terms[atom] = terms.get(atom, 0) + sign * c
    constant = (a if isinstance(a, int) else a.constant) + sign * b.constant
    return _size(constant, frozenset((atom, c) for atom, c in terms.items() if c))


def _size(constant: int, terms: frozenset[tuple[Hashable, int]]) -> Size:
    return Expr(constant, terms) if terms else constant
