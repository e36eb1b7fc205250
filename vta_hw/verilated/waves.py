"""Which signals go to a file, and how: VCD, which Verilator writes, or FST, made from it.

Verilator's own writer of FST needs the development files of two compression libraries, which come
with no Python package. FST files are a tenth to a hundredth of the size and open at once.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from vta_isa.errors import VtaError

SUFFIXES = (".vcd", ".fst")
WITHOUT_END = 1 << 62


@dataclass(frozen=True)
class Waves:
    """Signals to write to a file: cycles ``begin`` .. ``end`` - 1, counted over all launches.

    The suffix of ``path`` says how: ``.vcd`` or ``.fst``. In the file a cycle takes two units of
    time, the first with the clock low.
    """

    path: Path
    begin: int = 0
    end: int = WITHOUT_END

    def __post_init__(self) -> None:
        suffix = self.path.suffix
        if suffix not in SUFFIXES:
            raise VtaError(f"{self.path}: waves are written as {' or '.join(SUFFIXES)}; name one")
        if suffix == ".fst" and find_spec("pylibfst") is None:
            raise VtaError(
                f"{self.path}: FST is written by pylibfst, which is not installed; "
                f"`pip install pylibfst`, or write {self.path.with_suffix('.vcd')} instead"
            )

    @property
    def recorded(self) -> Path:
        """Where Verilator writes: ``path``, or a file beside it until that is made."""
        return self.path if self.path.suffix == ".vcd" else self.path.with_name(self._part("vcd"))

    def finish(self) -> None:
        """Make ``path`` of what was recorded."""
        if self.recorded == self.path:
            return
        made = self.path.with_name(self._part("fst"))
        try:
            vcd_to_fst(self.recorded, made)
            made.replace(self.path)
        finally:
            self.recorded.unlink(missing_ok=True)
            made.unlink(missing_ok=True)

    def _part(self, suffix: str) -> str:
        return f".{self.path.name}.part.{suffix}"


def vcd_to_fst(vcd: Path, fst: Path) -> None:
    """The same signals and values, for files as Verilator writes them: two states, no reals."""
    with vcd.open() as lines, _Writer(fst) as writer:
        for line in lines:
            if line.startswith("$enddefinitions"):
                break
            writer.declare(line.split())
        for line in lines:
            writer.change(line.rstrip("\n"))


class _Writer:
    """Writes an FST file line by line of a VCD file."""

    def __init__(self, path: Path):
        import pylibfst

        self._lib = pylibfst.lib
        self._null = pylibfst.ffi.NULL
        self._file = self._lib.fstWriterCreate(str(path).encode(), 1)
        if self._file == self._null:
            raise VtaError(f"{path}: cannot be written; name a file in an existing folder")
        self._lib.fstWriterSetPackType(self._file, self._lib.FST_WR_PT_LZ4)
        self._signals: dict[str, tuple[int, int]] = {}  # code in the VCD file: handle, width

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *exception: object) -> None:
        self._lib.fstWriterClose(self._file)

    def declare(self, words: list[str]) -> None:
        """A line of the header, up to ``$enddefinitions``."""
        lib = self._lib
        match words:
            case ["$timescale", scale, "$end"]:
                lib.fstWriterSetTimescaleFromString(self._file, scale.encode())
            case ["$scope", _, name, "$end"]:
                lib.fstWriterSetScope(self._file, lib.FST_ST_VCD_MODULE, name.encode(), self._null)
            case ["$upscope", "$end"]:
                lib.fstWriterSetUpscope(self._file)
            case ["$var", _, width, code, *name, "$end"]:
                # Signals that are one and the same share their code.
                alias, bits = self._signals.get(code, (0, int(width)))
                kind, direction = lib.FST_VT_VCD_WIRE, lib.FST_VD_IMPLICIT
                handle = lib.fstWriterCreateVar(
                    self._file, kind, direction, bits, " ".join(name).encode(), alias
                )
                self._signals.setdefault(code, (handle, bits))

    def change(self, line: str) -> None:
        """A line behind the header: a time, or a value."""
        if line.startswith("#"):
            self._lib.fstWriterEmitTimeChange(self._file, int(line[1:]))
        elif line.startswith("b"):
            value, code = line[1:].split(" ")
            handle, bits = self._signals[code]
            self._lib.fstWriterEmitValueChange(self._file, handle, value.zfill(bits).encode())
        elif line:
            handle, _ = self._signals[line[1:]]
            self._lib.fstWriterEmitValueChange(self._file, handle, line[:1].encode())
