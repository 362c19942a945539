"""The page of `wavefilt bench report`: what it holds, and how it behaves in a real browser."""

from __future__ import annotations

import html
import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support import browser
from tests.support.checkout import run
from wavefilt.benchmarks.common.tables import Sheet, number, size
from wavefilt.benchmarks.report import page as report_page
from wavefilt.benchmarks.report import sections
from wavefilt.benchmarks.report.drawing import ends, figures
from wavefilt.cli.bench import report as command
from wavefilt.method import Method

bokeh = pytest.importorskip("bokeh")

RESULTS = sorted(sections.RESULTS.glob("*.json"))
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Document(HTMLParser):
    """Elements that are closed in order, with their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.found, self.tables = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        self.found.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def load(name):
    return json.loads((sections.RESULTS / name).read_text())


def read(tmp_path, *results):
    paths = [tmp_path / f"{i}.json" for i in range(len(results))]
    for path, result in zip(paths, results, strict=True):
        path.write_text(json.dumps(result))
    return sections.sections(paths)


def page(tmp_path, *results):
    return report_page.page(read(tmp_path, *results))


def sources(figure):
    """The data of what a figure draws, without labels."""
    return [r.data_source.data for r in figure.renderers if "place" in r.data_source.data]


def texts(tmp_path, result):
    """What the points of a result's plots tell, plot by plot and line by line."""
    drawn = [figure for plot in read(tmp_path, result)[0].plots for _, figure in figures(plot)]
    return [text for figure in drawn for tool in figure.tools if hasattr(tool, "tooltips") for text in told(tool)]


def told(hover):
    assert "@text" in hover.tooltips
    return [text for renderer in hover.renderers for text in renderer.data_source.data["text"]]


@pytest.fixture(scope="module")
def text():
    """Of the library's own results."""
    return report_page.page(sections.sections(RESULTS))


def test_every_result_has_a_section_with_tables(text):
    document = Document(text)
    assert len(document.all("section")) == len(RESULTS) >= 7
    for path in RESULTS:
        assert f" {path.name}</p>" in text or f">{path.name}</p>" in text
    assert len(document.tables) > len(RESULTS)
    for heads, *rows in document.tables:
        assert rows
        assert all(len(row) == len(heads) for row in rows)


