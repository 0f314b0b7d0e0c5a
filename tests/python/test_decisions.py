"""DECISIONS.md keeps its form: running numbers, a status, and a complete index by topic."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATUS = re.compile(
    r"Status: (in force( [a-zA-Z0-9 -]+)?(, amended by \d+(, \d+)*( and \d+)?)?"
    r"|superseded by \d+( and \d+)?|withdrawn( by \d+)?)\.$"
)
INDEXED = re.compile(r"^- (\d+)\. (?:\[(.*?)\]\(#.*?\)|~~\[(.*?)\]\(#.*?\)~~: (.*))$", re.MULTILINE)


def faults(text: str) -> list[str]:
    """What is wrong with a page of decisions, one line each."""
    found = []
    index, *entries = re.split(r"^## (?=\d)", text, flags=re.MULTILINE)
    indexed = {
        int(number): (kept or gone, status) for number, kept, gone, status in INDEXED.findall(index)
    }
    for number, entry in enumerate(entries, 1):
        title, _, rest = entry.partition("\n")
        status, _, body = rest.strip().partition("\n\n")
        if not title.startswith(f"{number}. "):
            found.append(f"'{title}' should have number {number}")
        if not STATUS.match(status):
            found.append(f"{title}: '{status}' is not a status that the top of the page lists")
        others = re.findall(r"\d+", status.rpartition(" by ")[2] if " by " in status else "")
        if any(int(other) > len(entries) for other in others):
            found.append(f"{title}: its status names a decision that does not exist")
        if not body:
            found.append(f"{title}: says nothing")
        named, word = status.removeprefix("Status: ").rstrip("."), ""
        word = "" if named.startswith("in force") else named
        if indexed.get(number) != (title.partition(". ")[2], word):
            found.append(f"{title}: the index by topic lacks it, or its title or status ({named})")
    return found


def test_the_page_keeps_its_form():
    assert not faults((ROOT / "DECISIONS.md").read_text())


def test_faults_are_found():
    index = "# D\n\n## Index by topic\n\n- 1. ~~[A](#1-a)~~: superseded by 2\n- 2. [B](#2-b)\n\n"
    first = "## 1. A\n\nStatus: superseded by 2.\n\nWhy.\n\n"
    good = index + first + "## 2. B\n\nStatus: in force.\n\nWhy.\n"
    assert not faults(good)
    for bad in (
        good.replace("## 2. B", "## 3. B"),
        good.replace("superseded by 2", "superseded by 4"),
        good.replace("in force", "perhaps"),
        good.replace("in force.\n\nWhy.", "in force."),
        good.replace("- 2. [B](#2-b)\n", ""),
        good.replace("- 2. [B]", "- 2. [C]"),
        good.replace("~~[A](#1-a)~~: superseded by 2", "[A](#1-a)"),
    ):
        assert len(faults(bad)) >= 1, bad
