"""What the README shows is true: its files load and its commands exist."""

import re
from pathlib import Path

import pytest
import yaml

import vta as package
from vta.cli.main import app

README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
DESCRIPTIONS = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = sorted(set(re.findall(r"`?vta ([a-z]+)", README)))


@pytest.mark.parametrize("text", DESCRIPTIONS, ids=lambda text: text.split(":")[0])
def test_descriptions_load(text: str) -> None:
    content = yaml.safe_load(text)
    if "layers" in content:
        assert package.load_workload(content).layers
    else:
        assert package.load_machine(content).name


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_exist(command: str) -> None:
    known = {each.name or each.callback.__name__ for each in app.registered_commands}
    assert command in known


def test_every_command_is_in_the_readme() -> None:
    assert {each.name for each in app.registered_commands} <= set(COMMANDS)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\bvta\.(\w+)\(", README))))
def test_functions_exist(name: str) -> None:
    assert name in package.__all__
