"""Arguments, launches, flushes, debug modes and ownership of the device."""

import io

import numpy as np
import pytest

from simulator.checker import Code, check
from vta_isa import (
    AluOp,
    Buffer,
    RuntimeCallError,
    StreamError,
    as_words,
    load_machine,
    pack_entries,
    unpack_entries,
)
from vta_isa.assembly import parse_stream
from vta_runtime import DebugFlag, ReferenceDevice, Runtime, SimulatorDevice

FORCE_SERIAL = DebugFlag.FORCE_SERIAL
PAGE = 4096


def load(runtime, buffer, **change):
    arguments = {
        "src_elem_offset": 0,
        "x_size": 1,
        "y_size": 1,
        "x_stride": 1,
        "x_pad_before": 0,
        "y_pad_before": 0,
        "x_pad_after": 0,
        "y_pad_after": 0,
        "dst_sram_index": 0,
        "dst_mem_type": Buffer.INP,
    }
    runtime.load_buffer_2d(buffer, **{**arguments, **change})


def store(runtime, buffer, **change):
    arguments = {
        "src_sram_index": 0,
        "src_mem_type": Buffer.OUT,
        "dst": buffer,
        "dst_elem_offset": 0,
        "x_size": 1,
        "y_size": 1,
        "x_stride": 1,
    }
    runtime.store_buffer_2d(**{**arguments, **change})


def test_a_padded_strided_load_reaches_the_record_unmixed(runtime, recorder):
    buffer = runtime.buffer_alloc(8 * PAGE)
    load(
        runtime,
        buffer,
        src_elem_offset=9,
        x_size=2,
        y_size=3,
        x_stride=4,
        x_pad_before=5,
        y_pad_before=6,
        x_pad_after=7,
        y_pad_after=8,
        dst_sram_index=10,
        dst_mem_type=Buffer.WGT,
    )
    runtime.synchronize()
    record = recorder.tables[0][0]
    names = (
        "buffer sram_base y_size x_size x_stride y_pad_before y_pad_after x_pad_before x_pad_after"
    )
    assert [int(record[n]) for n in names.split()] == [1, 10, 3, 2, 4, 6, 8, 5, 7]
    assert record["dram_base"] == runtime.buffer(buffer).address // 256 + 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dst_mem_type": Buffer.UOP}, "dst_mem_type = 0 cannot be loaded .*micro-ops themselves"),
        ({"dst_mem_type": Buffer.OUT}, "dst_mem_type = 4 cannot be loaded"),
        ({"dst_mem_type": 6}, r"dst_mem_type = 6 .*\(WGT 1, INP 2, ACC 3, ACC_8BIT 5\)"),
        ({"x_size": 257}, "end at entry 257, but the buffer's 4096 bytes hold 256 of 16 bytes"),
        ({"y_size": 2, "x_stride": 256}, "2 rows of 1 INP entries, 256 apart, .* entry 257"),
        ({"src_elem_offset": 256}, "from entry 256 end at entry 257"),
        ({"src_elem_offset": -1}, "from entry -1"),
        ({"x_size": 65536, "y_size": 0}, "x_size = 65536 does not fit 16 bits"),
        ({"y_size": -1}, "y_size = -1 does not fit 16 bits"),
        ({"x_stride": 65536}, "x_stride = 65536 does not fit"),
        ({"x_pad_before": 16}, r"x_pad_before = 16 does not fit 4 bits \(0\.\.15 entry\)"),
        ({"y_pad_after": 16}, "y_pad_after = 16 does not fit 4 bits"),
        ({"dst_sram_index": 65536}, "sram_base = 65536 does not fit 16 bits"),
        (
            {"dst_sram_index": 2048},
            "1 x 1 entries from entry 2048 of INP end at 2049, past its 2048",
        ),
        ({"dst_sram_index": 2046, "x_pad_after": 2}, "1 x 3 entries .* end at 2049"),
        ({"dst_sram_index": 2046, "y_pad_before": 2}, "3 x 1 entries .* end at 2049"),
    ],
)
def test_bad_loads_are_refused(change, message, runtime):
    buffer = runtime.buffer_alloc(PAGE)
    with pytest.raises(RuntimeCallError, match=f"load_buffer_2d: .*{message}"):
        load(runtime, buffer, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"x_size": 256},
        {"src_elem_offset": 255},
        {"dst_sram_index": 2047},
        {"x_size": 0, "dst_sram_index": 65535, "x_pad_after": 15},
        {"y_size": 0, "y_pad_before": 15, "dst_sram_index": 2033},
    ],
)
def test_loads_up_to_the_edges_are_accepted(change, runtime):
    load(runtime, runtime.buffer_alloc(PAGE), **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"src_mem_type": Buffer.ACC}, r"src_mem_type = 3; only OUT \(4\) is stored"),
        ({"src_mem_type": 0}, "src_mem_type = 0"),
        (
            {"src_sram_index": 2048},
            "1 x 1 entries from entry 2048 of OUT end at 2049, past its 2048",
        ),
        ({"x_size": 257}, "end at entry 257, but the buffer's 4096 bytes"),
        ({"dst_elem_offset": 256}, "from entry 256"),
        ({"y_size": 65536, "x_size": 0}, "y_size = 65536 does not fit"),
    ],
)
def test_bad_stores_are_refused(change, message, runtime):
    buffer = runtime.buffer_alloc(PAGE)
    with pytest.raises(RuntimeCallError, match=f"store_buffer_2d: .*{message}"):
        store(runtime, buffer, **change)


