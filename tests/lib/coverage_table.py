"""The report of functional coverage: a line per group, and every hole by its name."""

from collections.abc import Iterator

from functional_coverage import EXTENDED, GROUPS, Bin, Coverage


def not_run(coverage: Coverage) -> set[str]:
    """Kinds of instruction of extensions that no machine of the run had."""
    run = {bin_[0] for _, bin_ in coverage.hits}
    return set(EXTENDED) - run


def open_holes(coverage: Coverage) -> dict[str, list[Bin]]:
    """Holes by group, those of instructions that are not run excepted."""
    away = not_run(coverage)
    return {
        group: [bin_ for bin_ in bins if bin_[0] not in away]
        for group, bins in coverage.holes().items()
    }


def table(coverage: Coverage) -> Iterator[str]:
    """The lines of the report."""
    away, holes = not_run(coverage), open_holes(coverage)
    width = max(map(len, GROUPS))
    yield f"{'functional coverage':{width}}  {'bins':>5}  {'hit':>5}  {'':>6}  fewest hits"
    total = found = 0
    for group, bins in GROUPS.items():
        bins = [bin_ for bin_ in bins if bin_[0] not in away]
        hit = len(bins) - len(holes[group])
        fewest = min((coverage.hits[group, bin_] for bin_ in bins), default=0)
        total, found = total + len(bins), found + hit
        yield f"{group:{width}}  {len(bins):5}  {hit:5}  {hit / len(bins):6.1%}  {fewest:11}"
    yield f"{'':{width}}  {total:5}  {found:5}  {found / total:6.1%}"
    if away:
        yield f"no machine of the run has {', '.join(sorted(away))}"
    for group, bins in holes.items():
        rows: dict[str, list[str]] = {}
        for kind, *rest in bins:
            rows.setdefault(kind, []).append(", ".join(rest))
        for kind, crossed in rows.items():
            yield f"hole: {group}: {kind}: {'; '.join(crossed)}"
