"""``vta workloads``: the workloads that come with the kit."""

import typer

from . import options


def register(app: typer.Typer) -> None:
    app.command("workloads")(list_workloads)


def list_workloads(as_json: options.Json = False) -> None:
    """List the workloads that come with the kit; `vta run` takes their names."""
    from vta_isa.presets import preset_names

    from ..workloads import load_workload
    from .console import print_json, print_table

    presets = [load_workload(name) for name in preset_names("workloads")]
    if as_json:
        print_json([each.as_json() for each in presets])
        return
    from ..report.tables import workload_table

    print_table(workload_table(presets))
