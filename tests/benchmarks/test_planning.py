"""Plans for clusters against values worked out by hand."""

from __future__ import annotations

import re

import pytest

from wavefilt.benchmarks.throughput import planning
from wavefilt.benchmarks.throughput.planning import Node, Pass, Site, Volume

NODE = Node(disk=2e9, network=4e9, look=1e9, denoise=0.5e9, merge=0.001)
SITE = Site(shared=10e9, task=0.001)
VOLUME = Volume(size=10**12, chunk=10**8, level=5, tasks=2)


def test_passes_of_each_trace_and_of_the_record():
    (last,) = planning.passes(VOLUME, "trace", NODE)
    assert last == Pass(read=1e12, written=1e12, sent=0, computing=2000, tasks=20_000)
    first, second, third = planning.passes(VOLUME, "record", NODE)
    assert third == last
    assert first == second
    # of 2.5e11 samples levels 1 to 5 have 1.25e11 to 7.8e9 details: tables of 65536 counts of 8 bytes
    assert first == Pass(1e12, 0, pytest.approx(10_000 * 5 * 65536 * 8 * 16 / 15), 1000 + 10, 20_000)


def test_tables_of_fewer_details_are_half_as_large():
    first, *_ = planning.passes(Volume(4 * 10**9, 10**8, 3, 2), "record", NODE)
    assert first.sent == pytest.approx(40 * 3 * 65536 * 4 * 16 / 15)


def test_seconds_of_every_resource():
    one = Pass(read=8e12, written=2e12, sent=4e12, computing=4000, tasks=3000)
    assert planning.seconds(one, NODE, SITE, 1) == pytest.approx(
        {"disk": 5000, "network": 2000, "computing": 4000, "file system": 1000, "scheduler": 3}
    )
    assert planning.seconds(one, NODE, SITE, 4) == pytest.approx(
        {"disk": 1250, "network": 11 / 16 * 1000, "computing": 1000, "file system": 1000, "scheduler": 3}
    )


@pytest.mark.parametrize(("computing", "task", "nodes"), [(4000, 0.001, 5), (5100, 0.001, 6), (4000, 1, 2), (1, 10, 1)])
def test_saturation_is_where_the_shared_resources_take_as_long(computing, task, nodes):
    one = Pass(read=8e12, written=2e12, sent=0, computing=computing, tasks=3000)
    site = Site(SITE.shared, task)
    assert planning.saturation(one, NODE, site) == nodes
    times = planning.seconds(one, NODE, site, nodes)
    assert max(times.values()) == max(times["file system"], times["scheduler"])


def test_a_plan_adds_up_its_passes():
    alone, many = (row for row in planning.plan(VOLUME, {"node": NODE}, SITE, [1, 100]) if row["scope"] == "record")
    # two looks of 1010 s and a last pass of 2000 s; then 100 s and 200 s of the file system
    assert (alone["seconds"], alone["statistics"], alone["limits"]) == (pytest.approx(4020), 2020, ["computing"])
    assert (many["seconds"], many["statistics"], many["limits"]) == (pytest.approx(400), 200, ["file system"])
    assert (alone["passes"], alone["moved"], alone["saturation"]) == (3, 4e12, 11)  # ceil(1010 / 100)


def test_rates_of_a_node_are_those_measured():
    results = {
        "cpu": {
            "environment": {"threads": 2},
            "cases": [{"name": "denoise 16 Mi, bayes, sigma per level", "samples": 1000, "numba": {"median": 0.5}}],
        },
        "cuda_h200": {"cases": [{"name": "device"}, {"where": "pageable", "samples": 3000, "call": {"median": 6}}]},
        "dask": {
            "merging": {
                "traces": 10,
                "samples": 500,
                "looks": 2,
                "chunks": 4,
                "tasks": 36,
                "spent": {"looks": 8, "merging": 0.4},
            }
        },
    }
    cpu, gpu = planning.measured(results, cores=3, gpus=2, disk=7, network=9).values()
    # 4000 bytes in half a second of 2 cores; 40000 bytes looked at in 8 s; 0.4 s of merging for 4 chunks and 2 looks
    assert cpu == Node(7, 9, look=15_000, denoise=12_000, merge=pytest.approx(0.05 / 3))
    assert gpu == Node(7, 9, look=15_000, denoise=4_000_000, merge=cpu.merge)
    assert planning.tasks_of(results) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nodes", "1,x"],
        ["--nodes", ""],
        ["--disk", "0"],
        ["--volume", "much"],
        ["--task", "nan"],
        ["--task", "0"],
        ["--cores", "0"],
        ["--gpus", "x"],
    ],
)
def test_what_is_no_number_is_told(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        planning.main(arguments)
    assert ended.value.code == 2
    assert f"Invalid value for '{arguments[0]}': '{arguments[1].split(',')[-1]}' is no" in capsys.readouterr().err


def test_a_missing_study_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "RESULTS", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"cpu\.json is missing: run that study"):
        planning.load()


def test_the_command_prints_a_row_for_each_number_of_nodes(capsys):
    planning.main(["--volume", "1TB", "--nodes", "3,7", "--cores", "4"], standalone_mode=False)
    title, _, _, *lines = capsys.readouterr().out.splitlines()
    assert title == "1.00 TB of float32"
    expected = [
        (node, scope, n)
        for node in ("4 cores", "4 cores, 1 GPU")
        for scope in ("each trace", "the record")
        for n in "37"
    ]
    assert [tuple(re.split(r" {2,}", line.strip())[:3]) for line in lines[: lines.index("")]] == expected
