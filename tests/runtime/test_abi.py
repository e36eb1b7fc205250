"""The C side: compiled callers, errors that cross native code, one runtime per thread."""

import ctypes
import threading

import numpy as np
import pytest
from llvmlite import binding, ir

from vta_isa import AluOp, Buffer, RuntimeCallError, Stage
from vta_runtime import (
    CALLS,
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    ReferenceDevice,
    Runtime,
    current_runtime,
    functions,
    symbols,
)

I32, I64, POINTER = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
IR_TYPES = {
    ctypes.c_uint32: I32,
    ctypes.c_int32: I32,
    ctypes.c_size_t: I64,
    ctypes.c_void_p: POINTER,
    None: ir.VoidType(),
}


class Caller:
    """A module whose functions call the runtime's symbols by name, as compiled code does."""

    def __init__(self):
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self.module = ir.Module()
        self.module.triple = binding.get_process_triple()
        self.declared = {}

    def define(self, name, result=None, *arguments):
        kind = ir.FunctionType(IR_TYPES[result], [IR_TYPES[a] for a in arguments])
        function = ir.Function(self.module, kind, name)
        return function, ir.IRBuilder(function.append_basic_block())

    def call(self, build, name, *values):
        contract = CALLS[name]
        types = [IR_TYPES[ctype] for _, ctype in contract.arguments]
        if name not in self.declared:
            kind = ir.FunctionType(IR_TYPES[contract.result], types)
            self.declared[name] = ir.Function(self.module, kind, name)
        assert len(values) == len(types)
        constants = [
            v if isinstance(v, ir.Value) else ir.Constant(t, v)
            for v, t in zip(values, types, strict=True)
        ]
        return build.call(self.declared[name], constants)

    def compile(self):
        for name in self.declared:
            binding.add_symbol(name, symbols()[name])
        target = binding.Target.from_triple(self.module.triple).create_target_machine()
        parsed = binding.parse_assembly(str(self.module))
        parsed.verify()
        self.engine = binding.create_mcjit_compiler(parsed, target)
        self.engine.finalize_object()
        return self

    def __getitem__(self, name):
        return self.engine.get_function_address(name)


def native_vector_add(entries=64):
    """Listing 1 of the VTA report as native code: ``add(A, B, C)`` on buffer handles."""
    caller = Caller()
    finit, build = caller.define("finit", ctypes.c_int32, ctypes.c_void_p)
    caller.call(build, "VTAUopLoopBegin", entries, 1, 1, 0)
    caller.call(build, "VTAUopPush", 1, 0, 0, entries, 0, AluOp.ADD, 0, 0)
    caller.call(build, "VTAUopLoopEnd")
    build.ret(ir.Constant(I32, 0))

    slot = ir.GlobalVariable(caller.module, POINTER, "kernel")
    slot.initializer = ir.Constant(POINTER, None)
    add, build = caller.define("add", None, *[ctypes.c_void_p] * 3)
    a, b, c = add.args
    command = caller.call(build, "VTATLSCommandHandle")
    for source, sram in ((a, 0), (b, entries)):
        shape = (0, entries, 1, entries, 0, 0, 0, 0, sram, Buffer.ACC)
        caller.call(build, "VTALoadBuffer2D", command, source, *shape)
    null = ir.Constant(POINTER, None)
    handle, record = build.bitcast(slot, POINTER), build.bitcast(finit, POINTER)
    caller.call(build, "VTAPushALUOp", handle, record, null, 0)
    caller.call(build, "VTADepPush", command, Stage.COMPUTE, Stage.STORE)
    caller.call(build, "VTADepPop", command, Stage.COMPUTE, Stage.STORE)
    caller.call(build, "VTAStoreBuffer2D", command, 0, Buffer.OUT, c, 0, entries, 1, entries)
    caller.call(build, "VTASynchronize", command, ir.Constant(I32, 1 << 31))
    build.ret_void()
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(caller.compile()["add"])
    function.owner = caller  # the code lives as long as its engine
    return function


def vector_add_in_python(runtime, a, b, c):
    def record(r):
        r.uop_loop_begin(64, 1, 1, 0)
        r.uop_push(1, 0, 0, 64, 0, AluOp.ADD, 0, 0)
        r.uop_loop_end()

    runtime.load_buffer_2d(a, 0, 64, 1, 64, 0, 0, 0, 0, 0, 3)
    runtime.load_buffer_2d(b, 0, 64, 1, 64, 0, 0, 0, 0, 64, 3)
    runtime.push_alu_op("C_buf", record)
    runtime.dep_push(2, 3)
    runtime.dep_pop(2, 3)
    runtime.store_buffer_2d(0, 4, c, 0, 64, 1, 64)
    runtime.synchronize()


def vectors(seed=0):
    return np.random.default_rng(seed).integers(-100, 100, (2, 1024), np.int32)


