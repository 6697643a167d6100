"""ARFF files written for tests."""

from __future__ import annotations

from pathlib import Path

HEADER = """\
% A comment leads, as in some of Mulan's files.
@RELATION 'small set'

@attribute size numeric
@Attribute "shape of it" {round, 'has, comma', "it's"}
@ATTRIBUTE found {no,yes}\t
@attribute red {0,1}
@attribute blue {0,1}
@DATA
"""
FIRST_ROW_LINE = 10

XML = '<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">{}</labels>'


def write(path: Path, *rows: str, header: str = HEADER) -> Path:
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return path


def write_xml(path: Path, *labels: str) -> Path:
    path.write_text(XML.format("".join(f'<label name="{label}"></label>' for label in labels)))
    return path