def test_the_page_is_complete_in_itself(text):
    document = Document(text)
    used = [
        value
        for _, attributes in document.found
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href")
    ]
    assert used
    assert all(value.startswith("#") for value in used)
    assert not document.all("link")
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"url\(|@import|https?://", own)
    policy = next(
        meta["content"] for meta in document.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.split("; ")[0] == "default-src 'none'"
    assert not re.search(r"https?:|connect-src|unsafe-eval|\*", policy)
    assert len(text.encode()) < 4_000_000


def test_ids_are_unique_and_links_lead_to_one(text):
    document = Document(text)
    ids = [attributes["id"] for _, attributes in document.found if "id" in attributes]
    assert len(set(ids)) == len(ids)
    pointed = [a["href"][1:] for a in document.all("a")] + [s["aria-labelledby"] for s in document.all("section")]
    assert set(pointed) <= set(ids)
    named = {section["id"] for section in document.all("section")}
    assert {link.removeprefix("#") for link in re.findall(r'<a href="(.*?)"', text.partition("<nav")[2])} == named


def titles(text, level):
    return [html.unescape(title) for title in re.findall(rf"<{level}[^>]*>(.*?)</{level}>", text)]


def test_every_title_stands_once(text):
    heads = titles(text, "h2")
    assert len(heads) == len(set(heads)) == len(RESULTS)
    assert heads.count("Scaling: run time against size (NVIDIA H200)") == 1
    for section in text.split("<section")[1:]:
        parts = titles(section, "h3")
        assert parts
        assert len(parts) == len(set(parts))
        assert not any(f'"{part}"' in section.partition("<script>")[0] for part in parts)  # as a label once more


def summary_of(text):
    """The cards and the missed targets above the sections, each with whether it is marked."""
    head = re.sub(r"\s+", " ", text.partition("<nav")[0].rpartition("<header>")[2])
    entries = re.findall(r'<li( class="missed")?>(.*?)</li>', head)
    return [(bool(missed), html.unescape(re.sub("<[^>]*>", "", inner))) for missed, inner in entries], head


def test_it_opens_with_a_summary_that_marks_missed_targets(text):
    entries, head = summary_of(text)
    cpu, cuda, quality = (load(f"{name}.json") for name in ("cpu", "cuda_h200", "quality"))
    dates, places = r"20[-\d]+( to 20[-\d]+)?", r"on Intel.* and on NVIDIA H200( and on Intel[^<]*)?"
    assert re.search(rf"{len(RESULTS)} studies measured, {dates} {places}\.</p>", head)
    cards, missed = entries[:6], entries[6:]
    assert f"{cpu['cases'][0]['ratio']:.1f} times" in cards[0][1]
    assert f"{cuda['cases'][0]['device']['median']:.3f} ms" in cards[1][1]
    gains = [row["gain_db"]["bayes, level"] for row in quality["parts"]["records"]]
    assert f"{sum(gains) / len(gains):.1f} dB" in cards[5][1]
    for marked, words in cards[:5]:
        assert ("missed." in words, "reached." in words) == (marked, not marked)
    names = [case["name"] for case in cpu["cases"] if case["ratio"] < case["target"]]
    names += [peer["name"] for peer in cuda["peers"] if peer["ratio"] < float(peer["target"].split()[1])]
    assert names
    assert all(any(marked and name in words for marked, words in missed) for name in names)
    assert re.search(r">\d+ of \d+ targets are reached\. Missed:<", head)


def test_a_missed_target_is_marked_in_summary_plot_and_table(tmp_path):
    result = load("cpu.json")
    count = len(result["cases"])
    made = page(tmp_path, result)
    assert [marked for marked, _ in summary_of(made)[0]] == [False]
    assert f"{count} of {count} targets are reached.<" in made
    assert "words missed" not in made
    result["cases"][0] |= {"ratio": 9.0, "met": False}
    made = page(tmp_path, result)
    entries, head = summary_of(made)
    assert [(marked, "9.00 times" in words) for marked, words in entries] == [(True, True)] * 2
    assert f"{count - 1} of {count} targets are reached. Missed:<" in head
    assert made.count("words missed") == 1
    (plot,) = read(tmp_path, result)[0].plots
    assert {line.label: len(line.points) for line in plot.legend}["target missed"] == 1


def test_the_quality_plot_marks_the_default_rule():
    (plot,) = sections.sections([sections.RESULTS / "quality.json"])[0].plots
    default = f"{Method().rule}, {Method().sigma}"
    drawn = plot.legend[-1]  # over the others
    assert drawn.label == f"{default} (the default)"
    assert [line.label for line in plot.legend if line.look.marker == drawn.look.marker] == [drawn.label]
    assert [p.y for p in drawn.points] == [row["gain_db"][default] for row in load("quality.json")["parts"]["records"]]


def test_cells_are_those_of_the_study(tmp_path):
    result = load("scaling_cpu.json")
    first = Document(page(tmp_path, result)).tables[0]
    assert first[0] == ["samples", "GSL1 core", "PyWavelets1 core", "numbaall cores"]
    row = result["rows"][0]["times"]
    assert [cell.split(" ")[0] for cell in first[1]] == ["64", *(f"{row[n]['median']:.3g}" for n in row)]


def test_every_time_is_a_point_that_says_it(tmp_path):
    result = load("scaling_cpu.json")
    found = [text for text in texts(tmp_path, result) if text.startswith("numba all cores\n") and " ms (" in text]
    assert [text.partition(" ms")[0] for text in found] == [
        f"numba all cores\n{size(row['samples'])} samples: {number(row['times']['numba']['median'])}"
        for row in result["rows"]
    ]


def test_medians_and_quartiles_are_drawn_where_they_are(tmp_path):
    result = load("scaling_cpu.json")
    panels = [figure for _, figure in figures(read(tmp_path, result)[0].plots[0])][:-1]
    assert len(panels) == 2
    for wavelet, figure in zip(("db4", "db8"), panels, strict=True):
        rows = [row for row in result["rows"] if row["wavelet"] == wavelet]
        (data,) = {id(data): data for data in sources(figure) if data["text"][0].startswith("numba all")}.values()
        assert data["place"] == [row["samples"] for row in rows]
        for name, key in (("value", "median"), ("low", "low"), ("high", "high")):
            assert data[name] == [row["times"]["numba"][key] for row in rows]


EVIL = '<script>window.evil=1</script>" onload="evil()\' & <b>'


def test_text_of_the_file_is_escaped(tmp_path):
    result = load("scaling_cpu.json")
    result["columns"]["numba"]["heads"] = [EVIL, EVIL]
    result["environment"] |= {"processor": EVIL, "commit": EVIL, "versions": {EVIL: EVIL}}
    result |= {"method": EVIL, "date": EVIL}
    for row in result["rows"]:
        row["wavelet"], row["skipped"] = EVIL, {"cuda": EVIL}
    evil = page(tmp_path, result)
    document = Document(evil)
    assert len(document.all("script")) == len(Document(page(tmp_path, load("scaling_cpu.json"))).all("script"))
    assert not document.all("b")
    assert not [name for _, attributes in document.found for name in attributes if name.startswith("on")]
    assert evil.count("&lt;script&gt;") > 20
    assert "<script>window" not in evil


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "no result of a study"),
        ('{"study": "weather", "rows": []}', "no result of a study"),
        ("3", "no result of a study"),
        ("no json", "this is no JSON"),
        ('{"study": "quality", "seconds": NaN}', "this is no JSON: NaN is no number"),
        ('{"study": "quality", "columns": {}, "parts": {}}', "a damaged result of a study"),
        ('{"study": "scaling", "columns": {}, "rows": [{"wavelet": "db4"}]}', "a damaged result of a study"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, content, words):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(sections.NotAStudy, match=rf"other\.json: .*{words}"):
        sections.sections([path])