def test_instructions_address_live_buffers_only(runtime):
    buffer = runtime.buffer_alloc(PAGE)
    runtime.buffer_free(buffer)
    with pytest.raises(RuntimeCallError, match=r"load_buffer_2d: buffer .* was freed already"):
        load(runtime, buffer)
    with pytest.raises(RuntimeCallError, match="store_buffer_2d: 0x5 is no buffer handle"):
        store(runtime, 5)


def add(runtime, entries, a, b, out):
    """The vector addition of the VTA report, listing 1, call for call; entries of ACC."""

    def record(r):
        r.uop_loop_begin(entries, 1, 1, 0)
        r.uop_push(1, 0, 0, entries, 0, AluOp.ADD, 0, 0)
        r.uop_loop_end()

    runtime.load_buffer_2d(a, 0, entries, 1, entries, 0, 0, 0, 0, 0, Buffer.ACC)
    runtime.load_buffer_2d(b, 0, entries, 1, entries, 0, 0, 0, 0, entries, Buffer.ACC)
    runtime.push_alu_op(("add", entries), record)
    runtime.dep_push(2, 3)
    runtime.dep_pop(2, 3)
    runtime.store_buffer_2d(0, Buffer.OUT, out, 0, entries, 1, entries)


def test_vector_add_gives_sums_and_a_captured_stream_replays(machine):
    runtime = Runtime(ReferenceDevice(machine, memory_bytes=1 << 20), keep_memory=True)
    rng = np.random.default_rng(0)
    x, y = rng.integers(-100, 100, (2, 1024), np.int32)
    a, b, out = runtime.upload(x), runtime.upload(y), runtime.buffer_alloc(1024)
    add(runtime, 64, a, b, out)
    launch = runtime.synchronize()
    sums = (x + y).astype(np.int8)
    np.testing.assert_array_equal(runtime.download(out, 1024, np.int8), sums)
    assert runtime.launches == [launch]
    assert launch.cycles > 0

    (stream,) = runtime.streams
    again = ReferenceDevice(machine, memory_bytes=1 << 20)
    again.write(0, stream.dram)
    at = stream.insn_address
    np.testing.assert_array_equal(
        as_words(again.read(at, stream.words.nbytes).copy()), stream.words
    )
    again.run(at, len(stream.words))
    address = runtime.buffer(out).address
    np.testing.assert_array_equal(again.read(address, 1024).view(np.int8), sums)


def test_streams_are_kept_only_when_asked_for(runtime, recorder):
    runtime.synchronize()
    assert runtime.streams == []
    kept = Runtime(recorder, keep_streams=True)
    kept.synchronize()
    assert [(len(s.words), s.dram) for s in kept.streams] == [(4, None)]


