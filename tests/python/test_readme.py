"""The README's examples run as they stand, and their numbers agree."""

import pathlib
import re

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(examples()), README.name, "exec"), {"__name__": "__main__"})
    difference, summary = capsys.readouterr().out.split("\n", 1)
    assert float(difference) < 1e-5
    assert "converted: 100 %" in summary and "20 convolutions" in summary
    assert (tmp_path / "mobilenet_fast" / "saved_model.pb").exists()


def test_the_first_result_takes_five_lines():
    assert len([line for line in examples()[0].splitlines() if line]) <= 5
