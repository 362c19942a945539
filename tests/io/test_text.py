"""Plain text recordings: the samples read, the files refused, and files that come back byte for byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import wavefilt
from tests.support import file_bytes
from wavefilt import FormatError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


def decode(data: str | bytes, **layout: object) -> wavefilt.Recording:
    data = data if isinstance(data, bytes) else data.encode()
    return file_bytes.read(data, format="ascii", **layout)


def written(recording: wavefilt.Recording, folder, traces: object = None) -> str:
    """Return the file of a recording, or of other samples with its layout."""
    if traces is not None:
        recording = replace(recording, traces=np.array(traces, dtype=float))
    return file_bytes.written(recording, folder).decode()


KEPT = {
    "leading blank lines": "\n\n1.50\n-2.25\n",
    "CRLF": "1.5 2.5\r\n3.5 4.5\r\n",
    "trailing blanks": "1.5 2.5  \n3.5 4.5\t\n",
    "fixed width": "   1.50  -2.25\n -10.50 100.25\n",
    "decimals by column": "1.5 2.25 3.125\n9.5 2.75 -3.125\n",
    "three digits of exponent": "1.25e+100\n1.25e-101\n",
    "Fortran": " 1.250D+00 -2.500d-01\n-1.250D-03  2.500d+01\n",
    "decimal comma, semicolon": "1,5;2,5\n-3,5;4,0\n",
    "decimal comma, exponent": "1,5e+00;2,5E-01\n-3,5e+00;4,0E-01\n",
    "negative zero": "-0.00\n1.00\n",
    "nan of fixed width": "    1.50   NaN\n     nan  2.50\n   -1.00  1.00\n",
    "all gaps": "1.5 nan\n1.5 NaN\n",
    "names": "# c\nup,north\n# units: mm/s\n1.5,2.5\n3.5,4.5\n",
    "UTF-8": "\ufeff# Größe µm\nZeit;Weg\n0,5;1,5\n0,5;2,5\n",
    "time in short form": "0 1.50\n.5 -2.50\n1 3.50\n1.5e0 4.50\n",
}


@pytest.mark.parametrize("content", KEPT.values(), ids=KEPT.keys())
def test_unaltered_samples_come_back_byte_for_byte(folder, content):
    assert written(decode(content), folder) == content


@pytest.mark.parametrize(
    ("content", "interval"),
    [
        ("0.000 5\n0.001 6\n0.002 5\n", 0.001),
        ("0.000,5\n0.003,6\n0.007,5\n0.010,5\n0.013,5\n0.017,5\n0.020,5\n", 0.02 / 6),
        ("-1e-3;5\n0;6\n1E-3;5\n", 0.001),
        ("0,5;5\n0,75;6\n1;5\n", 0.25),
        ("1.000D+01 5\n1.025D+01 6\n1.050D+01 7\n", 0.25),
        ("1 5\n2 6\n3 5\n", 1.0),
        ("0.1 5\n0.2 6\n0.30000000000000004 5\n", 0.1),
        ("".join(f"{k / 8000:g} 1.5\n" for k in range(80001)), 1 / 8000),
        ("".join(f"{k / 3:.18e} 1.5\n" for k in range(1000)), 1 / 3),
        ("".join(f"{t!r} 1.5\n" for t in np.cumsum(np.full(10_000, 1e-3)).tolist()), 1e-3),
    ],
)
def test_a_uniform_first_column_is_time(content, interval):
    recording = decode(content)
    assert recording.interval == pytest.approx(interval, rel=1e-9)
    assert len(recording.traces) == 1
    assert "time" in recording.notes[0]
    assert decode(content, dt=interval).interval == recording.interval


@pytest.mark.parametrize(
    "content",
    ["1.5\n2.5\n3.5\n", "1.5 2\n2.5 2\n", "3 1.5\n2 1.5\n1 1.5\n", "1 2\n1 2\n2 2\n", "1 2\nnan 2\n3 2\n"],
    ids=["one column", "two rows", "decreasing", "repeated", "gap"],
)
def test_other_columns_are_traces(content):
    recording = decode(content)
    assert recording.interval is None
    assert len(recording.traces) == len(content.splitlines()[0].split())
    assert decode(content, dt=0.004).intervals == (0.004,) * len(recording.traces)


def test_chosen_columns_are_traces_and_others_are_kept(folder):
    content = "0;1.50;3.25\n7;2.50;4.25\n9;3.50;5.25\n"
    recording = decode(content, columns=(3,), dt=0.5)
    assert_array_equal(recording.traces, [[3.25, 4.25, 5.25]])
    assert recording.intervals == (0.5,)
    assert written(recording, folder, [[1, 2, 3]]) == "0;1.50;1.00\n7;2.50;2.00\n9;3.50;3.00\n"
    swapped = decode(content, columns=(3, 2))
    assert_array_equal(swapped.traces[0], [3.25, 4.25, 5.25])
    assert written(swapped, folder) == content
    assert decode("1 1.5\n2 2.5\n3 3.5\n", columns=(1, 2)).interval is None


@pytest.mark.parametrize(
    ("content", "traces", "expected"),
    [
        ("0 1.50\n.5 -2.50\n+1.0 3.50\n", [[9, 8.125, -7]], "0 9.00\n.5 8.12\n+1.0 -7.00\n"),
        ("10 1.5\n-20 1.5\n", [[1 / 3, 12345.678912], [1, 1]], "0.3333333 1.0\n12345.68 1.0\n"),
        ("1.5 2.5\n3.5 4.5\n", [[-1, 1], [-1000, 1]], "-1.0 -1000.0\n1.0 1.0\n"),  # a field that is too narrow
        (
            "  1.5,  NaN\n  nan,  2.5\n -1.5,  1.5\n",
            [[10, np.nan, 1], [np.nan, 10, 1]],
            " 10.0,  NaN\n  nan, 10.0\n  1.0,  1.0\n",
        ),
        ("1.5e-05\n0.25\n", [[1 / 3, 0]], "0.3333333\n0\n"),
        ("1e5\n2e5\n", [[1 / 3, 0]], "0.3333333\n  0\n"),
        ("1.5\n1.2345678901\n", [[1 / 3, 0]], "0.3333333333\n0.0000000000\n"),
        ("1.25d+00\n1.00d+00\n", [[1 / 3, 1]], "3.33d-01\n1.00d+00\n"),
        ("1.25E+00\n1.00E+00\n", [[1 / 3, 1]], "3.33E-01\n1.00E+00\n"),
        ("  1,25;1,5\n -1,00;1,5\n", [[1 / 3, -1], [1.5, 1.5]], "  0,33;1,5\n -1,00;1,5\n"),
    ],
)
def test_altered_samples_are_written_in_the_notation_of_their_column(folder, content, traces, expected):
    assert written(decode(content), folder, traces) == expected


@pytest.mark.parametrize("given", [" ", "space", "tab", "\\t", "semicolon", ";", "comma", ","])
def test_delimiter_may_be_given(given):
    mark = {"space": " ", "tab": "\t", "\\t": "\t", "semicolon": ";", "comma": ","}.get(given, given)
    assert_array_equal(decode(f"1{mark}5\n2{mark}7\n", delimiter=given).samples, [[1, 2], [5, 7]])


POLES = "24 # shot/geophone points\n#x y\n0 0\n1 0\n"
REFUSED = {
    "empty": ("\n \n", "no samples"),
    "prose": ("hello world\nno numbers here\n", "no samples"),
    "one row": ("1 2 3\n", "too short"),
    "ragged": ("1 2\n3 4\n5\n", "line 3"),
    "ragged that adds up": ("1 2\n3\n4 5 6\n", "line 2"),
    "many short rows below a long one": ("1 " * 30_000 + "\n" + "1\n" * 30_000, "line 2"),
    "far down": ("1.5 2.5\n" * 100_000 + "1.5 x\n", "line 100001"),
    "comment in the middle": ("1\n# pause\n2\n", "line 2: '# pause'"),
    "two lines of names": ("t a\ns mm\n1 2\n3 4\n", "line 2: 's mm'"),
    "empty cell": ("1.5,2\n,4\n", "line 2: ',4'"),
    "hexadecimal": ("1\n0x10\n", "line 2: '0x10'"),
    "dates": ("2018-03-07 1\n2018-03-08 2\n", "line 1: '2018-03-07"),
    "long text": ("1\n" + "x" * 500 + "\n", "xxx...'"),
    "huge line": ("1\n" + "2 " * 600_000 + "\n", "line 2"),
    "carriage returns": ("1 2\r3 4\r", "carriage returns"),
    "decimal comma and point": ("1,5;2,5\n1.5;2\n", "line 2: '1.5;2'"),
    "ambiguous": ("1,5\n2,7\n", "delimiter"),
    "tab in a file of commas": ("t,a\n0.5,1\n1.5,2\n", "line 2: '0.5,1' has no tab; give another `delimiter`"),
    "travel times": (POLES, "line 1"),
    "lost sample": ("".join(f"{k} 1\n" for k in range(50) if k != 3), "uniformly"),
}


@pytest.mark.parametrize(("content", "fragment"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(content, fragment):
    with pytest.raises(FormatError) as error:
        decode(content, delimiter="tab" if "has no tab" in fragment else None)
    assert fragment in str(error.value)
    assert len(str(error.value)) < 400


WRONG = [{"columns": columns} for columns in ((0,), (4,), (2, 2), ())] + [
    {"delimiter": mark} for mark in ("|", "", ",")
]


@pytest.mark.parametrize("layout", [*WRONG, {"dt": 0.5}, {"dtype": "f4"}], ids=str)
def test_layouts_that_do_not_fit_are_refused(layout):
    with pytest.raises(FormatError):
        decode("0.0 1.5 2.5\n0.1 1.5 2.5\n0.2 1.5 2.5\n", **layout)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, str, np.ndarray]:
    """Draw a table as text, its delimiter, and its numbers as rows."""
    columns, rows = draw(st.integers(1, 4)), draw(st.integers(2, 12))
    delimiter = draw(st.sampled_from([",", ";", "\t", " "]))
    comma = delimiter != "," and draw(st.booleans())
    forms = [
        f"%{draw(st.sampled_from(['', '24']))}.{draw(st.integers(1, 12))}{draw(st.sampled_from('feE'))}"
        for _ in range(columns)
    ]
    number = st.floats(-1e6, 1e6) | st.just(np.nan)
    table = draw(st.lists(st.lists(number, min_size=columns, max_size=columns), min_size=rows, max_size=rows))
    cells = [[form % x for form, x in zip(forms, row, strict=True)] for row in table]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    head = draw(st.sampled_from(["", f"# a comment{end}", f"names{end}", f"\ufeff# µ{end}names{end}"]))
    tail = draw(st.sampled_from(["", end, end + end]))
    body = end.join(delimiter.join(row) for row in cells)
    values = np.array([[float(cell) for cell in row] for row in cells])
    return head + (body.replace(".", ",") if comma else body) + tail, delimiter, values


@settings(deadline=None)
@given(tables())
def test_any_table_comes_back(folder, table):
    content, delimiter, values = table
    every = tuple(range(1, values.shape[1] + 1))
    recording = decode(content, delimiter=delimiter, columns=every)
    assert_array_equal(recording.samples.T, values)
    again = written(recording, folder)
    assert_array_equal(decode(again, delimiter=delimiter, columns=every).samples.T, values)
    assert again.replace(" ", "").replace("NAN", "nan") == content.replace(" ", "").replace("NAN", "nan")


def test_long_files_come_back(folder):
    content = "".join(f"{k / 100:.2f} {k % 7}.5 {'nan' if k % 5 == 0 else '1.5'}\n" for k in range(100_000))
    assert written(decode(content), folder) == content
