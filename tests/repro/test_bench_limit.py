"""The C program that measures the machine: its sums, its rates, and the limit made of them."""

from pathlib import Path

import numpy as np
import pytest

from repro.bench import limit


@pytest.mark.parametrize(
    ("entries", "rows", "expected"),
    [
        (1e9, 1e6, 1.0),  # 20e9 adds at 20e9 a second; 1.08e9 bytes at 10e9 a second take less
        (1e9, 1e9, 8.1),  # 1e9 + 80e9 bytes at 10e9 a second
        (0.0, 0.0, 0.0),
    ],
)
def test_the_limit_is_all_adds_or_all_bytes(entries: float, rows: float, expected: float) -> None:
    seconds = limit.histogram_seconds(
        entries=entries, rows=rows, lanes=20, adds_per_second=20e9, read_bytes_per_second=10e9
    )
    assert seconds == pytest.approx(expected)


@pytest.mark.parametrize(("lanes", "padded"), [(10, 16), (24, 24), (81, 88)])
def test_rates_are_positive_and_of_whole_vectors(lanes: int, padded: int) -> None:
    rates = limit.measure(lanes)
    assert rates.lanes == padded
    assert min(rates.adds_l1, rates.adds_l2, rates.adds_contiguous, rates.read_bytes) > 0


@pytest.mark.parametrize("n_vectors", [1, 2, 3, 4, 5, 6, 8, 11])
def test_adds_every_row_to_its_cell(n_vectors: int) -> None:
    library, lanes, rng = limit._compiled(), 8 * n_vectors, np.random.default_rng(n_vectors)
    sums, rows = limit._aligned(7 * lanes), limit._aligned(5 * lanes)
    rows[:] = rng.integers(-9, 9, size=len(rows))
    cells = rng.integers(7, size=40, dtype=np.uint32)
    library.add_to_cells(sums.ctypes.data, cells.ctypes.data, rows.ctypes.data, 40, 5, n_vectors)
    expected = np.zeros((7, lanes), np.int32)
    np.add.at(expected, cells, np.tile(rows.reshape(5, lanes), (8, 1)))
    np.testing.assert_array_equal(sums.reshape(7, lanes), expected)


def test_adds_in_order_and_reads_all_words() -> None:
    library = limit._compiled()
    sums, row = limit._aligned(100), limit._aligned(100)
    row[:] = np.arange(100)
    library.add_contiguous(sums.ctypes.data, row.ctypes.data, 100, 3)
    np.testing.assert_array_equal(sums, 3 * np.arange(100))
    words = np.arange(1000, dtype=np.uint64)
    assert library.read_words(words.ctypes.data, 1000) == 499_500


def test_says_why_it_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "limit.c"
    broken.write_text("int broken(")
    monkeypatch.setattr(limit, "SOURCE", broken)
    with pytest.raises(limit.LimitError, match=r"limit\.c does not compile"):
        limit.measure(8)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(limit.LimitError, match="need a C compiler"):
        limit.measure(8)
