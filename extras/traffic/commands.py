"""``dcqcn-gym traffic``: from a trace, an export of flows or a log to flows and scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcqcn_gym.runs.options import OutOption, QuietOption, ScenarioOption, SeedOption

if TYPE_CHECKING:
    from dcqcn_gym.core.traffic_check import Census
    from dcqcn_gym.envs.scenario.scenario import Scenario
    from dcqcn_gym.extras.traffic.fitting import Fit, Traffic
    from dcqcn_gym.extras.traffic.importing import Source, Span

app = typer.Typer(help="Your traffic: a trace, NetFlow, sFlow, a capture or a log of NCCL.")

PAGE = "traffic.html"
_PAGE_BPS = 100e9
"""The line rate of a page's gaps where no scenario says it."""


@app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(help="CSV, pcap with RoCE, NetFlow, IPFIX or sFlow, or a log of NCCL.")
    ],
    out: OutOption,
    form: Annotated[
        str | None,
        typer.Option(help="csv, roce, netflow, sflow, nccl ...; default: by its content."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of a CSV: src=NAME,dst=NAME,bytes=NAME,start=NAME[:UNIT]."),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(help="CSV name,host: which name is which host; default: all, sorted."),
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="FROM:TO", help="Only flows from here to there, in s.")
    ] = None,
    sampling: Annotated[
        int | None,
        typer.Option(min=1, help="One packet in N was counted, where no record says so."),
    ] = None,
    times: Annotated[
        str, typer.Option(help="spread: starts known to the second only lie within it; exact.")
    ] = "spread",
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", "-s", help="Write scenario.toml too: this one with the flows."),
    ] = None,
    fit: Annotated[
        bool, typer.Option("--fit", help="Of --scenario: traffic that is like the file's instead.")
    ] = False,
    page: Annotated[
        bool,
        typer.Option("--page", help="Write traffic.html too: sizes, load, who sends to whom."),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Write flows.csv, which a scenario's workload `flows` reads, and hosts.csv.

    Example: `dcqcn-gym traffic import flows.csv --out my-traffic`
    """
    from dcqcn_gym.core.errors import ConfigError
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    if fit and scenario is None:
        raise ConfigError("--fit needs --scenario, whose fabric the traffic is for")
    base = None if scenario is None else load_scenario(scenario)
    source = _source(file, form, columns, hosts, window, sampling, times)
    if fit and source.form == "nccl" and (columns or hosts or window or page):
        raise ConfigError("a log of NCCL has no --columns, --hosts, --window or --page")
    if fit and base is not None:
        _write_fitted(source, base, out, quiet)
    else:
        _write_flows(source, base, out, quiet)
    if page:
        _write_page(source, _PAGE_BPS if base is None else base.line_rate_bps, out, quiet)


def _write_flows(source: Source, base: Scenario | None, out: Path, quiet: bool) -> None:
    from dcqcn_gym.extras.traffic.importing import FLOWS, import_flows

    file = source.path
    with _shown(quiet) as show:
        span, census = import_flows(source, out, show)
    typer.echo(
        f"{file} ({source.form}): {span.records} records, {census.flows} flows between "
        f"{len(span.hosts)} names over {(span.last_ns - span.first_ns) * 1e-9:g} s"
    )
    _say([*span.tally.lines(), *_can_answer(census, len(set(span.hosts.values())), span.sampled)])
    if base is not None:
        made = _write_scenario(base, out, span.sampled, file.name)
        typer.echo(f"{made}: a scenario with them; dcqcn-gym tune --scenario {made}")
        return
    sampled = f" and sampled = {span.sampled}" if span.sampled > 1 else ""
    typer.echo(f'{out / FLOWS}: in a scenario, kind = "flows", flows = "{FLOWS}"{sampled}')


def _write_scenario(base: Scenario, out: Path, sampled: int, source: str) -> Path:
    """Write a scenario with the flows that were imported into ``out``; return its path."""
    from dcqcn_gym.envs.scenario.tables import read_flows
    from dcqcn_gym.extras.traffic.importing import FLOWS
    from dcqcn_gym.extras.traffic.scenario import scenario_text
    from dcqcn_gym.runs.atomic_file import write_atomically

    read_flows(out / FLOWS, base.fabric.n_hosts)  # hosts that are not there are refused here
    workload: dict[str, Any] = {"kind": "flows", "flows": FLOWS}
    if sampled > 1:
        workload["sampled"] = sampled
    path = out / "scenario.toml"
    write_atomically(path, scenario_text(base, [workload], f"the flows of {source}").encode())
    return path


def _write_fitted(source: Source, base: Scenario, out: Path, quiet: bool) -> None:
    """Write a scenario on the fabric of another, with traffic that is like the file's."""
    from dcqcn_gym.simulation.files import write_files

    files, words, notes = (
        _fitted_calls(source.path, base)
        if source.form == "nccl"
        else _fitted_flows(source, base, quiet)
    )
    write_files(out, files)
    typer.echo(words)
    _say(notes)
    typer.echo(f"{out / 'scenario.toml'}: dcqcn-gym scenarios {out / 'scenario.toml'}")


def _fitted_calls(file: Path, base: Scenario) -> tuple[dict[str, str], str, Sequence[str]]:
    """Return files, a sentence and remarks of a scenario with a log's largest collective."""
    from dcqcn_gym.extras.traffic.nccl import LINES, read_nccl
    from dcqcn_gym.extras.traffic.records import Tally
    from dcqcn_gym.extras.traffic.scenario import collective_workloads, scenario_text

    tally = Tally()
    log = read_nccl(file, tally)
    workloads, said, left = collective_workloads(log, base)
    taken, kinds = tally.of(LINES).taken, len(log.calls)
    words = f"{file}: {taken} calls of {kinds} kinds and sizes by {len(log.writers)} ranks"
    files = {"scenario.toml": scenario_text(base, workloads, said)}
    return files, words, [*tally.lines(), *left]


def _fitted_flows(
    source: Source, base: Scenario, quiet: bool
) -> tuple[dict[str, str], str, Sequence[str]]:
    """Return files, a sentence and remarks of a scenario with sizes and rate of some flows."""
    from dcqcn_gym.extras.traffic.scenario import SIZES, poisson_workload, scenario_text, warnings

    traffic, found, span = _look(source, base.line_rate_bps, quiet)
    notes = span.tally.lines()
    said = f"traffic like that of {source.path.name}: {traffic.bytes.size} flows"
    rows = [f"{size},{share!r}\n" for size, share in found.points]
    files = {
        SIZES: "".join(["bytes,cumulative_probability\n", *rows]),
        "scenario.toml": scenario_text(base, [poisson_workload(found, base)], said),
    }
    words = (
        f"sizes in {len(found.points)} points, off by at most {found.size_distance:.2%} of the "
        f"flows and {found.mean_change:+.2%} in the mean; a flow per host every "
        f"{found.gap_us:.4g} us"
    )
    return files, words, [*notes, *warnings(found)]


def _write_page(source: Source, rate_bps: float, out: Path, quiet: bool) -> None:
    """Write a page on a file's traffic: sizes, load over time, who sends to whom."""
    from dcqcn_gym.core.traffic_check import Census
    from dcqcn_gym.extras.traffic.page import traffic_page, traffic_tables
    from dcqcn_gym.runs.table import print_tables
    from dcqcn_gym.simulation.files import write_files

    traffic, found, span = _look(source, rate_bps, quiet)
    census = Census()
    census.add(traffic.src, traffic.dst, traffic.bytes, traffic.start_ns - traffic.start_ns[0])
    hosts_there = len(set(span.hosts.values()))
    notes = [*span.tally.lines(), *_can_answer(census, hosts_there, span.sampled)]
    write_files(out, {PAGE: traffic_page(source.path.name, traffic, found, notes)})
    print_tables(traffic_tables(traffic, found))
    typer.echo(f"{out / PAGE}")


@app.command("incast")
def incast_(
    out: OutOption,
    scenario: ScenarioOption,
    load: Annotated[float, typer.Option("--load", help="Of all host links, such as 0.02.")],
    senders: Annotated[int, typer.Option("--senders", help="Hosts that send at once.")] = 60,
    size: Annotated[int, typer.Option("--bytes", help="Of each sender.")] = 500_000,
    span_ms: Annotated[float, typer.Option("--ms", help="Length of the traffic.")] = 100,
    seed: SeedOption = 1,
) -> None:
    """Write flows.csv with incasts of random senders to random receivers, at a load.

    Example: `dcqcn-gym traffic incast --scenario fb-hadoop --load 0.02 --out incast`
    """
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.envs.scenario.tables import FLOW_HEADER
    from dcqcn_gym.extras.traffic.importing import FLOWS
    from dcqcn_gym.extras.traffic.incast import incast_flows
    from dcqcn_gym.simulation.files import write_files

    net = load_scenario(scenario).fabric
    flows = incast_flows(net, senders=senders, size=size, load=load, span_ms=span_ms, seed=seed)
    rows = [f"{f.src},{f.dst},{f.bytes},{f.start_ns:.0f}\n" for f in flows]
    write_files(out, {FLOWS: "".join([f"{FLOW_HEADER}\n", *rows])})
    typer.echo(f"{len(flows) // senders} incasts of {senders} x {size} bytes in {span_ms:g} ms")
    typer.echo(f'{out / FLOWS}: in a scenario, kind = "flows", flows = "{FLOWS}"')


def _source(
    file: Path, form: str | None, columns: str | None, hosts: Path | None, window: str | None,
    sampling: int | None, times: str,
) -> Source:  # fmt: skip
    from dcqcn_gym.core.errors import UnknownNameError
    from dcqcn_gym.core.traffic_check import window_of
    from dcqcn_gym.extras.traffic.captures import Sampling
    from dcqcn_gym.extras.traffic.hosts import read_hosts
    from dcqcn_gym.extras.traffic.importing import Source
    from dcqcn_gym.extras.traffic.reading import form_of

    names = None if hosts is None else read_hosts(hosts)
    if times not in ("spread", "exact"):
        raise UnknownNameError("way of times", times, ("spread", "exact"))
    return Source(
        file, form_of(file, form), columns, names, window_of(window),
        Sampling(sampling),
        times == "spread",
    )  # fmt: skip


def _look(source: Source, rate_bps: float, quiet: bool) -> tuple[Traffic, Fit, Span]:
    from dcqcn_gym.extras.traffic.fitting import fit, read_into
    from dcqcn_gym.extras.traffic.importing import flows_of, span_of

    with _shown(quiet) as show:
        span = span_of(source, show)
        traffic = read_into(flows_of(source, span, show))
    return traffic, fit(traffic, rate_bps), span


def _can_answer(census: Census, hosts: int, sampled: int) -> Sequence[str]:
    """Return who is in some traffic, why it may not tell, and its busiest windows."""
    from dcqcn_gym.core.traffic_check import sampled_problem

    who = census.coverage(hosts)
    problems = [p for p in (sampled_problem(sampled), who.problem) if p is not None]
    return [
        who.text,
        *(p.text for p in problems),
        *filter(None, [census.busiest_text]),
    ]


@contextmanager
def _shown(quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    from dcqcn_gym.runs.progress import open_meter

    with open_meter(quiet=quiet) as meter:

        def show(done: int, total: int | None) -> None:
            meter.show(done, total, "reading" if total is None else "writing")

        yield show


def _say(lines: Sequence[Any]) -> None:
    for line in lines:
        typer.echo(f"  {line}")
