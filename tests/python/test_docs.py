"""The Python examples of each page in docs/ run as they stand, top to bottom.

They run in a folder of their own, which has a SavedModel named "model". A page that says with
`# -> ...` what its examples print says so for all of it, in order; a comment of that form alone on
its line goes on with the one above. The page of the API has a test of its own.
"""

import pathlib
import re

import pytest
from saved_models import save_tiny

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def python_blocks(page: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def promised(code: str) -> str:
    """What the comments say is printed, without white space."""
    return re.sub(r"\s", "", "".join(re.findall(r"# ->(.*)", code)))


PAGES = [
    page.name
    for page in sorted(DOCS.glob("*.md"))
    if not page.name.startswith("api") and python_blocks(page)
]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A folder with the SavedModel "model"."""
    folder = tmp_path_factory.mktemp("docs")
    save_tiny(folder / "model")
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_examples_run(name, tiny, tmp_path, monkeypatch, capsys):
    (tmp_path / "model").symlink_to(tiny / "model")
    monkeypatch.chdir(tmp_path)
    code = "\n".join(python_blocks(DOCS / name))
    exec(compile(code, name, "exec"), {"__name__": "__main__"})
    if promised(code):
        assert re.sub(r"\s", "", capsys.readouterr().out) == promised(code)


def test_what_a_page_promises():
    assert promised("print(1)  # -> 1\nprint((2, 3))\n# -> (2,\n# -> 3)\n") == "1(2,3)"


def links() -> list[tuple[str, str]]:
    """(page, target) of every link inside the repository."""
    pages = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]
    return [
        (page.relative_to(ROOT).as_posix(), target)
        for page in pages
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
        if not re.match(r"[a-z]+:", target)
    ]


def anchors(page: pathlib.Path) -> set[str]:
    """The fragments of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page, target", links())
def test_links_lead_somewhere(page, target):
    path, _, fragment = target.partition("#")
    place = (ROOT / page).parent / path if path else ROOT / page
    assert place.exists()
    assert not fragment or fragment in anchors(place)


_FOLDERS = "python|cc|tests|docs|benchmarks|build_tools|tf_blockdnn|third_party"
_IN_AN_EXAMPLE = {"cc/core/conv/wavefront"}  # which nobody has written


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))], ids=str)
def test_files_and_commands_that_a_page_names_exist(page):
    text = page.read_text()
    names = set(re.findall(rf"`((?:{_FOLDERS})/[\w./-]+)`", text)) - _IN_AN_EXAMPLE
    assert [name for name in names if not (ROOT / name).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^ {4})make ([a-z-]+)", text, re.MULTILINE)) <= targets