class TiledMatmul:
    """x (m, k) by w (n, k) on the tiny machine, double buffered by hand, tokens and all.

    Each output entry is a program of its own: load, multiply and store overlap from one to the
    next, so tokens are under way whenever the queue is flushed.
    """

    def __init__(self, runtime, seed):
        self.runtime = runtime
        machine = runtime.machine
        rng = np.random.default_rng(seed)
        block = machine.gemm.block_in
        self.m, self.n, self.k = 3, 3, 4
        x = rng.integers(-128, 128, (self.m, self.k, 1, block), np.int8)
        w = rng.integers(-128, 128, (self.n, self.k, block, block), np.int8)
        acc = np.einsum("mkbi,nkoi->mnbo", x.astype(np.int64), w.astype(np.int64))
        self.expected = acc.astype(np.int8)
        self.x = runtime.upload(pack_entries(x, Buffer.INP, machine))
        self.w = runtime.upload(pack_entries(w, Buffer.WGT, machine))
        self.out = runtime.buffer_alloc(self.m * self.n * machine.entry_bytes(Buffer.OUT))

    def run(self):
        r, k = self.runtime, self.k
        for _ in range(2):  # both halves of every memory are free
            r.dep_push(2, 1)
            r.dep_push(3, 2)
        for tile in range(self.m * self.n):
            i, j = divmod(tile, self.n)
            half = tile % 2

            def record(r, half=half):
                r.uop_loop_begin(k, 0, 1, 1)
                r.uop_push(0, 0, half, half * k, half * k, 0, 0, 0)
                r.uop_loop_end()

            def reset(r, half=half):
                r.uop_push(0, 1, half, 0, 0, 0, 0, 0)

            r.dep_pop(2, 1)
            r.load_buffer_2d(self.x, i * k, k, 1, k, 0, 0, 0, 0, half * k, Buffer.INP)
            r.load_buffer_2d(self.w, j * k, k, 1, k, 0, 0, 0, 0, half * k, Buffer.WGT)
            r.dep_push(1, 2)
            r.dep_pop(1, 2)
            r.dep_pop(3, 2)
            r.push_gemm_op(("reset", half), reset)
            r.push_gemm_op(("gemm", half), record)
            r.dep_push(2, 1)
            r.dep_push(2, 3)
            r.dep_pop(2, 3)
            r.store_buffer_2d(half, Buffer.OUT, self.out, tile, 1, 1, 1)
            r.dep_push(3, 2)
        for _ in range(2):
            r.dep_pop(2, 1)
            r.dep_pop(3, 2)
        r.synchronize()

    def check(self):
        machine = self.runtime.machine
        size = self.expected.size
        got = unpack_entries(self.runtime.download(self.out, size, np.uint8), Buffer.OUT, machine)
        np.testing.assert_array_equal(got.reshape(self.expected.shape), self.expected)


def tiny_runtime(**options):
    return Runtime(ReferenceDevice(load_machine("tiny"), memory_bytes=1 << 20), **options)


