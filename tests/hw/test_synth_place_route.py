"""A design small enough to be placed and routed in seconds."""

from pathlib import Path

import pytest

from vta_hw.packed_multiply import PackedMultiply
from vta_hw.synth import FAMILIES, SynthesisError, check_route, place_route, route


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VTA_CACHE_DIR", str(tmp_path / "cache"))


def test_a_small_component_gets_a_clock_and_a_bitstream(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    figures, routed = route(
        PackedMultiply(3, 3), FAMILIES["ecp5"], top="pair", progress=said.append
    )
    assert figures.total.dsp == 1
    assert figures.total.ff == 12  # of both products, without the registers around
    assert 50 < routed.clock_mhz < 400
    assert routed.used["MULT18X18D"] == (1, 156)
    assert routed.used["TRELLIS_FF"][0] > 12
    assert b"LFE5U-85F" in routed.bitstream
    assert sum(delay for _, delay in routed.path_modules) == pytest.approx(
        1000 / routed.clock_mhz, rel=0.01
    )
    assert "" in {module for module, _ in routed.path_modules}
    assert list(dict.fromkeys(words.split()[0] for words in said)) == [
        "elaborating",
        "synthesising",
        "placing",
        "packing",
    ]
    assert "synthesising pair for ecp5: MEMORY_LIBMAP" in said
    assert any("Routing" in words for words in said)

    def must_not_run(*arguments: object) -> None:
        raise AssertionError("a tool ran")

    monkeypatch.setattr(place_route, "run_wasm_tool", must_not_run)
    monkeypatch.setattr(place_route, "map_to", must_not_run)
    again = route(PackedMultiply(3, 3), FAMILIES["ecp5"], top="pair")
    assert again == (figures, routed)


def test_place_and_route_aims_at_the_clock_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Asked(Exception):
        pass

    def ask(module: str, function: str, arguments: list[str], *others: object) -> None:
        raise Asked(arguments[arguments.index("--freq") + 1])

    monkeypatch.setattr(place_route, "run_wasm_tool", ask)
    with pytest.raises(Asked, match=r"^62\.5$"):
        route(PackedMultiply(3, 3), FAMILIES["ecp5"], top="pair", target_hz=62_500_000)


def test_families_without_delays_are_refused() -> None:
    with pytest.raises(SynthesisError, match=r"no place and route for gowin.*--family ecp5"):
        check_route(FAMILIES["gowin"])


def test_missing_nextpnr_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_route, "NEXTPNR", "yowasp-nextpnr-none")
    with pytest.raises(SynthesisError, match=r"yowasp-nextpnr-none is not.*vta-sdk\[synth\]"):
        check_route(FAMILIES["ecp5"])
