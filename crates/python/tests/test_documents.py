"""What documents show is run: the README's Python block, and the example with its output."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from conftest import ROOT

EXAMPLES = ROOT / "crates" / "python" / "examples"
# Instruction sets round differently, so shares differ a little from machine to machine.
SHARE = re.compile(r"(\d+) %")
NEAR = 12


def run(source: str, folder: os.PathLike[str]) -> str:
    done = subprocess.run([sys.executable, "-c", source], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_s_python_runs(tmp_path):
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    run(blocks[0], tmp_path)
    assert (tmp_path / "clothes.ckpt").exists()


def test_the_example_prints_what_it_says(tmp_path):
    printed = run((EXAMPLES / "clothes.py").read_text(), tmp_path)
    expected = (EXAMPLES / "clothes.txt").read_text()
    assert SHARE.sub("%", printed) == SHARE.sub("%", expected)
    shares = [list(map(int, SHARE.findall(text))) for text in (printed, expected)]
    assert all(abs(one - other) <= NEAR for one, other in zip(*shares, strict=True)), printed
