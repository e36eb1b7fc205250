"""The interpreter: whole streams in one call, one instruction after the other.

Everything that can be known of an instruction without micro-ops was checked before; the indices
that micro-ops lead to are checked here, right before the instruction that uses them.
"""

from collections.abc import Iterator

from vta_isa.enums import AluOp, Buffer, FusedOp, Opcode
from vta_isa.insn import INSN_DTYPE
from vta_isa.machine import Machine

from .emit_alu import alu_name, alu_params
from .emit_gemm import GEMM_PARAMS, OVERWRITE, RESET_PARAMS
from .emit_load import LOAD_PARAMS, LOADED, image_of, load_name
from .emit_requantize import APART, APART_PARAMS, REQUANTIZE, REQUANTIZE_PARAMS
from .emit_store import STORE_PARAMS
from .emit_uops import fit_name
from .ir import Function

RUN = "vta_run"
CHECK = "vta_check"
IMAGES = ("uop", "inp", "wgt", "acc")
RUN_PARAMS = {
    "table": "ptr",
    "order": "ptr",
    "count": "i64",
    **dict.fromkeys((*IMAGES, "dram"), "ptr"),
}
CHECK_PARAMS = {"table": "ptr", "order": "ptr", "count": "i64", "uop": "ptr", "dram": "ptr"}


def emit_run(machine: Machine) -> Iterator[Function]:
    """``vta_run`` executes; ``vta_check`` only loads micro-ops and checks the indices they give.

    Both take the ``INSN_DTYPE`` table, the order as int64 instruction numbers, and the images, and
    return how many instructions went well: ``count``, or the place in the order of the first that
    reaches past a buffer.
    """
    run = Function(RUN, RUN_PARAMS, result="i64", export=True)
    yield _Interpreter(run, machine, execute=True).emit()
    check = Function(CHECK, CHECK_PARAMS, result="i64", export=True)
    yield _Interpreter(check, machine, execute=False).emit()


