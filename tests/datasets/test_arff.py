"""The reader of ARFF: right values, or an error that names file and line."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import arff_files
import numpy as np
import pytest
from arff_files import FIRST_ROW_LINE, HEADER

from datasets import FormatError, _arff
from datasets._arff import ArffFile

NAN = float("nan")


def values(path: Path) -> list[list[float]]:
    return np.concatenate([block for _, block in ArffFile(path).blocks()]).tolist()


def check(path: Path, expected: list[list[float]]) -> None:
    np.testing.assert_array_equal(values(path), expected)


def fails(path: Path, line: int, *parts: str) -> None:
    with pytest.raises(FormatError) as caught:
        list(ArffFile(path).blocks())
    for part in (f"{path}, line {line}: ", *parts):
        assert part in str(caught.value)


def test_header_in_any_case_with_quotes_comments_and_tabs(tmp_path: Path) -> None:
    file = ArffFile(arff_files.write(tmp_path / "a.arff"))
    assert file.relation == "small set"
    assert [attribute.name for attribute in file.attributes] == ["size", "shape of it", "found", "red", "blue"]
    assert [attribute.kind for attribute in file.attributes] == ["numeric", *["nominal"] * 4]
    assert file.attributes[1].values == ("round", "has, comma", "it's")
    assert [attribute.line for attribute in file.attributes] == [4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("TAG_?? {0,1}", "TAG_??"),
        ("TAG_m\\'usica {0,1}", "TAG_m\\'usica"),
        ("-- numeric", "--"),
        ("25400   real", "25400"),
        ("near{0,1}", "near"),
        ("'it\\'s a % sign' INTEGER", "it's a % sign"),
        ('"two\\twords" numeric', "two\twords"),
    ],
)
def test_names_as_they_occur(tmp_path: Path, declared: str, name: str) -> None:
    path = arff_files.write(tmp_path / "a.arff", "1", header=f"@relation r\n@attribute {declared}\n@data\n")
    assert ArffFile(path).attributes[0].name == name


def test_dense_rows(tmp_path: Path) -> None:
    """Nominal values are counted as declared; a quoted comma parts no values; a quoted ``?`` is no missing value."""
    path = arff_files.write(
        tmp_path / "a.arff",
        "1.5,round,no,0,1",
        "",
        "% between rows",
        " -2e3 , 'has, comma' , yes , 1 , 0 ",
        '?,"it\'s",?,?,1',
        "'7',\"has, comma\",'no',\"1\",0",
    )
    check(path, [[1.5, 0, 0, 0, 1], [-2000, 1, 1, 1, 0], [NAN, 2, NAN, NAN, 1], [7, 1, 0, 1, 0]])
    fails(
        arff_files.write(tmp_path / "b.arff", "1,'?',no,0,1"),
        FIRST_ROW_LINE,
        "'shape of it' is ''?''",
        "round, has, comma",
    )


def test_sparse_rows(tmp_path: Path) -> None:
    """What is not given is 0, and of a nominal attribute the first value declared."""
    path = arff_files.write(
        tmp_path / "a.arff", "{0 3.5,1 'has, comma',4 1}", "{}", "{ 4 1 , 0 -1 }", "{2 yes,0 ?}", "1,round,yes,0,0"
    )
    rows = [[3.5, 1, 0, 0, 1], [0, 0, 0, 0, 0], [-1, 0, 0, 0, 1], [NAN, 0, 1, 0, 0], [1, 0, 1, 0, 0]]
    check(path, rows)


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        ("1,round,no,0", ["4 values, expected 5"]),
        ("1,round,no,0,1,1", ["6 values, expected 5"]),
        ("1,square,no,0,1", ["'shape of it' is 'square', expected one of round"]),
        ("1,round,no,0,2", ["'blue' is '2', expected one of 0, 1"]),
        ("x,round,no,0,1", ["'size' is 'x', expected a finite number"]),
        ("inf,round,no,0,1", ["'size' is 'inf'"]),
        ("1_0,round,no,0,1", ["'size' is '1_0'"]),
        (",round,no,0,1", ["'size' is ''"]),
        ("1,'round,no,0,1", ["quote is not closed"]),
        ("1,'round'x,no,0,1", ["quote is not closed, or text follows it"]),
        ("{0 1,3 1,0 2}", ["index 0 (attribute 'size') is given twice"]),
        ("{0 1,5 1}", ["index 5", "attributes 0 to 4"]),
        ("{0 1,3 1", ["not closed by '}'", "cut off"]),
        ("{0 1,3}", ["expected 'index value', not '3'"]),
        ("{0 1,}", ["nothing follows the last comma"]),
        ("{0 1,,3 1}", ["expected 'index value'"]),
        ("{-1 1}", ["expected 'index value', not '-1 1'"]),
        ("{3 'yes}", ["expected 'index value'"]),
        ("{1 square}", ["'shape of it' is 'square'"]),
    ],
)
def test_a_row_that_does_not_fit_is_named(tmp_path: Path, row: str, parts: list[str]) -> None:
    path = arff_files.write(tmp_path / "a.arff", "1,round,no,0,1", "", "% comment", row, "2,round,no,0,1")
    fails(path, FIRST_ROW_LINE + 3, *parts)


@pytest.mark.parametrize(
    ("header", "line", "part"),
    [
        ("@relation r\n@attribute a numeric\n", 2, "ends before @data"),
        ("", 0, "ends before @data"),
        ("@relation r\n\n@data\n", 3, "no attribute"),
        ("@relation r\n@attribute a complex\n@data\n", 2, "unknown type 'complex'"),
        ("@relation r\n@attribute a\n@data\n", 2, "unknown type ''"),
        ("@relation r\n@attribute a relational\n@data\n", 2, "unknown type 'relational'"),
        ("@relation r\n@attribute\n@data\n", 2, "expected a name and a type"),
        ("@relation r\n@attribute 'a numeric\n@data\n", 2, "expected a name and a type"),
        ("@relation r\n@attribute a {0,1\n@data\n", 2, "not closed by '}'"),
        ("@relation r\n@attribute a {0,'1}\n@data\n", 2, "quote is not closed"),
        ("@relation r\n@attribute a {0,1,0}\n@data\n", 2, "declares a value twice"),
        ("@relation r\n@attribute a numeric\n% c\n@attribute a numeric\n@data\n", 4, "declared in line 2 already"),
        ("@relation r\na numeric\n@data\n", 2, "expected @relation, @attribute or @data, not 'a numeric'"),
        ("@relation r\n@attribute day date 'yyyy'\n@data\n1\n", 2, "holds texts or dates; ignore it"),
    ],
)
def test_a_wrong_header_is_named(tmp_path: Path, header: str, line: int, part: str) -> None:
    fails(arff_files.write(tmp_path / "a.arff", header=header), line, part)


def test_ignored_columns_may_hold_anything(tmp_path: Path) -> None:
    header = "@relation r\n@attribute name string\n@attribute a numeric\n@data\n"
    dense = arff_files.write(tmp_path / "a.arff", "a_1.jpg,1", "'x, y.jpg',2", header=header)
    sparse = arff_files.write(tmp_path / "b.arff", "{0 a_1.jpg,1 1}", "{1 2}", header=header)
    for path in (dense, sparse):
        (block,) = [block for _, block in ArffFile(path).blocks(ignored=[0])]
        np.testing.assert_array_equal(block, [[NAN, 1], [NAN, 2]])


PLAIN = "@relation r\n@attribute a numeric\n@attribute b {0,1}\n@attribute c numeric\n@data\n"


def plain_rows(n: int) -> tuple[list[str], list[list[float]]]:
    numbers = np.random.default_rng(0).standard_normal((n, 2)) * 10.0 ** np.arange(n)[:, None] % 9
    rows = [[float(a), i % 2, float(c)] for i, (a, c) in enumerate(numbers)]
    return [f"{a!r}, {b},{c!r}" for a, b, c in rows], rows


def test_blocks_and_their_lines(tmp_path: Path, monkeypatch) -> None:
    """Rows come in order whatever the size of a block, with the lines they stand in; numbers lose no digit."""
    texts, rows = plain_rows(10)
    path = arff_files.write(tmp_path / "a.arff", *texts[:4], "% comment", *texts[4:], header=PLAIN)
    for size in (1, 3, 10, 1000):
        monkeypatch.setattr(_arff, "BLOCK_VALUES", 3 * size)
        blocks = list(ArffFile(path).blocks())
        assert [len(block) for _, block in blocks[:-1]] == [size] * (len(blocks) - 1)
        assert np.concatenate([block for _, block in blocks]).tolist() == rows
        assert [line for lines, _ in blocks for line in lines] == [6, 7, 8, 9, 11, 12, 13, 14, 15, 16]
    assert ArffFile(path).count_rows() == 10


@pytest.mark.parametrize(
    "row", ["1,1", "1,1,2,3", "1,2,1", "1,0.5,1", "1,1,x", "1,1,1_0", "1,1,nan", "1,1,", "1,1,inf", "1,1,'2"]
)
def test_a_wrong_row_among_plain_ones_is_named(tmp_path: Path, row: str) -> None:
    texts, _ = plain_rows(10)
    fails(arff_files.write(tmp_path / "a.arff", *texts, row, *texts, header=PLAIN), 16)


@pytest.mark.parametrize(
    "row",
    [
        "{0 1,0 2}",
        "{0 1 2,1}",
        "{0 1,3 1}",
        "{-1 1}",
        "{-0 1}",
        "{+1 1}",
        "{\u0660 1}",
        "{99999999999999999999999 1}",
        pytest.param(f"{{{'9' * 5000} 1}}", id="an index of 5,000 digits"),
        "{0 1_0}",
        "{1 2}",
        "{0 inf}",
        "{0 1,}",
        "{0.0 1}",
        "{0 1",
        "{0}",
    ],
)
def test_a_wrong_row_among_plain_sparse_ones_is_named(tmp_path: Path, row: str) -> None:
    texts = ["{}", "{0 1.5,1 1}", "{2 3, 0 4}", "{1 1}"]
    fails(arff_files.write(tmp_path / "a.arff", *texts, row, *texts, header=PLAIN), 10)


def test_plain_sparse_rows(tmp_path: Path) -> None:
    path = arff_files.write(tmp_path / "a.arff", "{}", "{0 1.5,1 1}", "{ 2 3, 0 4 }", "{1 1}", header=PLAIN)
    check(path, [[0, 0, 0], [1.5, 1, 0], [4, 0, 3], [0, 1, 0]])
    flipped = PLAIN.replace("{0,1}", "{1,0}")
    check(
        arff_files.write(tmp_path / "b.arff", "{}", "{1 0}", "{1 1}", header=flipped), [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    )


def test_a_missing_value_among_plain_rows(tmp_path: Path) -> None:
    texts, rows = plain_rows(3)
    check(arff_files.write(tmp_path / "a.arff", *texts, "?,1,2", header=PLAIN), [*rows, [NAN, 1, 2]])


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_packed_files(tmp_path: Path, ending: str, pack) -> None:
    texts, rows = plain_rows(50)
    content = (PLAIN + "\r\n".join(texts)).encode()
    path = tmp_path / f"a.arff{ending}"
    path.write_bytes(pack(content))
    assert values(path) == rows
    path.write_bytes(pack(content)[:-30])
    with pytest.raises(FormatError, match=r"a\.arff\.\w+, line \d+: the file cannot be read on"):
        list(ArffFile(path).blocks())


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.arff"
    path.write_bytes(
        b"\xef\xbb\xbf" + HEADER.removeprefix(HEADER.splitlines(keepends=True)[0]).encode() + b"1,round,no,0,1\n"
    )
    assert values(path) == [[1, 0, 0, 0, 1]]


@pytest.mark.parametrize("row", ["1,round{}x,no,0,1", "{{1 round{}x}}", "1,{}round,no,0,1"])
def test_blanks_take_no_more_than_their_number(tmp_path: Path, row: str) -> None:
    """Matching that takes the square of 300,000 blanks would take hours."""
    path = arff_files.write(tmp_path / "a.arff", row.format(" " * 300_000))
    if "x" in row:
        fails(path, FIRST_ROW_LINE)
    else:
        assert values(path) == [[1, 0, 0, 0, 1]]


def test_names_of_old_encodings_stop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.arff"
    path.write_bytes(HEADER.replace("size", "größe").encode("latin-1") + b"1,round,no,0,1\n")
    assert values(path) == [[1, 0, 0, 0, 1]]


DATA = "{0 1,1 'has, comma',3 1}\n1.25,'has, comma',yes,1,0\n"


@pytest.mark.parametrize("length", range(len(DATA) + 1))
def test_a_file_cut_off_anywhere_is_refused_or_whole(tmp_path: Path, length: int) -> None:
    """Without a checksum, only a cut behind a whole row can go unseen."""
    path = tmp_path / "a.arff"
    path.write_text(HEADER + DATA[:length])
    whole = [
        number for number, line in enumerate(DATA.splitlines()) if DATA[:length].splitlines()[number:][:1] == [line]
    ]
    if len(whole) == len(DATA[:length].splitlines()):
        rows = [[1, 1, 0, 1, 0], [1.25, 1, 1, 1, 0]]
        assert [row for _, block in ArffFile(path).blocks() for row in block.tolist()] == [rows[i] for i in whole]
    else:
        fails(path, FIRST_ROW_LINE + len(whole))