def test_command_writes_the_page_or_says_why_not(tmp_path, capsys):
    out = tmp_path / "report.html"
    results = (sections.RESULTS / "cpu.json", sections.RESULTS / "scaling_cpu.json")
    assert run(capsys, "bench", "report", *results, "-o", out) == (0, f"{out}: scaling_cpu.json, cpu.json\n", "")
    Document(out.read_text("utf-8"))
    out.unlink()
    code, _, err = run(capsys, "bench", "report", Path(__file__), "-o", out)
    assert (code, out.exists()) == (3, False)
    assert err.startswith("wavefilt: error: ")
    assert "test_report.py: this is no JSON" in err
    absent = tmp_path / "absent.json"
    code, _, err = run(capsys, "bench", "report", absent, "-o", out)
    assert (code, err) == (3, f"wavefilt: error: {absent}: No such file or directory\n")


def test_the_command_does_not_write_over_what_it_reads(tmp_path):
    path = tmp_path / "cpu.json"
    path.write_bytes((sections.RESULTS / "cpu.json").read_bytes())
    done = CliRunner().invoke(command, [str(path), "-o", str(path)])
    assert (done.exit_code, path.read_bytes()) == (2, (sections.RESULTS / "cpu.json").read_bytes())
    assert "is one of the files to read" in done.output


def test_a_study_in_which_nothing_ran_has_a_section(tmp_path):
    result = load("scaling_cpu.json")
    for row in result["rows"]:
        row |= {"times": {}, "ratios": {}, "skipped": {"gsl": "needs a larger machine"}}
    result["crossovers"] = []
    made = page(tmp_path, result)
    assert "needs a larger machine" in made
    assert len(Document(made).all("section")) == 1


def test_two_results_of_a_study_are_told_apart(tmp_path):
    document = Document(page(tmp_path, load("cpu.json"), load("cpu.json")))
    assert [a["href"] for a in document.all("a")][-2:] == ["#study-1", "#study-2"]
    assert titles(page(tmp_path, load("cpu.json"), load("cpu.json")), "h2") == [
        f"CPU: the numba backend and PyWavelets ({i}.json)" for i in range(2)
    ]


