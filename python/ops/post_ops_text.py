"""Reads the text form of a post-op chain: the op attribute that cc/core/post_ops parses.

    chain    = [ entry { ";" entry } ]
    entry    = "eltwise(" name { "," ("alpha" | "beta" | "scale") "=" number } ")"
             | "sum(" [ operand ] [ "," ] [ "scale" "=" number ] ")"
             | "binary(" name "," shape "," operand ")"
    operand  = "#" digits [ "@" digits ]
    number   = [ "-" ] decimal, finite in float32

Spaces around any of these are skipped.
"""

import math
import re

import numpy as np

from .post_op_entry import (
    ALIASES,
    BINARY,
    ELTWISE,
    SHAPES,
    Entry,
    binary_entry,
    eltwise_entry,
    not_finite,
    sum_entry,
    taken,
)

_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def split(text: str, separator: str) -> list[str]:
    return [part.strip(" ") for part in text.split(separator)]


def parse_entry(text: str) -> Entry:
    """The entry that `text` spells; ValueError says what is wrong."""
    opening, closing = text.find("("), text.find(")")
    if opening < 0 or closing < opening:
        raise ValueError("an entry is eltwise(...), sum(...) or binary(...)")
    if closing + 1 != len(text):
        raise ValueError(f'text after the entry: "{text[closing + 1 :]}"; join entries with ;')
    kind, args = text[:opening].strip(" "), split(text[opening + 1 : closing], ",")
    if kind not in _PARSERS:
        raise ValueError(f'unknown kind "{kind}"; known are eltwise, sum, binary')
    return _PARSERS[kind](args)


def _parse_eltwise(args: list[str]) -> Entry:
    name = ALIASES.get(args[0], args[0])
    if name not in ELTWISE:
        return eltwise_entry(args[0])  # raises
    return eltwise_entry(name, **_parse_numbers(args[1:], name, taken(name)))


def _parse_sum(args: list[str]) -> Entry:
    if args == [""]:
        return sum_entry()
    operand = args.pop(0) if args[0].startswith("#") else None
    sum_entry(operand=operand)  # complains of the operand before the numbers
    return sum_entry(operand=operand, **_parse_numbers(args, "sum", "scale=..."))


def _parse_binary(args: list[str]) -> Entry:
    if args[0] not in BINARY:
        return binary_entry(args[0], "#0")  # raises
    if len(args) != 3:
        raise ValueError("binary takes three arguments, as in binary(add,channel,#0)")
    alg, shape, operand = args
    if shape not in SHAPES:
        return binary_entry(alg, "#0", shape)  # raises
    return binary_entry(alg, operand, shape)


_PARSERS = {"eltwise": _parse_eltwise, "sum": _parse_sum, "binary": _parse_binary}


def _parse_numbers(args: list[str], owner: str, taken: str) -> dict[str, float]:
    keys = re.findall(r"(\w+)=", taken)
    numbers = {}
    for arg in args:
        key, equals, text = (part.strip(" ") for part in arg.partition("="))
        if not equals or key not in keys or key in numbers:
            raise ValueError(f'{owner} does not take "{arg}"; it takes each of {taken} once')
        numbers[key] = _parse_number(key, text)
    return numbers


def _parse_number(key: str, text: str) -> float:
    if _NUMBER.fullmatch(text):
        with np.errstate(over="ignore"):
            number = float(np.float32(float(text)))
        underflow = number == 0.0 and re.search("[1-9]", re.split("[eE]", text)[0])
        if math.isfinite(number) and not underflow:
            return number
    raise not_finite(key, text)
