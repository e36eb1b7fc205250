"""``vta machines``: the machines that come with the kit."""

import typer

from . import options


def register(app: typer.Typer) -> None:
    app.command("machines")(list_machines)


def list_machines(as_json: options.Json = False) -> None:
    """List the machines that come with the kit; `-c` of the other commands takes their names."""
    from vta_isa import load_machine
    from vta_isa.presets import preset_names

    from .console import print_json, print_table

    presets = [load_machine(name) for name in preset_names("machines")]
    if as_json:
        print_json([{"hash": each.hash, **each.model_dump(mode="json")} for each in presets])
        return
    from ..report.tables import machine_table

    print_table(machine_table(presets))
