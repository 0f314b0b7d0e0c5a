"""The README's example runs as it stands, prints what the README shows, and is faster."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
TIME = re.compile(r"^(\S+) +(\d+\.\d) ms$", re.MULTILINE)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_the_example_prints_both_times(tmp_path, monkeypatch, capsys):
    (code,), (shown,) = blocks("python"), blocks("text")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert TIME.sub(r"\1", printed) == TIME.sub(r"\1", shown)
    times = {name: float(time) for name, time in TIME.findall(printed)}
    # 4 to 5 times as fast on a machine of its own; this one may be busy.
    assert 0 < times["tf_blockdnn"] < times["TensorFlow"] / 1.3


def test_the_example_is_short():
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line and "import" not in line]) <= 6


def test_it_fits_a_screen_and_a_half():
    assert len(TEXT.splitlines()) <= 100


def test_what_it_tells_to_type_exists():
    """Every command and every number that has another home is the one that stands there."""
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"(?<=make )[a-z-]+(?=`|  )", TEXT)
    assert {"demo", "test"} <= set(commands)
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)
    for script in re.findall(r"python ((?:build_tools|benchmarks)/\S+\.py)", TEXT):
        assert (ROOT / script).exists(), script
    (minor,) = set(re.findall(r'"tensorflow==(\d+\.\d+)\.\*"', TEXT))
    requirements = (ROOT / "requirements.txt").read_text()
    assert f"tensorflow=={minor}." in requirements and f"({minor})" in TEXT


def test_the_address_is_the_same_everywhere():
    (cloned,) = re.findall(r"git clone (\S+)", TEXT)
    (named,) = re.findall(r'^Repository = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert named == cloned


def test_the_version_is_the_same_everywhere():
    (version,) = re.findall(r'VERSION = "(.*)"', (ROOT / "python" / "version.py").read_text())
    assert re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M) == [version]
    newest = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[0]
    assert newest in ("Unreleased", version)
