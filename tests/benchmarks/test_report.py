"""The page of `wavefilt bench report`: what it holds, and how it behaves in a real browser."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support import browser
from tests.support.checkout import run
from wavefilt.benchmarks.common.tables import number, size
from wavefilt.benchmarks.report import page as report_page
from wavefilt.benchmarks.report import sections
from wavefilt.benchmarks.report.drawing import Drawing, scale
from wavefilt.cli.bench import report as command

pytest.importorskip("matplotlib")

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


def page(tmp_path, *results):
    paths = [tmp_path / f"{i}.json" for i in range(len(results))]
    for path, result in zip(paths, results, strict=True):
        path.write_text(json.dumps(result))
    return report_page.page(sections.sections(paths))


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
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", text)
    assert len(text.encode()) < 1 << 20


def test_ids_are_unique_and_links_lead_to_one(text):
    document = Document(text)
    ids = [attributes["id"] for _, attributes in document.found if "id" in attributes]
    assert len(set(ids)) == len(ids)
    pointed = [a["href"][1:] for a in document.all("a")] + [s["aria-labelledby"] for s in document.all("section")]
    assert set(pointed) <= set(ids)
    assert len(document.all("a")) == len(RESULTS)


def test_cells_are_those_of_the_study(tmp_path):
    result = load("scaling_cpu.json")
    first = Document(page(tmp_path, result)).tables[0]
    assert first[0] == ["samples", "GSL1 core", "PyWavelets1 core", "numbaall cores"]
    row = result["rows"][0]["times"]
    assert [cell.split(" ")[0] for cell in first[1]] == ["64", *(f"{row[n]['median']:.3g}" for n in row)]


def test_every_time_is_a_point_that_says_it(tmp_path):
    result = load("scaling_cpu.json")
    titles = re.findall(r"<title>(numba all cores\n.*?ms)", page(tmp_path, result))
    assert titles == [
        f"numba all cores\n{size(row['samples'])} samples: {number(row['times']['numba']['median'])} ms"
        for row in result["rows"]
    ]


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
    assert len(document.all("script")) == 1
    assert not document.all("b")
    assert not [name for _, attributes in document.found for name in attributes if name.startswith("on")]
    assert evil.count("&lt;script&gt;") > 20


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
    assert [a["href"] for a in document.all("a")] == ["#study-1", "#study-2"]
    assert page(tmp_path, load("cpu.json"), load("cpu.json")).count("(1.json)</li>") == 1


def test_what_cannot_be_drawn_is_refused_by_name(tmp_path):
    result = load("cpu.json")
    for case in result["cases"]:
        case |= {"ratio": 0.0, "target": 0}
    with pytest.raises(sections.NotAStudy, match=r"0\.json: a damaged result .* ZeroDivisionError"):
        page(tmp_path, result)


def test_without_results_the_command_says_what_makes_some(tmp_path, monkeypatch):
    monkeypatch.setattr(sections, "RESULTS", tmp_path)
    done = CliRunner().invoke(command, ["-o", str(tmp_path / "report.html")])
    assert done.exit_code == 2
    assert "-o FILE" in done.output
    assert "bench cpu" in done.output


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
    titles = re.findall("<title>([^<]*)</title>", page(tmp_path, result))[1:]
    assert titles == [
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
    made = page(
        tmp_path, {"study": "new", "unit": "us", "method": "", "columns": {"a": {"heads": ["a"]}}, "rows": rows}
    )
    titles = re.findall("<title>([^<]*)</title>", made)[1:]
    assert titles[:3] == [f"a\n{block} block: 2.00 us (2.00 to 2.00)" for block in (64, 128, 256)]
    assert titles[3:] == [
        f"a, SKE estimate\n{b} block: {ms} us" for b, ms in ((64, "1.00"), (128, "2.00"), (256, "4.00"))
    ]


def test_launch_shapes_are_held_against_the_fixed_one(tmp_path):
    row = {"wavelet": "db4", "taps": 8, "rows": 1, "samples": 65536, "fixed": 4e-5, "ranked": [[128, 2048, 2e-5]]}
    made = page(tmp_path, {"study": "launch shapes", "fixed": [256, 4096], "rows": [row, row | {"samples": 131072}]})
    assert Document(made).tables[0][1] == ["db4", "1", "64 Ki", "40.0", "128", "2048", "20.0", "0.500", ""]
    assert "128 Ki samples: 2.00 times as fast" in made


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
    ("values", "ticks"),
    [
        ((0.526, 2855), ["1", "10", "100", "1000"]),
        ((3, 40), ["5", "10", "20"]),
        ((0.002, 90), ["0.01", "0.1", "1", "10", "100"]),
        ((-4.4, 9.5), ["-4", "0", "4", "8"]),
    ],
)
def test_axes_have_round_numbers_and_hold_all_values(values, ticks):
    axes = Drawing("some", 320, (0, 0, 0, 0)).axes
    axes.plot(values, values)
    scale(axes.yaxis, values)
    low, high = axes.get_ylim()
    assert low < min(values) < max(values) < high
    assert [axes.yaxis.get_major_formatter()(v) for v in axes.get_yticks() if low <= v <= high] == ticks


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
    return tab.run(
        f"[...document.querySelectorAll('table')[{table}].tBodies[0].rows].map(r => r.cells[{index}].textContent)"
    )


@needs_browser
def test_a_click_on_a_head_sorts_numbers_as_numbers(shown):
    tab, path = shown
    tab.open(path)
    before = column(tab, 0, 3)
    numbers = sorted((float(cell.split()[0]) for cell in before), reverse=True)
    head = "table th:nth-child(4)"
    for direction in ("ascending", "descending"):
        tab.click(*middle(tab, f"{head} button"))
        assert tab.run(f"document.querySelector('{head}').ariaSort") == direction
        numbers.reverse()
        assert [float(cell.split()[0]) for cell in column(tab, 0, 3)] == numbers
    tab.click(*middle(tab, "table th button"))
    assert column(tab, 0, 3) == before
    assert column(tab, 0, 0)[:2] == ["64 Ki", "128 Ki"]
    assert column(tab, 0, 0)[-1] == "8 Mi"
    sorts = tab.run("[...document.querySelectorAll('table')[0].tHead.rows[0].cells].map(c => c.ariaSort)")
    assert sorts == ["ascending", "none", "none", "none"]


@needs_browser
def test_a_head_is_reached_and_sorts_by_keyboard(shown):
    tab, path = shown
    tab.open(path)
    tab.run("document.querySelector('.wide').focus()")
    tab.press("Tab")
    assert tab.run("document.activeElement.textContent") == "samples"
    tab.press("Enter")
    tab.press("Enter")
    assert tab.run("document.activeElement.parentElement.ariaSort") == "descending"
    assert column(tab, 0, 0)[0] == "8 Mi"


@needs_browser
def test_words_sort_as_words_and_gaps_come_last(shown):
    tab, path = shown
    tab.open(path)
    tab.run("document.querySelector('table td').removeAttribute('data-value')")
    for last in (2, 1):
        tab.click(*middle(tab, "table th:nth-child(2) button"))
        assert column(tab, 0, 0)[-1] == "64 Ki", last
    case = tab.run("[...document.querySelectorAll('thead th:first-child')].findIndex(h => h.textContent == 'case')")
    tab.click(*middle(tab, "thead th:first-child button", case))
    names = column(tab, case, 0)
    assert names[:3] == ["denoise 1 Mi", "denoise 16 Mi", "denoise 16 Mi bior4.4"]
    assert names[-2:] == ["forward 16 Mi", "inverse 16 Mi"]


@needs_browser
def test_a_point_under_the_mouse_says_what_it_is(shown):
    tab, path = shown
    tab.open(path)
    points = "[data-line='numba all cores'] .point"
    tab.point(*middle(tab, points))
    assert not tab.run("tip.hidden")
    assert tab.run("tip.textContent").startswith("numba all cores\n64 Ki samples: 0.526 ms")
    assert tab.run("document.querySelectorAll('.point.on').length") == 1
    assert tab.run("document.querySelector('[data-line=\"GSL 1 core\"]').classList.contains('faint')")
    tab.point(*middle(tab, ".bar"))
    case = load("cpu.json")["cases"][0]
    assert tab.run("tip.textContent").startswith(f"{case['name']}\n{number(case['ratio'])} times as fast, target 10")
    tab.point(*middle(tab, "h2"))
    assert tab.run("tip.hidden")
    assert tab.run("document.querySelectorAll('.faint, .point.on').length") == 0


@needs_browser
def test_points_are_gone_through_by_keyboard(shown):
    tab, path = shown
    tab.open(path)
    tab.run("document.querySelector('nav li:last-child a').focus()")
    tab.press("Tab")
    said = [tab.run("tip.textContent")]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        tab.press(key)
        said.append(tab.run("tip.textContent"))
    assert said == [
        f"2010: CPU (GSL)\n{n} Ki samples: {ms} ms"
        for n, ms in ((64, "12.0"), (128, "26.0"), (256, "81.0"), (128, "26.0"))
    ]
    assert tab.run("tip.role") == "status"
    tab.press("Escape")
    assert tab.run("tip.hidden")


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(shown, dark):
    tab, path = shown
    tab.open(path, width=360, height=800, dark=dark)
    assert tab.run("[innerWidth, document.documentElement.scrollWidth]") == [360, 360]
    assert (
        tab.run(
            "[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, svg')"
            " && e.getBoundingClientRect().right > 360.5).length"
        )
        == 0
    )
    assert tab.run("[...document.querySelectorAll('.wide')].some(e => e.scrollWidth > e.clientWidth)")
    x, y = middle(tab, "[data-line='numba all cores'] .point", 2)
    tab.touch(x, y)
    assert tab.run("tip.textContent").startswith("numba all cores\n256 Ki samples")
    left, right = tab.run("(r => [r.left, r.right])(tip.getBoundingClientRect())")
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
def test_without_script_tables_and_plots_are_there(shown):
    tab, path = shown
    tab.open(path, script=False)
    assert tab.run("document.querySelectorAll('button, #tip').length") == 0
    for selector in ("table", ".chart"):
        assert tab.run(
            f"[...document.querySelectorAll('{selector}')].every(e => e.getBoundingClientRect().height > 90)"
        )
    assert tab.run("document.querySelector('.point title').textContent").startswith("2010: CPU (GSL)")
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