def test_what_cannot_be_drawn_is_refused_by_name(tmp_path):
    result = load("cpu.json")
    result["cases"][0]["ratio"] = "fast"
    with pytest.raises(sections.NotAStudy, match=r"0\.json: a damaged result .* TypeError"):
        page(tmp_path, result)


def test_without_results_the_command_says_what_makes_some(tmp_path, monkeypatch):
    monkeypatch.setattr(sections, "RESULTS", tmp_path)
    done = CliRunner().invoke(command, ["-o", str(tmp_path / "report.html")])
    assert done.exit_code == 2
    assert "-o FILE" in done.output
    assert "bench cpu" in done.output


def test_without_bokeh_the_command_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh.embed", None)
    done = CliRunner().invoke(command, ["-o", str(tmp_path / "report.html")])
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert 'pip install "wavefilt[bench]"' in done.output


def test_a_gpu_without_calibration_shows_what_was_measured(tmp_path):
    result = load("ske_h200.json")
    result["device"]["name"] = "Voodoo 2"
    made = page(tmp_path, result)
    assert "No predictions: no calibration of Voodoo 2 is shipped" in made
    assert len(Document(made).tables[0]) == 1 + len(result["rows"])


def test_a_study_that_is_not_known_yet_is_shown_by_its_outline(tmp_path):
    result = load("scaling_cpu.json") | {"study": "tomorrow's"}
    document = Document(page(tmp_path, result))
    (table,) = document.tables
    assert table[0] == ["wavelet", "taps", "samples", "GSL1 core", "PyWavelets1 core", "numbaall cores"]
    assert table[1][:3] == ["db4", "8", "64 Ki"]
    assert len(document.all("figure")) == 4


def test_one_size_is_shown_as_dots_with_estimates(tmp_path):
    times = {name: {"median": m, "low": m / 2, "high": 2 * m} for name, m in (("a", 1.0), ("b", 10.0))}
    result = {
        "study": "new",
        "unit": "ms",
        "method": "by hand",
        "columns": {n: {"heads": [n, "x"]} for n in "abc"},
        "rows": [{"samples": 4096, "times": times, "estimates": {"b": {"calibrated": 5.0}}}],
    }
    assert texts(tmp_path, result) == [
        "a x\nmeasured: 1.00 ms (0.500 to 2.00)",
        "b x\nmeasured: 10.0 ms (5.00 to 20.0)",
        "b x\nSKE estimate, calibrated: 5.00 ms",
    ]


def test_times_over_the_block_stand_beside_their_prediction(tmp_path):
    times = {"a": {"median": 2.0, "low": 2.0, "high": 2.0}}
    rows = [
        {"samples": 4096, "block": block, "times": times, "estimates": {"a": {"calibrated": block / 64}}}
        for block in (64, 128, 256)
    ]
    result = {"study": "new", "unit": "us", "method": "", "columns": {"a": {"heads": ["a"]}}, "rows": rows}
    titles = texts(tmp_path, result)
    assert titles[:3] == [f"a\n{block} block: 2.00 us (2.00 to 2.00)" for block in (64, 128, 256)]
    assert titles[3:] == [
        f"a, SKE estimate\n{b} block: {ms} us" for b, ms in ((64, "1.00"), (128, "2.00"), (256, "4.00"))
    ]


def test_launch_shapes_are_held_against_the_fixed_one(tmp_path):
    row = {"wavelet": "db4", "taps": 8, "rows": 1, "samples": 65536, "fixed": 4e-5, "ranked": [[128, 2048, 2e-5]]}
    row["tried"] = [[256, 3840, 4e-5], [64, 3840, 1e-5]]
    result = {"study": "launch shapes", "fixed": [256, 3840], "rows": [row, row | {"samples": 131072}]}
    made = page(tmp_path, result)
    found = ["20.0", "0.500", "", "256, 3840: 40.0, 1.000", "64, 3840: 10.0, 0.250"]
    assert Document(made).tables[0][1] == ["db4", "1", "64 Ki", "40.0", "128", "2048", *found]
    assert "2.000, slower in 2 of 2" in made
    assert any("128 Ki samples: 2.00 times as fast" in text for text in texts(tmp_path, result))


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("64 Ki", 65536),
        ("1 Mi", 1 << 20),
        ("2.74 ±2%", 2.74),
        ("+25%", 25),
        ("-3.7", -3.7),
        ("2.7e-07", 2.7e-7),
        ("0.406 [0.405, 0.406]", 0.406),
        ("781 (721-791)", 781),
        (">= 200", 200),
        ("10 dB", 10),
        ("-", None),
        ("", None),
        ("db8", None),
        ("4096 x 16384", None),
        ("16 Mi db2", None),
        ("1.2.3", None),
    ],
)
def test_cells_sort_by_their_number(cell, value):
    assert report_page._value(cell) == value


