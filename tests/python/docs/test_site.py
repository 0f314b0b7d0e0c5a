"""The documentation builds as a site, and a link that leads nowhere is an error."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("material", reason="mkdocs-material of requirements-dev.txt is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[3]


def build(config: pathlib.Path, site: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", site],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )


def _targets(site: pathlib.Path, pages: set[str]) -> set[str]:
    """What the pages link to and show within the site."""
    link = re.compile(r'(?:href|src)="([^":#?]+)[#?"]')
    return {
        target for page in pages for target in link.findall((site / f"{page}.html").read_text())
    }


def test_the_site_builds(tmp_path):
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in (tmp_path / "site").glob("*.html")}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= pages
    assert {"index", "decisions", "changelog", "contributing", "security"} <= pages
    # Links between the pages of the repository are links between those of the site.
    index = (tmp_path / "site" / "index.html").read_text()
    assert 'href="measurements.html"' in index and 'href="decisions.html"' in index
    decisions = (tmp_path / "site" / "decisions.html").read_text()
    assert '<li>2. <a href="#2-a-blocked' in decisions  # its number, not one that is counted
    assert "docs/" not in index.partition("<article")[2].partition("</article")[0]
    links = _targets(tmp_path / "site", pages - {"404"})
    assert "examples/ray_data_images.py" in links and "measurements.svg" in links
    assert not [link for link in links if not (tmp_path / "site" / link).exists()]


@pytest.mark.parametrize("link", ["[x](nowhere.md)", "[x](cli.md#nowhere)"])
def test_a_broken_link_is_an_error(tmp_path, link):
    for name in ("README.md", "DECISIONS.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "report.md").open("a") as page:
        page.write(f"\n{link}\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0 and "report.md" in done.stderr, done.stderr
