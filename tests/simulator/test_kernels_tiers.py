"""Which tier serves which host and machine, and the instructions each tier compiles to."""

import re

import machines
import pytest
from llvmlite import binding as llvm

from simulator.kernels import Kernels, tiers
from simulator.kernels.compile import assembly
from simulator.kernels.module import emit_module
from simulator.kernels.tiers import TIERS, choose_tier, runnable_tiers
from simulator.kernels.transpose import transpose_steps
from vta_isa.errors import VtaError
from vta_isa.machine import Machine, load_machine

DEFAULT = load_machine("default")
BY_NAME = {tier.name: tier for tier in TIERS}
X86, ARM, RISCV = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "riscv64-unknown-linux-gnu",
)

# Tier, target, features beyond the tier's own, what its GEMM is made of.
EXPECTED = [
    ("amx", X86, "", r"tdpbssd\s.*%tmm"),
    ("vnni512", X86, "", r"vpdpbusd\s.*%zmm"),
    ("vnni256", X86, "", r"vpdpbusd\s.*%ymm"),
    ("avx512", X86, "", r"vpmaddwd\s.*%zmm"),
    ("avx512", X86, "avx512vnni", r"vpdpwssd\s.*%zmm"),
    ("avx2", X86, "", r"vpmaddwd\s.*%ymm"),
    ("sse2", X86, "", r"\spmaddwd\s.*%xmm"),
    ("sdot", ARM, "", r"\ssdot\sv\d+\.4s, v\d+\.16b, v\d+\.(16b|4b\[\d\])"),
    ("generic", ARM, "", r"\s(mla|smlal2?)\sv\d+"),
    ("generic", RISCV, "m a f d c v", r"\sv(w)?(macc|mul|mulsu)\.v"),
    ("generic", X86, "avx2", r"vpmulld\s.*%ymm|vpmaddwd\s.*%ymm"),
]


@pytest.fixture(scope="module", autouse=True)
def _all_code_generators():
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def gemm_of(machine, tier, triple, features):
    """Assembly of the function that multiplies."""
    code = assembly(emit_module(machine, tier), triple, features)
    start = re.search(r"^gemm:", code, re.MULTILINE)
    return code[start.start() : code.index("\nreset:")]


@pytest.mark.parametrize(("name", "triple", "extra", "pattern"), EXPECTED)
def test_gemm_is_made_of_the_instructions_the_tier_is_named_for(name, triple, extra, pattern):
    tier = BY_NAME[name]
    features = tier.features(tier.needs[0] | set(extra.split()))
    code = gemm_of(DEFAULT, tier, triple, features)
    assert re.search(pattern, code), code


@pytest.mark.parametrize("name", [tier.name for tier in TIERS])
@pytest.mark.parametrize("block", [1, 4, 8, 16, 32])
def test_every_tier_compiles_for_every_block(name, block):
    """LLVM ends the process where a target lacks an instruction; each alternative must compile."""
    tier = BY_NAME[name]
    entries = 64
    sram = {"uop": 4 * entries, "inp": block, "wgt": block**2, "acc": 4 * block}
    machine = load_machine(
        {
            "gemm": {"block_in": block, "block_out": block},
            "sram": {memory: size * entries for memory, size in sram.items()},
        }
    )
    if not tier.supports(machine):
        assert block < (16 if name == "amx" else 4)
        return
    triple = ARM if tier.arch == "aarch64" else X86
    for needed in tier.needs:
        assert "gemm" in gemm_of(machine, tier, triple, needed)


def test_vnni256_needs_no_avx512():
    """CPUs with avxvnni alone; the registers above 15 and zmm are AVX-512."""
    needs = BY_NAME["vnni256"].needs[1]
    assert needs == {"avx2", "avxvnni"}
    code = gemm_of(DEFAULT, BY_NAME["vnni256"], X86, needs)
    assert re.search(r"\{vex\}\s+vpdpbusd", code)
    assert not re.search(r"zmm|[xy]mm(1[6-9]|[23]\d)", code)


# Features of hosts as LLVM spells them; the tier that serves the default machine, and one with
# 16-bit weights.
HOSTS = [
    ("x86", "sse2 avx2 avx512f avx512bw avx512vl avx512vnni amx-tile amx-int8", "amx", "avx512"),
    ("x86", "sse2 avx2 avx512f avx512bw avx512vl avx512vnni", "vnni512", "avx512"),
    ("x86", "sse2 avx2 avx512f avx512bw avx512vl", "avx512", "avx512"),
    ("x86", "sse2 avx2 avxvnni", "vnni256", "avx2"),
    ("x86", "sse2 avx2", "avx2", "avx2"),
    ("x86", "sse2", "sse2", "sse2"),
    ("aarch64", "neon dotprod", "sdot", "generic"),
    ("aarch64", "neon", "generic", "generic"),
    ("riscv64", "m a f d c v", "generic", "generic"),
    ("x86", "", "generic", "generic"),
]