@pytest.mark.parametrize(
    ("cells", "places"),
    [
        (["64 Ki", "1 Mi", "-", "64 Ki", "8"], [1, 2, report_page.LAST, 1, 0]),
        (["+3%", "-2.5%", "", "10%"], [1, 0, report_page.LAST, 2]),
        (["db10", "db2", "Coif1", "db2"], [2, 1, 0, 1]),
        (["16 Mi db2", "16 Mi", "2 Mi"], [2, 1, 0]),
    ],
)
def test_cells_have_their_places_in_a_sorted_column(cells, places):
    rows = [(cell, str(i)) for i, cell in enumerate(cells)]
    assert report_page._places(Sheet("", [["a"], ["b"]], rows)) == [(place, i) for i, place in enumerate(places)]


def test_the_only_script_is_bokehs(text):
    """Sorting needs none; a page without plots has no script of its own."""
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, flags=re.DOTALL)
    assert scripts
    assert all("Bokeh" in script for script in scripts)


def test_the_style_sorts_every_column_and_row(text):
    tables = Document(text).tables
    assert max(map(len, tables)) - 1 < report_page.LAST / 4
    for i in range(1, max(len(table[0]) for table in tables) + 1):
        assert f"th:nth-child({i}) :checked" in text


@pytest.mark.parametrize(
    ("values", "bars", "expected"),
    [
        ((0.526, 2855), False, (0.3731, 4025)),
        ((3, 40), False, (2.705, 44.36)),
        ((-4.4, 9.5), False, (-4.956, 10.056)),
        ((0, 100), False, (-4, 104)),
        ((3.5, 26), True, (0, 29.12)),
        ((7, 7), False, (3.5, 14)),
        ((-2, -2), False, (-3, -1)),
    ],
)
def test_axes_end_a_little_beyond_the_outermost_values(values, bars, expected):
    assert ends(values, bars) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_axes_show_all_that_is_drawn_and_little_more(path):
    for plot in sections.sections([path])[0].plots:
        *panels, _ = (figure for _, figure in figures(plot))
        for figure in panels:
            axes = {"value": (figure.x_range if plot.rows else figure.y_range), "place": figure.x_range}
            data = [column for one in panels for column in sources(one)]
            check(
                axes["value"],
                [v for d in data for key in d.keys() & {"value", "low", "high"} for v in d[key]],
                bars(panels),
            )
            if plot.rows:  # the first at the top, and each as high as the others
                assert figure.y_range.start > figure.y_range.end
                assert type(figure.y_scale).__name__ == "LinearScale"
            if not plot.rows:
                check(axes["place"], [v for d in data for v in d["place"]], False)
            for axis, scale in ((figure.x_range, figure.x_scale), (axes["value"], figure.y_scale))[
                : 2 - bool(plot.rows)
            ]:
                assert (type(scale).__name__ == "LogScale") == (axis.start > 0)


def bars(panels):
    return any(type(renderer.glyph).__name__ == "HBar" for figure in panels for renderer in figure.renderers)


def check(axis, values, bars):
    """That the axis holds the values, and that they take nine tenths of it."""
    low, high = min(values), max(values)
    start, end = axis.start, axis.end
    if bars:
        assert start == 0 < high < end < 1.2 * high
        return
    assert start < low <= high < end
    if low > 0:
        start, low, high, end = map(math.log, (start, low, high, end))
    assert high == low or (high - low) / (end - start) > 0.9