@pytest.mark.parametrize("limit", [112, 128, 160, 256, 512, 1 << 25])
@pytest.mark.parametrize("options", [{}, {"keep_uop_cache": True}, {"portable": True}])
def test_flushes_in_the_middle_of_a_program_change_nothing(limit, options, tokens_left):
    runtime = tiny_runtime(max_transfer_bytes=limit, keep_streams=True, **options)
    program = TiledMatmul(runtime, seed=limit)
    program.run()
    program.check()
    assert (len(runtime.launches) > 1) == (limit < 1 << 25)
    assert tokens_left(runtime) == (0, 0, 0, 0)
    # A call may add two records and the tail seven more than the six kept free for both.
    assert all(len(s.words) <= limit // 16 + 3 for s in runtime.streams)


@pytest.mark.parametrize("limit", [160, 1 << 25])
@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_simulator_and_judge_agree_on_memory_cycles_and_counters(engine, limit):
    tiny = load_machine("tiny")
    seen = []
    for device in (
        SimulatorDevice(tiny, memory_bytes=1 << 20, engine=engine),
        ReferenceDevice(tiny, memory_bytes=1 << 20),
    ):
        runtime = Runtime(device, max_transfer_bytes=limit)
        program = TiledMatmul(runtime, seed=3)
        program.run()
        program.check()
        launches = [(launch.cycles, launch.counters) for launch in runtime.launches]
        seen.append((launches, device.read(0, 1 << 20).tobytes()))
    assert seen[0] == seen[1]
    assert all(cycles > 0 for cycles, _ in seen[0][0])


def test_half_a_simulator_is_a_device_too():
    for half in ({"timing": False}, {"function": False}):
        runtime = Runtime(SimulatorDevice(load_machine("tiny"), memory_bytes=1 << 20, **half))
        program = TiledMatmul(runtime, seed=3)
        program.run()
        assert (runtime.launches[0].cycles == 0) == ("timing" in half)
        if "timing" in half:
            program.check()


def test_a_simulator_has_256_mib_that_cost_nothing_until_touched(machine):
    device = SimulatorDevice(machine, engine="numpy")
    assert device.memory_bytes == 256 << 20
    assert device.read((256 << 20) - 1, 1).tolist() == [0]


def test_a_limit_without_room_for_the_tail_is_refused(recorder):
    with pytest.raises(RuntimeCallError, match="max_transfer_bytes = 111 is less than 112"):
        Runtime(recorder, max_transfer_bytes=111)


@pytest.mark.parametrize("records", [9, 10])
def test_the_queue_is_flushed_when_six_more_records_would_not_fit(records, make_recorder, machine):
    recorder = make_recorder(machine)
    runtime = Runtime(recorder, max_transfer_bytes=16 * 16)
    for _ in range(records):
        runtime.dep_push(2, 1)
    assert len(recorder.tables) == 0
    for _ in range(11 - records):
        runtime.dep_push(2, 1)
    assert len(recorder.tables) == 1
    assert (recorder.tables[0]["opcode"] == 3).sum() == 1


@pytest.mark.parametrize("limit", [112, 256, 1 << 25])
def test_force_serial_changes_no_result(limit, tokens_left):
    runtime = tiny_runtime(max_transfer_bytes=limit, keep_streams=True)
    runtime.set_debug_mode(FORCE_SERIAL)
    program = TiledMatmul(runtime, seed=0)
    program.run()
    program.check()
    assert tokens_left(runtime) == (0, 0, 0, 0)


@pytest.mark.parametrize("seed", range(10))
def test_force_serial_orders_a_program_without_any_dependence_call(seed, tokens_left):
    """Random instructions over a few entries and bytes, which race in every way without tokens."""
    runtime = tiny_runtime(keep_memory=True)
    runtime.set_debug_mode(FORCE_SERIAL)
    machine, rng = runtime.machine, np.random.default_rng(seed)
    buffer = runtime.upload(rng.integers(0, 256, 256, np.uint8))
    for _ in range(60):
        choice, at = rng.integers(0, 4), int(rng.integers(0, 4))
        if choice == 0:
            memory = [Buffer.INP, Buffer.WGT, Buffer.ACC][rng.integers(0, 3)]
            load(runtime, buffer, dst_mem_type=memory, dst_sram_index=at, src_elem_offset=at)
        elif choice == 1:
            runtime.push_gemm_op(at, lambda r, at=at: r.uop_push(0, 0, at, at, at, 0, 0, 0))
        else:
            store(runtime, buffer, src_sram_index=at, dst_elem_offset=int(rng.integers(0, 16)))
    runtime.synchronize()
    (stream,) = runtime.streams
    found = [each for each in check(stream.words, machine, stream.dram) if each.code == Code.RACE]
    assert not found, f"seed {seed}"
    assert tokens_left(runtime) == (0, 0, 0, 0)


def test_overlap_is_what_force_serial_takes_away():
    cycles = []
    for flags in (0, FORCE_SERIAL):
        runtime = tiny_runtime()
        runtime.set_debug_mode(flags)
        TiledMatmul(runtime, seed=0).run()
        cycles.append(runtime.launches[0].cycles)
    assert cycles[0] < cycles[1]


def test_dumps_are_assembly_that_parses_to_the_stream_and_a_list_of_micro_ops(judge):
    text = io.StringIO()
    runtime = Runtime(judge.device, dump_to=text, keep_streams=True)
    a = runtime.buffer_alloc(PAGE)
    runtime.set_debug_mode(DebugFlag.DUMP_INSN)
    add(runtime, 8, a, a, a)
    runtime.synchronize()
    np.testing.assert_array_equal(
        parse_stream(text.getvalue(), runtime.machine), runtime.streams[0].words
    )

    text.truncate(text.seek(0))
    runtime.set_debug_mode(DebugFlag.DUMP_UOP)
    add(runtime, 8, a, a, a)
    runtime.synchronize()
    assert text.getvalue() == ("kernel 0: ALU, loops 8, uops 0..1\n      0  dst 0  src 8  wgt 0\n")

    text.truncate(text.seek(0))
    runtime.set_debug_mode(DebugFlag.SKIP_READ_BARRIER | DebugFlag.SKIP_WRITE_BARRIER)
    runtime.synchronize()
    assert text.getvalue() == ""


def test_dumps_go_to_standard_error_by_default(runtime, capsys):
    runtime.set_debug_mode(DebugFlag.DUMP_INSN)
    runtime.synchronize()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "finish" in captured.err


@pytest.mark.parametrize("flags", [1, 64, -1, 33])
def test_unknown_debug_flags_are_refused(flags, runtime):
    with pytest.raises(RuntimeCallError, match=r"set_debug_mode: .* DUMP_INSN 2, .*_SERIAL 32"):
        runtime.set_debug_mode(flags)


def test_waiting_too_long_is_an_error(make_recorder, machine):
    runtime = Runtime(make_recorder(machine, cycles=100))
    runtime.synchronize(100)
    with pytest.raises(RuntimeCallError, match="took 100 cycles, more than wait_cycles = 99"):
        runtime.synchronize(99)


def test_a_failed_launch_leaves_an_empty_queue(make_recorder, machine):
    def fail(device):
        device.on_run = None
        raise StreamError("insn 0: out of order")

    recorder = make_recorder(machine)
    recorder.on_run = fail
    runtime = Runtime(recorder)
    load(runtime, runtime.buffer_alloc(PAGE))
    with pytest.raises(StreamError, match="insn 0"):
        runtime.synchronize()
    runtime.synchronize()
    assert [len(table) for table in recorder.tables] == [5, 4]


def test_a_program_for_another_machine_is_not_run(recorder):
    with pytest.raises(RuntimeCallError, match=r"device is machine 'default' \(.*made for 'tiny'"):
        Runtime(recorder, machine=load_machine("tiny"))
    runtime = Runtime(recorder)
    recorder.machine = load_machine("tiny")
    with pytest.raises(RuntimeCallError, match="device is machine 'tiny'"):
        runtime.synchronize()


def test_machines_that_differ_in_name_only_are_the_same(recorder):
    renamed = load_machine({"name": "other", "clock": "1 MHz"})
    Runtime(recorder, machine=renamed).synchronize()


def test_a_newer_runtime_takes_the_device_over(recorder):
    old = Runtime(recorder)
    handle = old.buffer_alloc(1)
    new = Runtime(recorder)
    for call in (old.synchronize, lambda: old.buffer_alloc(1), lambda: old.upload(np.zeros(1))):
        with pytest.raises(RuntimeCallError, match="a newer Runtime has taken this device"):
            call()
    with pytest.raises(RuntimeCallError, match="belongs to another runtime"):
        new.buffer_free(handle)
    new.synchronize()


def test_shutdown_drops_the_queue_and_its_memory_but_not_buffers_and_kernels(judge):
    x = np.arange(16, dtype=np.int32)
    a = judge.upload(x)
    out = judge.buffer_alloc(64)
    add(judge, 1, a, a, out)
    judge.synchronize()
    taken = judge.buffers.allocator.taken_bytes
    add(judge, 1, a, a, out)
    judge.dep_pop(1, 2)
    judge.runtime_shutdown()
    assert judge.buffers.allocator.taken_bytes == 2 * PAGE < taken
    assert judge.download(a, 16, np.int32).tolist() == x.tolist()
    judge.runtime_shutdown()
    judge.synchronize()
    assert len(judge.streams[-1].words) == 4
    add(judge, 1, a, a, out)
    judge.synchronize()
    assert judge.download(out, 16, np.int8).tolist() == (2 * x).tolist()


def test_the_instruction_buffer_grows_with_the_longest_stream(runtime):
    lengths = []
    for count in (1, 5000, 10, 9000):
        for _ in range(count):
            runtime.dep_push(2, 1)
        runtime.synchronize()
        lengths.append(len(runtime.device.tables[-1]))
    assert lengths == [5, 5004, 14, 9004]
