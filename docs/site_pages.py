"""A hook of MkDocs: the pages at the top of the repository become pages of the site.

README.md is its first page. Links are brought from the repository's places to the site's; a link to
what the site does not hold, such as a folder of sources, becomes plain text.
"""

from __future__ import annotations

import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "DECISIONS.md": "decisions.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
# "- 7. Title" is a list in a list, which would be counted anew; its number is a text.
_NUMBER = re.compile(r"^- (\d+)\. ", re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files, config):
    """Adds the pages."""
    for source, name in PAGES.items():
        text = translated((ROOT / source).read_text(), ROOT)
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Translates the links of the pages in docs/; those from the top are translated already."""
    return translated(markdown, ROOT / "docs") if page.file.abs_src_path else markdown


def translated(text: str, folder: pathlib.Path) -> str:
    """The text of a page in `folder` with links that hold in the site."""
    text = _NUMBER.sub(r"- \1\\. ", text)

    def replace(match: re.Match) -> str:
        image, words, target = match.groups()
        path, _, fragment = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return match[0]
        place = (folder / path).resolve()
        if place.parent == ROOT and place.name in PAGES:
            name = PAGES[place.name]
        elif place.is_file() and ROOT / "docs" in place.parents:
            name = place.relative_to(ROOT / "docs").as_posix()
        elif place.exists():
            return words
        else:
            name = path  # MkDocs reports it.
        return f"{image}[{words}]({name}{'#' + fragment if fragment else ''})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(replace, part) for part in parts)