needs_browser = pytest.mark.skipif(browser.program() is None, reason=f"none of {', '.join(browser.NAMES)} is installed")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A tab of a browser, and the path of a page of three studies."""
    folder = tmp_path_factory.mktemp("browser")
    path = folder / "report.html"
    names = ("scaling_cpu.json", "cpu.json", "quality.json")
    path.write_text(report_page.page(sections.sections(sections.RESULTS / name for name in names)), "utf-8")
    with browser.browser(folder) as tab:
        yield tab, path
        assert tab.errors == []


def middle(tab, selector, index=0):
    """Scroll to an element, and its middle on the screen once that has been drawn."""
    return tab.run(
        f"(async () => {{ const e = document.querySelectorAll({json.dumps(selector)})[{index}];"
        "e.scrollIntoView({block: 'center', behavior: 'instant'});"
        "for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);"
        "const r = e.getBoundingClientRect(); return [(r.left + r.right) / 2, (r.top + r.bottom) / 2]; })()"
    )


def column(tab, table, index):
    """Cells from the top to the bottom, as they are seen."""
    return tab.run(
        f"[...document.querySelectorAll('table')[{table}].tBodies[0].rows].sort((a, b) =>"
        " a.getBoundingClientRect().top - b.getBoundingClientRect().top"
        f").map(r => r.cells[{index}].textContent)"
    )


def sorted_by(tab, table=0):
    """The radio buttons of a table that are chosen."""
    chosen = f"[...document.querySelectorAll('table')[{table}].querySelectorAll(':checked')]"
    return tab.run(f"{chosen}.map(e => e.ariaLabel)")


@needs_browser
def test_a_click_on_a_head_sorts_numbers_as_numbers(shown):
    tab, path = shown
    tab.open(path)
    before = column(tab, 0, 3)
    assert sorted_by(tab) == []
    numbers = sorted((float(cell.split()[0]) for cell in before), reverse=True)
    for direction in ("ascending", "descending", "ascending"):
        tab.click(*middle(tab, "table th:nth-child(4)"))
        assert sorted_by(tab) == [f"numba all cores, {direction}"]
        numbers.reverse()
        assert [float(cell.split()[0]) for cell in column(tab, 0, 3)] == numbers
    tab.click(*middle(tab, "table th"))
    assert column(tab, 0, 3) == before
    assert column(tab, 0, 0)[:2] == ["64 Ki", "128 Ki"]
    assert column(tab, 0, 0)[-1] == "8 Mi"
    assert sorted_by(tab) == ["samples, ascending"]
    assert sorted_by(tab, 1) == []


@needs_browser
def test_a_head_is_reached_and_sorts_by_keyboard(shown):
    tab, path = shown
    tab.open(path)
    tab.run("document.querySelector('.wide').focus()")
    tab.press("Tab")
    assert tab.run("document.activeElement.ariaLabel").startswith("samples")
    tab.press(" ")
    assert column(tab, 0, 0)[-1] == "8 Mi"
    tab.press("ArrowRight")
    assert sorted_by(tab) == [tab.run("document.activeElement.ariaLabel")]
    assert column(tab, 0, 0)[0] == "8 Mi"


@needs_browser
def test_words_sort_as_words_and_gaps_come_last(shown):
    tab, path = shown
    tab.open(path)
    row, last = "document.querySelector('tbody tr').style", report_page.LAST
    tab.run(f"{row}.setProperty('--2', {last})")
    for click in ("ascending", "descending"):
        tab.click(*middle(tab, "table th:nth-child(2)"))
        assert column(tab, 0, 0)[-1] == "64 Ki", click
    case = tab.run("[...document.querySelectorAll('thead th:first-child')].findIndex(h => h.textContent == 'case')")
    tab.click(*middle(tab, "thead th:first-child", case))
    names = column(tab, case, 0)
    assert names[:3] == ["denoise 1 Mi", "denoise 16 Mi", "denoise 16 Mi bior4.4"]
    assert names[-2:] == ["forward 16 Mi", "inverse 16 Mi"]


@needs_browser
def test_heads_and_first_cells_stay_where_a_table_scrolls(shown):
    tab, path = shown
    tab.open(path, width=360, height=800)
    moved = tab.run(
        """(async () => {
          const wide = [...document.querySelectorAll(".wide")].find(
            e => e.scrollWidth > e.clientWidth + 50 && e.scrollHeight > e.clientHeight + 50);
          wide.scrollIntoView({block: "center", behavior: "instant"});
          wide.scrollTo(50, 50);
          for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
          const [box, head, cell] = [wide, wide.querySelector("thead th"), wide.querySelector("tbody tr:last-child th")]
            .map(e => e.getBoundingClientRect());
          return [head.top - box.top - wide.clientTop, head.left - box.left, cell.left - box.left]; })()"""
    )
    assert moved == pytest.approx([0, 0, 0], abs=1)


ROOTS = "Object.values(Bokeh.index.roots)"
MARKS = """view.model.renderers.filter(r => r.data_source.data.text && ["Scatter", "HBar"].includes(r.glyph.type))"""


def mark(tab, text):
    """Scroll to the plot of the first point that tells this, and its place on the screen."""
    return tab.run(
        f"""(async () => {{ for (const view of {ROOTS}) for (const r of {MARKS}) {{
          const data = r.data_source.data, i = [...data.text].findIndex(t => t.startsWith({json.dumps(text)}));
          if (i < 0) continue;
          view.el.scrollIntoView({{block: "center", behavior: "instant"}});
          for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
          const bar = r.glyph.type == "HBar", box = view.canvas_view.el.getBoundingClientRect();
          const across = bar || r.glyph.x.field == "value";
          const [x, y] = across ? [data.value[i] * (bar ? .5 : 1), data.place[i]] : [data.place[i], data.value[i]];
          return [box.left + view.frame.x_scale.compute(x), box.top + view.frame.y_scale.compute(y)];
        }} }})()"""
    )


TIP = """(async () => { for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
  const inside = e => [e, ...(e.shadowRoot ? [...e.shadowRoot.querySelectorAll("*")].flatMap(inside) : [])];
  const tips = [...document.querySelectorAll("*")].flatMap(inside).filter(e => e.matches(".bk-tooltip-content"));
  return tips.filter(e => e.checkVisibility()).map(e => {
    const box = e.getBoundingClientRect(); return [e.textContent, box.left, box.right]; }); })()"""


@needs_browser
def test_a_point_under_the_mouse_says_what_it_is(shown):
    tab, path = shown
    tab.open(path)
    tab.point(*mark(tab, "numba all cores\n64 Ki"))
    ((said, _, _),) = tab.run(TIP)
    assert said.startswith("numba all cores\n64 Ki samples: 0.526 ms")
    case = load("cpu.json")["cases"][0]
    tab.point(*mark(tab, case["name"]))
    assert tab.run(TIP)[0][0].startswith(f"{case['name']}\n{number(case['ratio'])} times as fast, target 10")
    tab.point(*middle(tab, "h2"))
    assert tab.run(TIP) == []


@needs_browser
def test_an_entry_of_the_legend_hides_its_line_in_every_panel(shown):
    tab, path = shown
    tab.open(path)
    entry = """(async () => { const legend = document.querySelector(".legend");
      legend.scrollIntoView({block: "center", behavior: "instant"});
      for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
      const inside = e => [e, ...(e.shadowRoot ? [...e.shadowRoot.querySelectorAll("*")].flatMap(inside) : [])];
      const found = [...legend.querySelectorAll("*")].flatMap(inside);
      const box = found.find(e => e.textContent == "numba all cores" && e.matches(".bk-item")).getBoundingClientRect();
      return [(box.left + box.right) / 2, (box.top + box.bottom) / 2]; })()"""
    hidden = f"""{ROOTS}.slice(0, 2).map(view => {MARKS}.filter(r => !r.visible).map(
      r => r.data_source.data.text[0].split("\\n")[0]))"""
    assert tab.run(hidden) == [[], []]
    tab.click(*tab.run(entry))
    assert tab.run(hidden) == [["numba all cores"]] * 2
    tab.click(*tab.run(entry))
    assert tab.run(hidden) == [[], []]


@needs_browser
def test_axes_have_round_numbers(shown):
    tab, path = shown
    tab.open(path)
    labels = f"""{ROOTS}.slice(0, 1).flatMap(view => [view.model.below[0], view.model.left[0]].map(axis => {{
      const shown = view.views.find_one(axis), at = shown.tick_coords.major[shown.dimension];
      return [[...at], shown.compute_labels(at).items.map(label => label.text)]; }}))"""
    (places, sizes), (times, numbers) = tab.run(labels)
    assert dict(zip(places, sizes, strict=True))[65536] == "64 Ki"
    assert dict(zip(places, sizes, strict=True))[8 << 20] == "8 Mi"
    assert (times, numbers) == ([1, 10, 100, 1000], ["1", "10", "100", "1000"])


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(shown, dark):
    tab, path = shown
    tab.open(path, width=360, height=800, dark=dark)
    assert tab.run("[innerWidth, document.documentElement.scrollWidth]") == [360, 360]
    assert (
        tab.run(
            "[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide')"
            " && e.getBoundingClientRect().right > 360.5).length"
        )
        == 0
    )
    assert tab.run("[...document.querySelectorAll('.wide')].some(e => e.scrollWidth > e.clientWidth)")
    tab.touch(*mark(tab, "numba all cores\n256 Ki"))
    ((said, left, right),) = tab.run(TIP)
    tab.lift()
    assert said.startswith("numba all cores\n256 Ki samples")
    assert 0 <= left < right <= 360
    colours = tab.run("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
    assert contrast(*colours) > 12
    assert (luminance(colours[1]) < 0.1) == dark


def luminance(colour):
    """Relative, as WCAG 2 defines it, of rgb(r, g, b)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    return sum(
        weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
        for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
    )


