"""DECISIONS.md keeps its form: running numbers, a status and at most 80 words for each entry."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_WORDS = 80
STATUS = re.compile(
    r"Status: (in force( [a-zA-Z0-9 -]+)?(, amended by \d+(, \d+)*( and \d+)?)?"
    r"|superseded by \d+( and \d+)?|withdrawn( by \d+)?)\.$"
)


def faults(text: str) -> list[str]:
    """What is wrong with a page of decisions, one line each."""
    found = []
    entries = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
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
        if not body or len(rest.split()) > MAX_WORDS:
            found.append(f"{title}: {len(rest.split())} words; up to {MAX_WORDS} are allowed")
    return found


def test_the_page_keeps_its_form():
    assert not faults((ROOT / "DECISIONS.md").read_text())


def test_faults_are_found():
    first = "# D\n\n## 1. A\n\nStatus: superseded by 2.\n\nWhy.\n\n"
    good = first + "## 2. B\n\nStatus: in force.\n\nWhy.\n"
    assert not faults(good)
    for bad in (
        good.replace("## 2. B", "## 3. B"),
        good.replace("superseded by 2", "superseded by 4"),
        good.replace("in force", "perhaps"),
        good.replace("Why.\n\n##", "why " * 81 + "\n\n##"),
    ):
        assert len(faults(bad)) == 1, bad
