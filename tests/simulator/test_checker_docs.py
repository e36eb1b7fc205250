"""docs/checker.md: every example gives what the page says, and every code has one."""

import re
from pathlib import Path

import numpy as np
import pytest

from simulator.checker import Checker, Code, check
from vta_isa import encode_uops, load_machine
from vta_isa.assembly import parse_stream

PAGE = (Path(__file__).parents[2] / "docs" / "checker.md").read_text()
EXAMPLES = re.findall(
    r"^### ([\w-]+)\n(?:(?!^###).)*?^```asm( \S+)?\n(.*?)^```\n\n^```text\n(.*?)^```",
    PAGE,
    re.S | re.M,
)
TINY = load_machine("tiny")
EXTENDED = TINY.replace(extensions={"alu_requantize": True})


def image():
    """As the page says."""
    dram = np.zeros(4096, dtype=np.uint8)
    numbers = np.arange(32)
    words = encode_uops(np.stack([numbers] * 3, axis=1), TINY)
    dram[: 4 * len(words)] = words.astype("<u4").view(np.uint8)
    return dram


def test_every_code_has_one_example():
    assert [code for code, *_ in EXAMPLES] == list(Code)


@pytest.mark.parametrize(("code", "how", "text", "output"), EXAMPLES, ids=lambda part: part[:25])
def test_examples(code, how, text, output):
    machine = EXTENDED if how.strip() == "extended" else TINY
    dram = None if how.strip() == "no-image" else image()
    address = int(how.strip()[3:], 0) if how.strip().startswith("at-") else None
    if how.strip() == "expecting-no-change":
        found = check(parse_stream(text, machine), machine, dram, expected=dram)
    else:
        found = Checker(machine, fresh=False).check(parse_stream(text, machine), dram, address)
    assert "".join(f"{each}\n" for each in found) == output
    assert code in [each.code for each in found]
    severities = {each.severity for each in found if each.code == code}
    described = PAGE.split(f"### {code}\n\n")[1].split(".")[0].split(",")[0].split(";")[0]
    assert severities == {described.lower()}