def new_judge(machine, **options):
    device = ReferenceDevice(machine, memory_bytes=1 << 20)
    return Runtime(device, keep_streams=True, **options)


def test_the_report_s_vector_add_gives_one_stream_from_python_and_from_native_code(machine):
    x, y = vectors()
    results = []
    native = native_vector_add()
    for add in (vector_add_in_python, lambda _, *buffers: native(*buffers)):
        runtime = new_judge(machine)
        buffers = runtime.upload(x), runtime.upload(y), runtime.buffer_alloc(1024)
        with runtime:
            for _ in range(2):
                add(runtime, *buffers)
        results.append([stream.words.tolist() for stream in runtime.streams])
        got = runtime.download(buffers[2], 1024, np.int8)
        np.testing.assert_array_equal(got, (x + y).astype(np.int8))
    assert len(results[0]) == 2
    assert results[0] == results[1]


def test_native_code_owns_buffers_from_allocation_to_free(machine):
    """VTABufferAlloc, Copy, CPUPtr, barriers and Free through the pointers themselves."""
    call = functions()
    data, back = np.arange(16, dtype=np.uint8), np.zeros(16, np.uint8)
    runtime = new_judge(machine)
    with runtime:
        command = call["VTATLSCommandHandle"]()
        buffer = call["VTABufferAlloc"](16)
        call["VTABufferCopy"](data.ctypes.data, 0, buffer, 0, 16, HOST_TO_DEVICE)
        pointer = call["VTABufferCPUPtr"](command, buffer)
        ctypes.c_uint8.from_address(pointer).value = 99
        call["VTAWriteBarrier"](command, buffer, 8, 0, 16)
        call["VTAReadBarrier"](command, buffer, 8, 0, 16)
        call["VTABufferCopy"](buffer, 0, back.ctypes.data, 0, 16, DEVICE_TO_HOST)
        assert call["VTABufferCPUPtr"](command, back.ctypes.data) == back.ctypes.data
        call["VTABufferFree"](buffer)
        call["VTASetDebugMode"](command, 32)
        call["VTASetDebugMode"](command, 0)
        call["VTASynchronize"](command, 1 << 31)
        call["VTARuntimeShutdown"]()
    assert back.tolist() == [99, *range(1, 16)]
    assert len(runtime.launches) == 1
    assert len(runtime.buffers) == 0


FINIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class CallSite:
    """A static kernel handle, a closure and a record function, the parts of one push."""

    def __init__(self, result=0, dst=None):
        self.slot = ctypes.c_void_p()
        self.closure = ctypes.c_int32()
        self.calls = []

        def finit(signature):
            value = ctypes.c_int32.from_address(signature).value if signature else 0
            self.calls.append(value)
            functions()["VTAUopPush"](0, 0, value if dst is None else dst, 0, 0, 0, 0, 0)
            return result

        self.finit = FINIT(finit)

    def push(self, value=None, name="VTAPushGEMMOp", nbytes=None):
        self.closure.value = value or 0
        signature = None if value is None else ctypes.addressof(self.closure)
        size = (0 if value is None else 4) if nbytes is None else nbytes
        finit = ctypes.cast(self.finit, ctypes.c_void_p)
        return functions()[name](ctypes.addressof(self.slot), finit, signature, size)


def test_a_call_site_records_one_kernel_per_closure_value(runtime, recorder):
    site, other = CallSite(), CallSite()
    with runtime:
        for value in (3, None, 3, 0, 3):
            assert site.push(value) == 0
        other.push(3)
    assert site.calls == [3, 0, 0]
    assert other.calls == [3]
    runtime.synchronize()
    gemms = recorder.tables[0][recorder.tables[0]["opcode"] == 2]
    assert gemms["uop_begin"].tolist() == [0, 1, 0, 1, 0, 0]  # equal content is one kernel


def test_a_call_site_serves_several_runtimes(make_recorder, machine):
    site = CallSite()
    for _ in range(2):
        with Runtime(make_recorder(machine)) as runtime:
            site.push(7)
            site.push(7)
        runtime.synchronize()
        assert runtime.device.tables[0]["opcode"].tolist()[:3] == [0, 2, 2]
    assert site.calls == [7, 7]


@pytest.mark.parametrize(
    ("site", "arguments", "message"),
    [
        (CallSite(result=5), {}, "VTAPushGEMMOp: finit returned 5"),
        (CallSite(dst=2048), {}, "push_gemm_op: uop_push dst_index = 2048"),
        (CallSite(), {"name": "VTAPushALUOp"}, "push_alu_op: uop_push mode = 0"),
        (CallSite(), {"nbytes": 4}, "nbytes = 4 with signature 0x0"),
        (CallSite(), {"value": 1, "nbytes": 8}, "nbytes = 8 with signature"),
        (CallSite(), {"value": -1}, "closure value -1; it must be 0 or more"),
    ],
)
def test_pushes_that_fail_return_minus_one_and_check_says_why(site, arguments, message, runtime):
    with runtime:
        assert site.push(**arguments) == -1
        with pytest.raises(RuntimeCallError, match=message):
            runtime.check()
        assert CallSite().push() == 0


