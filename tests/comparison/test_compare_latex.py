"""A comparison for papers: LaTeX and a row a seed."""

from __future__ import annotations

from dcqcn_gym.comparison.latex import csv_of, escaped, latex, seed_rows


def test_what_latex_reads_as_commands_is_escaped() -> None:
    assert escaped("a_b & 5 % ± 1") == r"a\_b \& 5 \% $\pm$ 1"
    assert escaped("\\{x}^~#$") == (r"\textbackslash{}\{x\}\textasciicircum{}\textasciitilde{}\#\$")


def test_an_empty_comparison_is_still_a_table() -> None:
    text = latex({"mini": []})
    assert text.startswith("% mini\n\\begin{tabular}{lrrr")
    assert text.count(r"\midrule") == 1
    assert csv_of(seed_rows({"mini": []})) == b"scenario,tuner\n"
