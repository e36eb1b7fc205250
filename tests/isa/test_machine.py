"""What a machine description means."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from isa_strategies import machines

from vta_isa import (
    Buffer,
    Machine,
    MachineError,
    load_machine,
    preset_folder,
    preset_names,
    preset_path,
)
from vta_isa.packing import pairing

DEFAULT = load_machine("default")


def test_every_default_is_the_published_machine() -> None:
    assert load_machine({"name": "default"}) == DEFAULT
    assert Machine(name="default") == DEFAULT


def test_the_published_machine_has_the_published_numbers() -> None:
    shapes = {buffer: DEFAULT.entry_shape(buffer) for buffer in Buffer}
    assert shapes == {
        Buffer.UOP: (1, 1),
        Buffer.WGT: (16, 16),
        Buffer.INP: (1, 16),
        Buffer.ACC: (1, 16),
        Buffer.OUT: (1, 16),
        Buffer.ACC_8BIT: (1, 16),
    }
    assert [DEFAULT.entry_bytes(buffer) for buffer in Buffer] == [4, 256, 16, 64, 16, 16]
    assert [DEFAULT.depth(buffer) for buffer in Buffer] == [8192, 1024, 2048, 2048, 2048, 2048]
    assert [DEFAULT.index_bits(buffer) for buffer in Buffer] == [13, 10, 11, 11, 11, 11]
    assert [DEFAULT.bits(buffer) for buffer in Buffer] == [32, 8, 8, 32, 8, 8]
    assert (DEFAULT.bus_bytes, DEFAULT.macs_per_cycle, DEFAULT.clock) == (8, 256, 100_000_000)
    assert DEFAULT.shape == "1x16x16_i8w8a32o8"


def test_presets_are_the_promised_ones() -> None:
    promised = {"default", "default-ext", "pynq", "ultra96", "zcu104", "de10nano", "tiny"}
    promised |= {"ecp5", "zynq7020"}
    assert set(preset_names("machines")) == promised


@pytest.mark.parametrize("name", preset_names("machines"))
def test_a_preset_is_named_after_its_file_and_loads_by_path_too(name: str) -> None:
    machine = load_machine(name)
    assert machine.name == name
    assert load_machine(preset_path("machines", name)) == machine
    assert load_machine(str(preset_path("machines", name))) == machine
    assert load_machine(machine) is machine


@pytest.mark.parametrize("name", preset_names("machines"))
def test_a_preset_says_what_every_line_means(name: str) -> None:
    lines = preset_path("machines", name).read_text().splitlines()
    values = [line for line in lines[1:] if not line.endswith(":") and not line.startswith("name")]
    assert lines[0].startswith("# ")
    assert all(" # " in line for line in values)


@pytest.mark.parametrize("name", preset_names("machines"))
def test_a_preset_writes_every_key_but_the_optional_seed(name: str) -> None:
    written = yaml.safe_load(preset_path("machines", name).read_text())
    expected = load_machine(name).model_dump()
    assert expected["memory"].pop("jitter") is None
    assert {key: set(v) if isinstance(v, dict) else None for key, v in written.items()} == {
        key: set(v) if isinstance(v, dict) else None for key, v in expected.items()
    }


def test_boards_differ_from_the_published_machine_as_documented() -> None:
    assert load_machine("pynq").hash == DEFAULT.hash
    for name in ("ultra96", "zcu104"):
        machine = load_machine(name)
        assert (machine.axi.data_bits, machine.clock) == (128, 333_000_000)
    de10nano = load_machine("de10nano")
    assert (de10nano.axi.data_bits, de10nano.axi.burst_beats, de10nano.clock) == (64, 16, 10**8)


def test_packing_is_part_of_the_architecture_and_unsaid_when_it_is_one() -> None:
    one = load_machine({"gemm": {"packing": 1}})
    two = load_machine({"gemm": {"packing": 2}})
    assert one.hash == DEFAULT.hash == "cf5d1f52973ad2f4"  # as before there was packing
    assert one.gemm == DEFAULT.gemm
    assert "packing" not in one.model_dump_json()
    assert two.hash != DEFAULT.hash
    assert load_machine(two.model_dump()) == two
    assert two.replace(name="still", gemm={"batch": 1}).gemm.packing == 2
    assert two.replace(gemm={"packing": 1}).hash == DEFAULT.hash


@pytest.mark.parametrize(
    ("inp", "wgt", "batch", "block_out", "along"),
    [
        ("int8", "int8", 1, 2, "block_out"),
        ("int8", "int8", 2, 1, "batch"),
        ("int8", "int8", 1, 1, None),
        ("int16", "int4", 1, 2, "block_out"),  # 16 x 25 bits: just fits
        ("int16", "int4", 2, 1, None),
        ("int4", "int16", 2, 2, "batch"),
        ("int16", "int8", 2, 2, None),
        ("int2", "int2", 1, 4, "block_out"),
    ],
)
def test_pairs_are_products_that_share_a_factor(
    inp: str, wgt: str, batch: int, block_out: int, along: str | None
) -> None:
    machine = load_machine(
        {
            "gemm": {"batch": batch, "block_out": block_out, "block_in": 4},
            "types": {"inp": inp, "wgt": wgt},
            "sram": {"uop": "256 B", "inp": "1 KiB", "wgt": "1 KiB", "acc": "1 KiB"},
        }
    )
    found = pairing(machine)
    assert (found and found.along) == along
    if along:
        assert machine.replace(gemm={"packing": 2}).gemm.packing == 2
    else:
        with pytest.raises(MachineError, match=r"leave gemm.packing at 1, or take narrower types"):
            machine.replace(gemm={"packing": 2})


def test_the_zynq7020_machine_is_the_published_one_with_half_the_multipliers() -> None:
    machine = load_machine("zynq7020")
    assert machine == DEFAULT.replace(name="zynq7020", gemm={"packing": 2})


def test_the_ecp5_machine_fits_the_part() -> None:
    machine = load_machine("ecp5")
    multipliers = machine.macs_per_cycle + 4 * machine.gemm.batch * machine.gemm.block_out
    assert multipliers <= 156  # an int32 ALU lane multiplies with four 18x18
    buffers = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC, Buffer.OUT)  # ACC twice
    blocks = 0
    for buffer in buffers:
        # Widest shapes of one 18-kbit block: 512 x 36, 1024 x 18, 2048 x 9.
        width = max(36 * 512 // max(machine.depth(buffer), 512), 1)
        blocks += -(-machine.entry_bits(buffer) // width)
    assert blocks <= 208 * 3 // 4  # the rest is for queues


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("32 KiB", 32768),
        ("32KiB", 32768),
        ("0.5 KiB", 512),
        ("512 B", 512),
        ("1 MiB", 2**20),
        (" 4_096 ", 4096),
        (4096, 4096),
    ],
)
def test_sizes_have_units(text: object, expected: int) -> None:
    wide = {"base": "tiny", "gemm": {"block_in": 16}}  # so that a MiB of INP is not too deep
    assert load_machine({**wide, "sram": {"inp": text}}).sram.inp == expected


@pytest.mark.parametrize(
    ("text", "hertz"), [("100 MHz", 10**8), ("33.3 MHz", 33_300_000), ("1 GHz", 10**9), (5, 5)]
)
def test_clocks_have_units(text: object, hertz: int) -> None:
    assert load_machine({"clock": text}).clock == hertz


def test_a_file_without_a_name_is_named_after_itself(tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"
    path.write_text("gemm: {batch: 2}\n")
    assert load_machine(path).name == "wide"


def test_an_empty_file_is_the_published_machine(tmp_path: Path) -> None:
    path = tmp_path / "default.yaml"
    path.write_text("# nothing\n")
    assert load_machine(path) == DEFAULT


def test_a_description_changes_its_base(tmp_path: Path) -> None:
    (tmp_path / "wide.yaml").write_text("base: ultra96\ngemm: {batch: 2}\n")
    (tmp_path / "slow.yaml").write_text("base: wide.yaml\nmemory: {read_latency: 100}\n")
    machine = load_machine(tmp_path / "slow.yaml")
    assert machine.name == "slow"
    assert (machine.axi.data_bits, machine.gemm.batch, machine.gemm.block_in) == (128, 2, 16)
    assert (machine.memory.read_latency, machine.memory.write_latency) == (100, 8)
    assert load_machine({"base": "tiny", "axi": {"data_bits": 64}}).gemm.block_in == 4


def test_replace_changes_keys_and_validates() -> None:
    machine = DEFAULT.replace(sram={"uop": "4 KiB"}, name="small")
    assert (machine.sram.uop, machine.sram.inp, machine.name) == (4096, 32768, "small")


def test_machines_are_values() -> None:
    assert hash(load_machine("tiny")) == hash(load_machine("tiny"))
    assert pickle.loads(pickle.dumps(DEFAULT)) == DEFAULT
    with pytest.raises(ValueError, match="frozen"):
        DEFAULT.name = "other"  # type: ignore[misc]


def test_the_hash_is_pinned() -> None:
    # RTL carries it in a register: a change here makes every bitstream built before unusable.
    assert DEFAULT.hash == "cf5d1f52973ad2f4"
    assert load_machine("tiny").hash == "41d39eba2fea2bf9"


def test_the_hash_ignores_order_name_clock_and_memory() -> None:
    keys = DEFAULT.model_dump()
    backwards = {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value
        for key, value in reversed(keys.items())
    }
    same = load_machine(backwards).replace(
        name="x", clock="1 MHz", memory={"read_latency": 1, "write_latency": 2, "jitter": 3}
    )
    assert same.hash == DEFAULT.hash


CHANGES = {
    "batch": {"gemm": {"batch": 2}},
    "block_in": {"gemm": {"block_in": 8}},
    "block_out": {"gemm": {"block_out": 8}},
    "inp": {"types": {"inp": "int4"}},
    "wgt": {"types": {"wgt": "int4"}},
    "acc": {"types": {"acc": "int16"}},
    "out": {"types": {"out": "int16"}},
    "uop size": {"sram": {"uop": "4 KiB"}},
    "inp size": {"sram": {"inp": "4 KiB"}},
    "wgt size": {"sram": {"wgt": "4 KiB"}},
    "acc size": {"sram": {"acc": "4 KiB"}},
    "data bits": {"axi": {"data_bits": 128}},
    "address bits": {"axi": {"addr_bits": 40}},
    "burst": {"axi": {"burst_beats": 128}},
    "outstanding": {"axi": {"outstanding_reads": 8}},
    "command": {"queues": {"command": 8}},
    "token": {"queues": {"token": 8}},
    "interval": {"alu": {"tensor_interval": 1}},
}


def test_the_hash_depends_on_everything_the_rtl_is_built_from() -> None:
    base = DEFAULT.replace(sram={"uop": 1024, "inp": 8192, "wgt": 8192, "acc": 8192})
    hashes = {name: base.replace(**change).hash for name, change in CHANGES.items()}
    assert len({base.hash, *hashes.values()}) == len(CHANGES) + 1


@settings(deadline=None)
@given(machines())
def test_derived_numbers_are_consistent(machine: Machine) -> None:
    for buffer in Buffer:
        rows, cols = machine.entry_shape(buffer)
        assert machine.entry_bits(buffer) == rows * cols * machine.bits(buffer)
        assert machine.entry_bits(buffer) == 8 * machine.entry_bytes(buffer)
        assert machine.depth(buffer) == 1 << machine.index_bits(buffer)
        low, high = machine.scalar_range(buffer)
        assert high - low == (1 << machine.bits(buffer)) - 1
        assert np.iinfo(machine.dtype(buffer)).max >= high
    assert machine.depth(Buffer.OUT) == machine.depth(Buffer.ACC)
    assert load_machine(machine.model_dump()) == machine


def test_preset_folders_exist() -> None:
    assert (preset_folder("machines") / "default.yaml").is_file()
