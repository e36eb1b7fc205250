"""docs/sweep.md says what the code does."""

import re
from pathlib import Path

import yaml

from vta.sweep import load_sweep
from vta.sweep.cluster import _SYSTEMS
from vta.sweep.keys import CompileOptions
from vta.sweep.objectives import _OWN, DERIVED
from vta.sweep.spec import _File

PAGE = (Path(__file__).parent.parent.parent / "docs" / "sweep.md").read_text(encoding="utf-8")


def test_every_objective_is_in_the_table_as_it_is() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (min|max) \| (.*) \|$", PAGE, flags=re.MULTILINE)
    assert rows == [(o.name, o.unit, str(o.direction), o.sentence) for o in _OWN]


def test_every_key_of_the_file_is_named() -> None:
    (table,) = re.findall(r"## The file\n\n(.*?)\n\n", PAGE, flags=re.DOTALL)
    first = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert re.findall(r"`(\w+)`", "".join(first)) == list(_File.model_fields)
    assert all(f"`{option}`" in table for option in CompileOptions.model_fields)


def test_what_follows_from_a_description_and_batch_systems_are_named() -> None:
    assert all(f"`{name}`" in PAGE for name in (*DERIVED, *_SYSTEMS))


def test_the_examples_load() -> None:
    least = {"workloads": ["resnet18/C2"], "objectives": ["cycles"]}
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    assert [list(block) for block in blocks] == [["axes"], ["where"]]
    for block in blocks:
        assert load_sweep(least | block)