@pytest.mark.parametrize(("value", "portable", "status"), [(98, 1, 0), (99, 1, -1), (99, 0, 0)])
def test_the_published_limit_of_kernels_per_call_site(value, portable, status, recorder):
    runtime = Runtime(recorder, portable=bool(portable))
    with runtime:
        assert CallSite().push(value) == status
        if status:
            with pytest.raises(RuntimeCallError, match=r"closure value 99; it must be 0\.\.98"):
                runtime.check()


def test_null_handles_are_refused(runtime):
    site = CallSite()
    with runtime:
        finit = ctypes.cast(site.finit, ctypes.c_void_p)
        assert functions()["VTAPushGEMMOp"](None, finit, None, 0) == -1
        with pytest.raises(RuntimeCallError, match="null handle"):
            runtime.check()
        assert functions()["VTAPushGEMMOp"](ctypes.addressof(site.slot), None, None, 0) == -1
        with pytest.raises(RuntimeCallError, match="null finit"):
            runtime.check()


def test_after_an_error_calls_do_nothing_until_check(runtime, recorder):
    call = functions()
    with runtime:
        command = call["VTATLSCommandHandle"]()
        call["VTADepPush"](command, 1, 3)
        call["VTADepPush"](command, 7, 7)  # the first error is the one to know
        assert call["VTABufferAlloc"](16) is None
        assert call["VTATLSCommandHandle"]() is None
        call["VTASynchronize"](command, 1 << 31)
        assert runtime.failed
        with pytest.raises(RuntimeCallError, match="from load to store"):
            runtime.check()
        runtime.check()
        call["VTASynchronize"](command, 1 << 31)
    assert len(recorder.tables) == 1


def test_kernels_of_a_dropped_queue_are_loaded_again(recorder):
    runtime = Runtime(recorder, keep_uop_cache=True)
    site = CallSite()
    with runtime:
        site.push()
        functions()["VTADepPush"](runtime.tls_command_handle(), 1, 3)
        with pytest.raises(RuntimeCallError, match="from load to store"):
            runtime.check()
        site.push()
    runtime.synchronize()
    assert recorder.tables[0]["opcode"].tolist()[:2] == [0, 2]
    assert len(recorder.tables[0]) == 2 + 4


def test_leaving_the_block_raises_what_native_code_ran_into(runtime):
    with pytest.raises(RuntimeCallError, match="stage 9"), runtime.activate():
        functions()["VTADepPop"](runtime.tls_command_handle(), 9, 2)
    assert current_runtime() is None
    runtime.synchronize()


def test_an_error_of_the_block_itself_comes_first(runtime):
    def block():
        with runtime:
            functions()["VTADepPop"](runtime.tls_command_handle(), 9, 2)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        block()
    assert runtime.failed


def test_calls_without_a_current_runtime_are_reported_by_the_next_check(runtime):
    assert functions()["VTATLSCommandHandle"]() is None
    with pytest.raises(RuntimeCallError, match="VTATLSCommandHandle: no runtime is current"):
        runtime.check()
    runtime.check()


def test_a_foreign_command_handle_is_refused(runtime):
    with runtime:
        functions()["VTADepPush"](runtime.tls_command_handle() + 1, 1, 2)
        with pytest.raises(RuntimeCallError, match=r"VTADepPush: cmd = .* command handle"):
            runtime.check()


def test_runtimes_nest_on_one_thread(make_recorder, machine):
    outer, inner = Runtime(make_recorder(machine)), Runtime(make_recorder(machine))
    handle = functions()["VTATLSCommandHandle"]
    with outer:
        with inner:
            assert handle() == inner.tls_command_handle()
        assert handle() == outer.tls_command_handle()


def test_two_threads_have_a_runtime_each(machine):
    """Native code on two threads at once, from one call site: neither sees the other's calls."""
    add = native_vector_add()
    barrier = threading.Barrier(2)
    problems = []

    def work(seed):
        try:
            runtime = new_judge(machine)
            x, y = vectors(seed)
            a, b, c = runtime.upload(x), runtime.upload(y), runtime.buffer_alloc(1024)
            with runtime:
                barrier.wait(timeout=30)
                for _ in range(5):
                    add(a, b, c)
            np.testing.assert_array_equal(
                runtime.download(c, 1024, np.int8), (x + y).astype(np.int8)
            )
            assert len(runtime.launches) == 5
            assert len({stream.words.tobytes() for stream in runtime.streams}) == 1
        except BaseException as error:  # a thread's failure must reach the test
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