def contrast(a, b):
    light, dark = sorted(map(luminance, (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@needs_browser
def test_a_wide_table_shows_that_it_scrolls(shown, tmp_path):
    """A shadow at its right edge, which is gone at the end."""
    image = pytest.importorskip("PIL.Image")
    tab, path = shown
    tab.open(path, width=360, height=800)
    edges = []
    for end in (0, 9999):
        right, top = tab.run(
            f"""(async () => {{
              const wide = [...document.querySelectorAll(".wide")].find(e => e.scrollWidth > e.clientWidth + 50);
              wide.scrollIntoView({{block: "center", behavior: "instant"}});
              wide.scrollLeft = {end};
              for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
              const row = wide.querySelector("tbody tr td").getBoundingClientRect();
              return [2 * wide.getBoundingClientRect().right, 2 * row.top]; }})()"""
        )
        tab.picture(tmp_path / "wide.png")
        box = (round(right) - 4, round(top) + 6, round(right) - 2, round(top) + 20)
        edges.append(sum(image.open(tmp_path / "wide.png").convert("L").crop(box).tobytes()) / 28)
    assert edges[0] < 200 < 240 < edges[1]


@needs_browser
def test_without_script_tables_are_there_and_it_says_where_the_plots_are(shown):
    tab, path = shown
    tab.open(path, script=False)
    head = "document.querySelector('table th:nth-child(4)')"
    tab.run(f"{head}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    for _ in range(2):
        tab.click(*tab.run(f"(r => [(r.left + r.right) / 2, (r.top + r.bottom) / 2])({head}.getBoundingClientRect())"))
    numbers = [float(cell.split()[0]) for cell in column(tab, 0, 3)]
    assert numbers == sorted(numbers, reverse=True)
    assert tab.run("[...document.querySelectorAll('table')].every(e => e.getBoundingClientRect().height > 90)")
    assert tab.run("document.querySelector('noscript').textContent").startswith("The plots need JavaScript")
    assert tab.run("document.querySelector('noscript').getBoundingClientRect().height") > 10
    tab.open(path)


@needs_browser
def test_paper_shows_whole_tables_in_ink(shown):
    tab, path = shown
    tab.open(path, dark=True)
    tab.say("Emulation.setEmulatedMedia", media="print")
    try:
        assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        box = "(s => [s.maxHeight, s.overflowX, s.overflowY])(getComputedStyle(document.querySelector('.wide')))"
        assert tab.run(box) == ["none", "visible", "visible"]
        assert tab.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    finally:
        tab.say("Emulation.setEmulatedMedia", media="")
