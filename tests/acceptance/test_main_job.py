"""What ``make run`` does: ResNet-18 on the default machine, right and as fast as promised."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
THREE_BY_THREE = ("C2", "C4", "C6", "C7", "C9", "C10", "C12")
ONE_BY_ONE = ("C3", "C5", "C8", "C11")
PEAK_UTILIZATION = 0.88  # the best layer of the VTA report with virtual threads, its Figure 15


@dataclass(frozen=True)
class Job:
    """What the job printed and saved."""

    out: str
    figures: dict[str, Any]
    picture: bytes

    def layers(self, vthreads: bool = True) -> dict[str, dict[str, Any]]:
        report = self.figures if vthreads else self.figures["without_vthreads"]
        return {layer["name"]: layer for layer in report["layers"]}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("job")
    (folder / "out").mkdir()
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^\t\$\(BIN\)/vta (run .*)$", makefile, flags=re.MULTILINE)
    assert found is not None
    vta = [sys.executable, "-P", "-c", "import sys; from vta.cli import main; sys.exit(main())"]
    ended = subprocess.run(
        [*vta, *shlex.split(found[1])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    figures = json.loads((folder / "out" / "resnet18.json").read_text())
    return Job(ended.stdout, figures, (folder / "out" / "roofline.png").read_bytes())


def test_every_layer_is_there_and_checked(job: Job) -> None:
    for vthreads in (False, True):
        layers = job.layers(vthreads)
        assert list(layers) == [f"C{number}" for number in range(1, 13)]
        for layer in layers.values():
            assert layer["checked"] is True
            assert layer["outputs"] > 0


def test_the_figures_have_the_promised_keys(job: Job) -> None:
    assert {"machine", "layers", "total"} <= set(job.figures)
    promised = "name macs instructions cycles utilization bound_cycles dram_read_bytes"
    for layer in job.figures["layers"]:
        assert set(f"{promised} dram_write_bytes stalls checked".split()) <= set(layer)


def test_totals_count_a_layer_as_often_as_the_network_runs_it(job: Job) -> None:
    layers = job.layers().values()
    for key in ("macs", "cycles", "bound_cycles", "dram_read_bytes", "instructions"):
        total = sum(layer["count"] * layer[key] for layer in layers)
        assert job.figures["total"][key] == total
    counted = job.figures["totals"]["C2-C12"]
    assert counted["macs"] == 6_623_232 * 256


@pytest.mark.parametrize(
    ("name", "most"),
    [*((name, 1.15) for name in THREE_BY_THREE), *((name, 1.30) for name in ONE_BY_ONE)],
)
def test_cycles_are_close_to_the_bound(job: Job, name: str, most: float) -> None:
    layer = job.layers()[name]
    assert 1 <= layer["cycles"] / layer["bound_cycles"] <= most


def test_no_layer_is_slower_with_virtual_threads(job: Job) -> None:
    without = job.layers(vthreads=False)
    for name, layer in job.layers().items():
        assert layer["cycles"] <= without[name]["cycles"], name


def test_virtual_threads_reach_the_utilization_of_the_report(job: Job) -> None:
    assert max(layer["utilization"] for layer in job.layers().values()) > PEAK_UTILIZATION


def test_tables_and_picture_show_both_runs(job: Job) -> None:
    for title in (
        "resnet18 on default, without virtual threads (simulator; every output checked)",
        "resnet18 on default, with virtual threads (simulator; every output checked)",
        "cycles in which a stage was not busy, by cause",
        "what virtual threads gain: cycles and GEMM use, without and with",
    ):
        assert title in job.out
    assert job.picture.startswith(b"\x89PNG")
    assert len(job.picture) > 10_000


def test_the_readme_shows_what_is_printed(job: Job) -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    begin = readme.index("what virtual threads gain:")
    shown = readme[begin : readme.index("```", begin)].split()
    begin = job.out.index("what virtual threads gain:")
    assert shown == job.out[begin:].split(), "print `make run` into the README again"
