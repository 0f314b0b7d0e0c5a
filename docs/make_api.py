"""Writes docs/api*.md from docstrings: `python docs/make_api.py [--check]`.

A public name is one in the `__all__` of a module in MODULES. Its docstring begins with one line
that says what it is for. Its section "Example:" is a session of the Python prompt, in which `bd`,
`np`, `tf` and `keras` are imported; `tests/python/test_api_page.py` runs these sessions.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pathlib
import re
import sys
import textwrap
import types
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # The checkout first.

from tf_blockdnn.python.ops.arguments import ARGUMENTS, RAISES  # noqa: E402

DOCS = pathlib.Path(__file__).parent
WIDTH = 96
# Module -> how its names are written. The first that has an object describes it.
MODULES = {
    "tf_blockdnn": "bd",
    "tf_blockdnn.ops": "bd.ops",
    "tf_blockdnn.layers": "bd.layers",
    "tf_blockdnn.rewriter": "bd.rewriter",
    "tf_blockdnn.callbacks": "bd.callbacks",
}
PRELUDE = "import keras\nimport numpy as np\nimport tensorflow as tf\nimport tf_blockdnn as bd\n"


class Category(NamedTuple):
    """A section of a page: its title, what it begins with, and the names in it without `bd.`."""

    title: str
    line: str
    names: str


class Page(NamedTuple):
    """A page: what it begins with, and its sections."""

    introduction: str
    categories: tuple[Category, ...]


PAGES = {
    "api.md": Page(
        """# API

Every public name: its signature, arguments, results, errors and an example. `make docs` writes
this page from the docstrings, which `help` shows, too. [Ops](api-ops.md) and
[tensors](api-tensors.md) have pages of their own. The examples start from

```python
{prelude}```
""",
        (
            Category(
                "Optimise",
                "From a model, a function or a file to a faster one.",
                "optimize Options optimize_saved_model load callbacks.Optimized",
            ),
            Category(
                "Programs as they are",
                "What makes a program's own functions faster\n([guide](programs.md)).",
                "enable disable enabled report ProgramReport",
            ),
            Category(
                "Results",
                "What `bd.optimize` returns, and what it reports.",
                "rewriter.OptimizedModel rewriter.OptimizedFunction rewriter.Report "
                "rewriter.VerificationError rewriter.optimize_concrete",
            ),
            Category(
                "Layers",
                "Keras layers on blocked tensors, which can be trained ([guide](layers.md)). A\n"
                "layer has the arguments and weights of Keras's layer of its name; all but the\n"
                "recurrent ones also take `blocked_channels` and `blocked_output`, which say\n"
                "whether tensors are blocked. `help(bd.layers.Conv2D)` has an example of each.",
                "layers.convert layers.Conversion",
            ),
            Category("The machine", "Versions, CPU and threads.", "info set_threads"),
        ),
    ),
    "api-ops.md": Page(
        """# API: ops

Each function makes one op, eagerly or in a graph, on blocked or plain tensors
([Memory formats](memory-formats.md)). `bd.optimize` makes these ops for you. `make docs` writes
this page from the docstrings; the examples start from

```python
{prelude}```

## Shared arguments

These mean the same wherever an op takes them; entries do not repeat them.

{shared}

Every function raises `ValueError` where an argument is malformed or shapes do not fit each other
while a graph is built, and `InvalidArgumentError` where they do not fit when it runs.
""",
        (
            Category(
                "Convolution",
                "([How they compute](algorithms.md).)",
                "ops.conv ops.conv_depthwise ops.conv_transpose ops.conv_volume",
            ),
            Category(
                "Products",
                "Dense layers, attention and recurrent layers.",
                "ops.packed_matmul ops.inner_product ops.attention ops.rnn",
            ),
            Category(
                "Element-wise work and normalisation",
                "Ops that keep every shape.",
                "ops.eltwise ops.layer_norm ops.softmax ops.squeeze_excite",
            ),
            Category(
                "Height and width",
                "Ops that change the plane.",
                "ops.pool ops.global_pool ops.resize ops.pad",
            ),
        ),
    ),
    "api-tensors.md": Page(
        """# API: tensors