class _Interpreter:
    def __init__(self, fn: Function, machine: Machine, execute: bool):
        self.fn = fn
        self.extensions = machine.extensions
        self.execute = execute
        self.record = ""

    def emit(self) -> Function:
        fn = self.fn
        place = fn.slot("i64", "0")
        with fn.loop("%count") as position:
            fn.set(place, position)
            number = fn.load("i64", fn.entry("%order", position, 8), align=8)
            self.record = fn.entry("%table", number, INSN_DTYPE.itemsize)
            self._dispatch()
        fn.do("ret i64 %count")
        fn.label("fault")
        fn.do(f"ret i64 {fn.get(place)}")
        return fn

    def _field(self, name: str) -> str:
        """A field of the current record, as an i64."""
        kind, offset = INSN_DTYPE.fields[name][:2]  # type: ignore[index]  # it has fields
        bits = 8 * kind.itemsize
        value = self.fn.load(f"i{bits}", self.fn.at(self.record, offset), align=kind.itemsize)
        return value if bits == 64 else self.fn.op(f"sext i{bits} {value} to i64")

    def _dispatch(self) -> None:
        fn = self.fn
        stem = fn.fresh("insn")
        cases = {Opcode.LOAD: self._load, Opcode.GEMM: self._gemm, Opcode.ALU: self._alu}
        if self.execute:
            cases[Opcode.STORE] = self._store
        labels = " ".join(f"i64 {opcode:d}, label %{stem}.{opcode:d}" for opcode in cases)
        fn.do(f"switch i64 {self._field('opcode')}, label %{stem}.end [{labels}]")
        for opcode, emit in cases.items():
            fn.label(f"{stem}.{opcode:d}")
            emit()
            fn.jump(f"{stem}.end")
        fn.label(f"{stem}.end")

    def _load(self) -> None:
        fn = self.fn
        buffer = self._field("buffer")
        moves = fn.compare("ne", self._field("x_size"), 0)
        for loaded in LOADED if self.execute else (Buffer.UOP,):
            chosen = fn.binary("and", moves, fn.compare("eq", buffer, loaded), "i1")
            with fn.when(chosen):
                image = f"%{image_of(loaded).name.lower()}"
                self._call(load_name(loaded), LOAD_PARAMS, {"image": image})

    def _store(self) -> None:
        with self.fn.when(self.fn.compare("ne", self._field("x_size"), 0)):
            self._call("store_out", STORE_PARAMS)

    def _gemm(self) -> None:
        fn = self.fn
        with fn.when(self._executes()):
            self._require(("dst", Buffer.ACC))
            reset = fn.compare("ne", self._field("reset"), 0)
            with fn.when(fn.binary("xor", reset, "true", "i1")):
                self._require(("src", Buffer.INP), ("wgt", Buffer.WGT))
                if self.execute:
                    self._products()
            if self.execute:
                with fn.when(reset):
                    self._call("reset", RESET_PARAMS)

    def _products(self) -> None:
        fn = self.fn
        if not self.extensions.gemm_overwrite:
            self._call("gemm", GEMM_PARAMS)
            return
        overwrite = fn.compare("ne", self._field("overwrite"), 0)
        with fn.when(overwrite):
            self._call(OVERWRITE, GEMM_PARAMS)
        with fn.when(fn.binary("xor", overwrite, "true", "i1")):
            self._call("gemm", GEMM_PARAMS)

    def _alu(self) -> None:
        fn = self.fn
        with fn.when(self._executes()):
            self._require(("dst", Buffer.ACC))
            immediate = fn.compare("ne", self._field("use_imm"), 0)
            tensor = fn.binary("xor", immediate, "true", "i1")
            if self.extensions.alu_requantize:
                fused = fn.compare("eq", self._field("alu_op"), FusedOp.REQUANTIZE)
                with fn.when(fused):
                    self._requantize(tensor)
                tensor = fn.select(fused, "false", tensor, "i1")
            with fn.when(tensor):
                self._require(("src", Buffer.ACC))
                self._operations(immediate=False)
            with fn.when(immediate):
                self._operations(immediate=True)

    def _requantize(self, biased: str) -> None:
        """Its bias has the src of the first micro-op."""
        fn = self.fn
        with fn.when(biased):
            first = self._field("uop_begin")
            self._require(("src", Buffer.ACC), uop_end=fn.add(first, 1))
        self._continue_if(fn.op(f"call i1 @{APART}({self._arguments(APART_PARAMS)})"))
        if self.execute:
            self._call(REQUANTIZE, REQUANTIZE_PARAMS)

    def _operations(self, immediate: bool) -> None:
        if not self.execute:
            return
        fn = self.fn
        operation = self._field("alu_op")
        for op in AluOp:
            with fn.when(fn.compare("eq", operation, op)):
                extra = {}
                if immediate:
                    extra["imm"] = fn.op(f"trunc i64 {self._field('imm')} to i32")
                self._call(alu_name(op, immediate), alu_params(immediate), extra)

    def _executes(self) -> str:
        """Whether neither loop nor the range of micro-ops is empty."""
        fn = self.fn
        some = fn.compare("slt", self._field("uop_begin"), self._field("uop_end"))
        for loop in ("iter_out", "iter_in"):
            some = fn.binary("and", some, fn.compare("sgt", self._field(loop), 0), "i1")
        return some

    def _require(self, *operands: tuple[str, Buffer], uop_end: str | None = None) -> None:
        """Leave the interpreter unless the indices of all ``operands`` are inside their buffers."""
        fn = self.fn
        for operand, buffer in operands:
            loops = [self._field("uop_begin"), uop_end or self._field("uop_end")]
            loops += [self._field("iter_out"), self._field("iter_in")]
            strides = [self._field(f"{operand}_factor_{level}") for level in ("out", "in")]
            arguments = ", ".join(f"i64 {value}" for value in (*loops, *strides))
            fits = fn.op(f"call i1 @{fit_name(operand, buffer)}(ptr %uop, {arguments})")
            self._continue_if(fits)

    def _continue_if(self, good: str) -> None:
        checked = self.fn.fresh("checked")
        self.fn.branch(good, checked, "fault")
        self.fn.label(checked)

    def _call(self, name: str, params: dict[str, str], given: dict[str, str] | None = None) -> None:
        """Call a kernel with the pointers of the same name and the fields of the record."""
        self.fn.do(f"call void @{name}({self._arguments(params, given)})")

    def _arguments(self, params: dict[str, str], given: dict[str, str] | None = None) -> str:
        given = given or {}
        arguments = []
        for param, kind in params.items():
            value = given.get(param) or (f"%{param}" if kind == "ptr" else self._argument(param))
            arguments.append(f"{kind} {value}")
        return ", ".join(arguments)

    def _argument(self, param: str) -> str:
        operand, _, level = param.partition("_")
        is_factor = operand in ("dst", "src", "wgt") and level in ("out", "in")
        return self._field(f"{operand}_factor_{level}" if is_factor else param)
