"""docs/support.md says what the registrations and the patterns say."""

import importlib.util
import pathlib

import pytest

MAKER = pathlib.Path(__file__).resolve().parents[3] / "docs" / "make_support.py"
spec = importlib.util.spec_from_file_location("make_support", MAKER)
make_support = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_support)


def test_the_page_is_up_to_date():
    assert make_support.PAGE.read_text() == make_support.page(), "docs/support.md: `make docs`"


@pytest.mark.parametrize(
    "name, facts",
    [
        ("BlockdnnConv", "| nhwc 4, nChw16c 5 | float32, bfloat16, uint8 |"),
        ("BlockdnnRnn", "| 3 | float32 |"),
        ("BlockdnnSoftmax", "| 1 to 6 | float32 |"),
    ],
)
def test_ranks_and_types_are_those_that_run(name, facts):
    assert facts in make_support.row(name)


def test_an_op_without_a_gradient_trains_not():
    assert make_support.row("BlockdnnThreads").endswith("| no |\n")
