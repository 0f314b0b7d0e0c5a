"""docs/api*.md are what the docstrings say, list every public name, and their examples run."""

import contextlib
import doctest
import importlib.util
import inspect
import io
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

MAKER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "make_api.py"
spec = importlib.util.spec_from_file_location("make_api", MAKER)
make_api = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_api)

NAMES = {written: thing for _, written, thing in make_api.described()}


@pytest.mark.parametrize("name", make_api.PAGES)
def test_the_page_is_up_to_date(name):
    written = (make_api.DOCS / name).read_text()
    assert written == make_api.page(name), f"docs/{name} is out of date: `make docs`"
    assert len(written.split()) < 6000


def test_a_class_is_written_as_its_own_init():
    """Python 3.11.2 would describe Keras's layers by `__new__`, 3.11.7 by `__init__`."""

    class Base:
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls)

    class Layer(Base):
        def __init__(self, units, *, bias=True):
            pass

    assert make_api.signature(Layer, "Layer") == "Layer(units, *, bias=True)"


def test_every_name_has_a_sentence_an_example_and_the_sections_that_apply():
    assert make_api.faults() == []


def test_sections_that_apply_are_missed():
    def example(a, *rest, b=1) -> int:
        """Does something.

        Args:
          a: one number.

        Example:
          >>> 1
          1
        """

    lacking = ['"b" in its section "Args:"', 'section "Returns:"', 'section "Raises:"']
    assert make_api.missing(example) == lacking
    example.__doc__ = example.__doc__.replace("a: one", "a, b: a")
    assert make_api.missing(example) == lacking[1:]
    example.__annotations__["return"] = None
    assert make_api.missing(example) == lacking[2:]


def test_a_class_says_what_its_methods_raise():
    class Example:
        """Does something.

        Example:
          >>> 1
          1
        """

        def check(self):
            raise ValueError

    assert make_api.missing(Example) == []  # a class of others
    Example.__module__ = "tf_blockdnn.example"
    assert make_api.missing(Example) == ['section "Raises:"']
    derived = type("Derived", (Example,), {"__doc__": Example.__doc__})
    assert make_api.missing(derived) == ['section "Raises:"']
    derived.__doc__ = inspect.getdoc(derived) + "\n\nRaises:\n  ValueError: always.\n"
    assert make_api.missing(derived) == []


def test_layers_say_what_their_bases_add_to_those_of_keras():
    args = make_api.section(bd.layers.Conv2D, "Args").replace("\n  ", " ")
    names = [line.partition(":")[0] for line in args.splitlines()]
    assert names == ["algorithm", "blocked_channels", "blocked_output", "Others"]
    assert make_api.section(bd.layers.FromBlocked, "Args") == "blocked_channels: C."


def test_every_public_name_is_described():
    described = list(NAMES.values())
    for module in make_api.modules().values():
        for name in make_api.public(module):
            assert any(getattr(module, name) is thing for thing in described), name


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"bd": bd, "keras": keras, "np": np, "tf": tf}
    for example in doctest.DocTestParser().get_examples(
        make_api.section(NAMES[name], "Example") + "\n"
    ):
        printed = io.StringIO()
        # Not doctest's own runner: AutoGraph stumbles over the sources that it makes up.
        with contextlib.redirect_stdout(printed):
            exec(compile(example.source, name, "single"), names)
        assert printed.getvalue() == example.want


def test_what_the_page_takes_from_a_docstring():
    def example(a, *rest, b=1, **others):
        """Does
        something.

        More about it.

        Example:
          >>> 1 + 1
          2

        Source: nobody.
        """

    assert make_api.first_line(example) == "Does something."
    assert make_api.description(example) == "More about it."
    assert make_api.section(example, "Example") == ">>> 1 + 1\n2"
    assert make_api.signature(example, "x") == "x(a, *rest, b=1, **others)"
    assert make_api.section(example, "Args") == ""


def test_arguments_are_explained_and_layers_are_one_table():
    page = make_api.page("api.md")
    optimize = page.partition("### `bd.optimize`")[2].partition("\n### ")[0]
    for argument in ("input_signature", "calibration", "example", "ValueError"):
        assert f"\n- `{argument}`: " in optimize, argument
    assert "\nInputs, outputs, names, dtypes and dynamic sizes stay." in optimize
    assert "| `bd.layers.Conv2D` | keras.layers.Conv2D on our kernels" in page
    assert "### `bd.layers.convert`" in page and "### `bd.layers.Conv2D`" not in page


def test_what_ops_share_is_said_once():
    page = make_api.page("api-ops.md")
    said = make_api.ARGUMENTS["src_part"].split(". ")[1]
    assert " ".join(page.split()).count(said) == 1 and page.count("do not fit each other") == 1
    conv = page.partition("### `bd.ops.conv`")[2].partition("\n### ")[0]
    assert "\n- `groups`: " in conv and "\n- `into`: " not in conv
    assert "\n- `into`: " in page.partition("## Convolution")[0]


def test_pages_that_docstrings_name_are_links():
    text = '(docs/versions.md), and (docs/algorithms.md,\n  "The same bits")'
    links = "([Versions](versions.md)), and ([The same bits](algorithms.md#the-same-bits))"
    assert make_api.linked(text) == links


def test_a_section_without_names_is_text():
    assert make_api._items("A tensor\nof two: parts.") == "A tensor of two: parts."
    assert (
        make_api._items("a, b: one\n  or two\n*args: rest")
        == "- `a`, `b`: one or two\n- `*args`: rest"
    )