def pretend(monkeypatch, arch, features):
    monkeypatch.setattr(tiers, "architecture", lambda: arch)
    monkeypatch.setattr(tiers, "host_features", lambda: frozenset(features.split()))


@pytest.mark.parametrize(("arch", "features", "plain", "wide"), HOSTS)
def test_the_fastest_tier_is_chosen_by_features(monkeypatch, arch, features, plain, wide):
    pretend(monkeypatch, arch, features)
    assert choose_tier(DEFAULT).name == plain
    assert choose_tier(DEFAULT.replace(types={"wgt": "int16"})).name == wide


@pytest.mark.parametrize(
    ("gemm", "name"),
    [
        ({"block_out": 8}, "vnni512"),
        ({"block_out": 2, "block_in": 64, "batch": 8}, "generic"),
        ({"block_in": 2, "block_out": 64, "batch": 4}, "avx512"),
        ({"block_in": 1, "block_out": 64, "batch": 8}, "generic"),
    ],
)
def test_blocks_too_narrow_for_a_tier_get_another(monkeypatch, gemm, name):
    pretend(monkeypatch, "x86", "sse2 avx2 avx512f avx512bw avx512vl avx512vnni")
    sram = {"inp": "2 KiB", "wgt": "8 KiB", "acc": "8 KiB", "uop": "1 KiB"}
    assert choose_tier(Machine.model_validate({"gemm": gemm, "sram": sram})).name == name


def test_a_tier_the_host_lacks_is_refused_by_name(monkeypatch):
    pretend(monkeypatch, "x86", "sse2 avx2")
    with pytest.raises(VtaError, match=r"'vnni512' needs x86 with .*avx512vnni.*runs avx2, sse2"):
        Kernels(DEFAULT, "vnni512")
    with pytest.raises(VtaError, match="'sdot' needs aarch64 with dotprod neon"):
        Kernels(DEFAULT, "sdot")


def test_a_tier_the_machine_does_not_fit_is_refused_by_name(monkeypatch):
    pretend(monkeypatch, "x86", "sse2 avx2 avx512f avx512bw avx512vl avx512vnni")
    with pytest.raises(VtaError, match=r"'vnni512' cannot serve .*wgt int16.*these can: avx512"):
        Kernels(DEFAULT.replace(types={"wgt": "int16"}), "vnni512")


def test_an_engine_that_does_not_exist_is_refused():
    with pytest.raises(VtaError, match="'fast' does not exist; engines are auto, numpy, native"):
        Kernels(DEFAULT, "fast")


@pytest.mark.parametrize(("variable", "name"), [("numpy", "numpy"), ("generic", "generic")])
def test_the_environment_names_the_engine_where_nobody_else_does(monkeypatch, variable, name):
    tiny = machines.machine("tiny")
    monkeypatch.setenv("VTA_SIMULATOR", variable)
    assert Kernels(tiny).engine_name == name
    assert Kernels(tiny, "native").engine_name == runnable_tiers(tiny)[0].name


def test_an_empty_environment_variable_is_none(monkeypatch):
    monkeypatch.setenv("VTA_SIMULATOR", "")
    tiny = machines.machine("tiny")
    assert Kernels(tiny).engine_name == runnable_tiers(tiny)[0].name


def test_a_host_llvm_cannot_describe_has_no_features(monkeypatch):
    def unknown():
        raise RuntimeError("not supported")

    monkeypatch.setattr(llvm, "get_host_cpu_features", unknown)
    tiers.host_features.cache_clear()
    try:
        assert tiers.host_features() == frozenset()
    finally:
        tiers.host_features.cache_clear()


@pytest.mark.parametrize("allowed", [True, False])
def test_tiles_are_used_where_the_system_allows_them(monkeypatch, allowed):
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {"avx2": True, "amx-tile": True})
    monkeypatch.setattr(tiers, "_may_use_tiles", lambda: allowed)
    tiers.host_features.cache_clear()
    try:
        assert tiers.host_features() == {"avx2", *({"amx-tile"} if allowed else ())}
    finally:
        tiers.host_features.cache_clear()


@pytest.mark.parametrize("rows", [1, 4, 8, 16, 32])
@pytest.mark.parametrize("columns", [1, 2, 4, 8])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_shuffles_transpose(rows, columns, lanes):
    lanes = min(lanes, rows * columns)
    registers = [list(range(k, k + lanes)) for k in range(0, rows * columns, lanes)]
    for step in transpose_steps(rows, columns, lanes):
        pairs = [(registers[s.a] + registers[s.b], s.lanes) for s in step]
        registers = [[both[lane] for lane in picked] for both, picked in pairs]
    want = [row * columns + column for column in range(columns) for row in range(rows)]
    assert [element for register in registers for element in register] == want