How a tensor lies in memory ([Memory formats](memory-formats.md)), and the ops that move it. What
ops share stands [with the other ops](api-ops.md#shared-arguments). The examples start from

```python
{prelude}```
""",
        (
            Category(
                "Descriptions",
                "Chains of post-ops, layouts of tensors, and the memory that an op needs.",
                "PostOps TensorDesc ops.memory_plan",
            ),
            Category(
                "Movement",
                "Ops that keep values and place them elsewhere.",
                "ops.reorder ops.concat ops.join ops.shuffle ops.update_slice",
            ),
        ),
    ),
}


def public(module: types.ModuleType) -> list[str]:
    """Names that the page describes: no dunders, no modules."""
    return [
        name
        for name in module.__all__
        if not name.startswith("_") and not inspect.ismodule(getattr(module, name))
    ]


def modules() -> dict[str, types.ModuleType]:
    """Those of MODULES that exist."""
    found = {}
    for name in MODULES:
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    return found


def first_line(thing) -> str:
    """The first sentence of a docstring; empty without one."""
    text = inspect.getdoc(thing) or ""
    return " ".join(text.partition("\n\n")[0].split())


def description(thing) -> str:
    """What stands between the first sentence of a docstring and its first section."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[2]
    return re.split(r"^[A-Z]\w+:(?:$| )", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


def section(thing, title: str) -> str:
    """The lines under "title:" in a docstring, without their indentation; empty without one."""
    text = inspect.getdoc(thing) or ""
    found = re.search(rf"^{title}:\n((?:[ ]+.*\n|\n)+)", text + "\n", re.MULTILINE)
    return textwrap.dedent(found.group(1)).strip() if found else ""


def signature(thing, written: str) -> str:
    """How it is called, over several lines where one is too long."""
    if inspect.isclass(thing) and inspect.isfunction(thing.__init__):
        # Which of __init__ and an inherited __new__ describes a class differs between releases.
        thing = thing.__init__
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return written
    words, starred = [], False
    for parameter in parameters:
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        word = str(parameter.replace(annotation=parameter.empty))
        words.append(word.replace("=<factory>", "=..."))  # Of a dataclass.
    line = f"{written}({', '.join(words)})"
    if len(line) <= WIDTH:
        return line
    inside = textwrap.wrap(", ".join(words), WIDTH - 4, break_long_words=False)
    return "\n".join([f"{written}(", *(f"    {part}" for part in inside), ")"])


def members(cls: type) -> list[tuple[str, str]]:
    """(how it is written, its first line) of a class's own public methods and properties."""
    rows = []
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        plain = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        plain = inspect.unwrap(plain) if callable(plain) else plain
        if isinstance(member, property):
            rows.append((f"`.{name}`", first_line(member)))
        elif inspect.isfunction(plain) and inspect.getdoc(plain):
            call = signature(getattr(cls, name), f".{name}").replace("\n", "")
            rows.append((f"`{re.sub(' +', ' ', call)}`", first_line(plain)))
    return rows


def entry(thing, written: str) -> str:
    """One name: heading, signature, what it does, members, example."""
    parts = [f"### `{written}`\n", first_line(thing) + "\n"]
    if more := description(thing):
        parts.append(more + "\n")
    if callable(thing):
        parts.insert(1, f"```python\n{signature(thing, written)}\n```\n")
    rows = members(thing) if inspect.isclass(thing) else []
    if attributes := _attributes(section(thing, "Attributes")):
        named = {call for call, _ in attributes}
        rows = [*attributes, *(row for row in rows if row[0] not in named)]
    if rows:
        parts.append(_table("| | |", rows))
    for title in ("Args", "Returns", "Raises"):
        text = section(thing, title)
        text = without_shared(text) if written.startswith("bd.ops.") else text
        if text:
            parts.append(f"{title}:\n\n{_items(text)}\n")
    if example := section(thing, "Example"):
        parts.append(f"```pycon\n{example}\n```\n")
    return "\n".join(parts)


def without_shared(text: str) -> str:
    """A section without what the page of the ops says once of all of them."""
    if text == textwrap.dedent(RAISES.partition("\n")[2]).strip():
        return ""
    lines = re.sub(r"\n +", " ", text).splitlines()
    said = {f"{name}: {what}" for name, what in ARGUMENTS.items()}
    return "\n".join(line for line in lines if line not in said)


def shared_arguments() -> str:
    """What the functions of bd.ops share, as a list."""
    return _items("\n".join(f"{name}: {what}" for name, what in ARGUMENTS.items()))


def linked(text: str) -> str:
    """Names of pages in brackets, such as (docs/algorithms.md, "The same bits"), become links."""

    def link(match: re.Match) -> str:
        page, title = match.groups()
        name = title or (DOCS / f"{page}.md").read_text().partition("\n")[0].lstrip("# ")
        anchor = f"#{title.lower().replace(' ', '-')}" if title else ""
        return f"([{name}]({page}.md{anchor}))"

    return re.sub(r'\(docs/([\w-]+)\.md(?:,\s+"([^"]+)")?\)', link, text)


def _table(head: str, rows: list[tuple[str, str]]) -> str:
    cells = (f"| {left} | {right} |" for left, right in rows)
    return "\n".join([head, "|---|---|", *cells]) + "\n"


def _items(text: str) -> str:
    """The lines "name: what it is" of a section as a list; text without names as it is."""
    lines = re.sub(r"\n +", " ", text).splitlines()
    found = [re.fullmatch(r"((?:\*{0,2}[A-Za-z_]\w*(?:, )?)+): (.*)", line) for line in lines]
    if not all(found):
        return textwrap.fill(" ".join(lines), WIDTH + 4, break_on_hyphens=False)
    return "\n".join(
        textwrap.fill(
            f"- {', '.join(f'`{name}`' for name in match[1].split(', '))}: {match[2]}",
            *(WIDTH + 4,),
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for match in found
    )


def is_layer(thing) -> bool:
    """Whether it is one of the layers that a table lists."""
    return inspect.isclass(thing) and any(
        base.__module__.startswith("keras.") and base.__name__ == "Layer" for base in thing.__mro__
    )


def _attributes(text: str) -> list[tuple[str, str]]:
    """The lines "name: what it is" of a section."""
    joined = re.sub(r"\n +", " ", text)
    pairs = (line.partition(": ") for line in joined.splitlines())
    return [(f"`.{name}`", what) for name, _, what in pairs if what]


def described() -> list[tuple[str, str, object]]:
    """(module, how it is written, the object) of every public name, each object once."""
    found, seen = [], set()
    for module_name, module in modules().items():
        for name in public(module):
            thing = getattr(module, name)
            if id(thing) not in seen:
                seen.add(id(thing))
                found.append((module_name, f"{MODULES[module_name]}.{name}", thing))
    return found


def page(name: str) -> str:
    """One of PAGES."""
    introduction, categories = PAGES[name]
    things = {written: thing for _, written, thing in described()}
    parts = [introduction.format(prelude=PRELUDE, shared=shared_arguments())]
    for title, line, names in categories:
        parts.append(f"## {title}\n\n{line}\n")
        if title == "Layers":
            rows = [(f"`{w}`", first_line(thing)) for w, thing in things.items() if is_layer(thing)]
            parts.append(_table("| layer | what it is |", rows))
        parts += [entry(things[f"bd.{name}"], f"bd.{name}") for name in names.split()]
    return linked("\n".join(parts))


def faults() -> list[str]:
    """A line for each public name that lacks a line, an example, or a section that applies."""
    listed = [
        f"bd.{n}" for page in PAGES.values() for c in page.categories for n in c.names.split()
    ]
    public_names = [written for _, written, thing in described() if not is_layer(thing)]
    found = [
        f"{name}: in no category, or in two" for name in public_names if listed.count(name) != 1
    ]
    for _, written, thing in described():
        if not first_line(thing).endswith("."):
            found.append(f"{written}: its docstring does not begin with a sentence")
        if callable(thing):
            found += [f"{written}: its docstring has no {what}" for what in missing(thing)]
    return found


def missing(thing) -> list[str]:
    """What the docstring of a function or class does not have and should.

    Args has each parameter by its name, but for layers that take "All: as of keras.layers.X"; of
    a dataclass they are the Attributes. Returns is for functions that return something; Raises for
    functions that take something, and for classes of which a method raises.
    """
    lacks = [] if ">>> " in section(thing, "Example") else ['section "Example:" with a ">>> " line']
    init = thing.__init__ if inspect.isclass(thing) else thing
    takes = inspect.signature(init) if inspect.isfunction(init) else inspect.Signature()
    names = [n for n, p in takes.parameters.items() if n != "self" and not str(p).startswith("*")]
    told = section(thing, "Attributes" if dataclasses.is_dataclass(thing) else "Args")
    if not told.startswith("All: as of keras.layers."):
        lines = re.sub(r"\n +", " ", told).splitlines()
        heads = {name.strip("*") for line in lines for name in line.split(": ")[0].split(", ")}
        lacks += [f'"{n}" in its section "Args:"' for n in names if n not in heads]
    if inspect.isclass(thing):
        raises = any(map(_raises, thing.__mro__))
    else:
        raises = bool(names)
        if takes.return_annotation not in (None, "None") and not section(thing, "Returns"):
            lacks.append('section "Returns:"')
    if raises and not section(thing, "Raises"):
        lacks.append('section "Raises:"')
    return lacks


def _raises(cls: type) -> bool:
    """Whether a method of this class of ours, not that of a base, raises what is no placeholder."""
    if not cls.__module__.startswith("tf_blockdnn."):
        return False
    methods = [inspect.unwrap(m) for m in vars(cls).values() if inspect.isfunction(m)]
    written = (m for m in methods if m.__code__.co_filename != "<string>")  # not a dataclass's own
    sources = map(inspect.getsource, written)
    return any(re.search(r"^ +raise (?!NotImplementedError)", s, re.MULTILINE) for s in sources)


def main() -> None:
    """Writes the pages, or says that one is out of date."""
    for name in PAGES:
        if "--check" not in sys.argv[1:]:
            (DOCS / name).write_text(page(name))
        elif not (DOCS / name).exists() or (DOCS / name).read_text() != page(name):
            sys.exit(f"docs/{name} is out of date: run `make docs`")
    sys.exit("\n".join(faults()) or None)


if __name__ == "__main__":
    main()
