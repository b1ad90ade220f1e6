"""Random graphs of operations (tests/ops/random_graphs.py), on the library that HOLOGRAM_LIB names: digests of each graph, of what
became of it (launches, their programs' hashes) and of its results."""

import json
import os

import numpy as np

import hgops
from recorder import digest_of

# Both of two libraries draw from the operations that both have.
if names := os.environ.get("HOLOGRAM_RECORD_OPERATIONS"):
    for name in set(hgops.TABLE) - set(names.split()):
        del hgops.TABLE[name]

from graph_draft import draft  # noqa: E402

FIELDS = ("graph", "programs", "plan", "results")


def plan_of(report: str) -> tuple[str, str]:
    """Digests of the programs and of everything else that does not depend on the machine. "-": a library that tells no hash."""
    plan = json.loads(report)
    hashes = [launch.pop("hash", "") for launch in plan["launches"]]
    for launch in plan["launches"]:
        launch.pop("engine")
    programs = digest_of(*map(str.encode, hashes)) if all(hashes) else "-"
    return programs, digest_of(json.dumps(plan, sort_keys=True).encode())


def bits_of(answers) -> list[bytes]:
    return [part for answer in answers for part in (repr((answer.dtype.name, answer.shape)).encode(), answer.tobytes())]


def results_of(graph):
    """Outputs, and those of a run in which some are put over inputs; or the name of the failure. And the report."""
    try:
        answers, report = graph.c.run_on(hgops.ENGINES[0], report="json")
    except (hgops.Error, AssertionError) as error:
        return getattr(error, "status", "wrote beside"), None
    if graph.c.placed:
        try:
            answers = answers + graph.c.run_on(hgops.ENGINES[0], over=True)
        except (hgops.Error, AssertionError) as error:
            return [*bits_of(answers), getattr(error, "status", "wrote beside").encode()], report
    return bits_of(answers), report


def line_of(seed: int) -> list[str]:
    graph = draft(seed)
    given = digest_of(str(graph).encode())
    if not graph.c.results and not graph.c.updated:
        return [given, "-", "-", "none"]
    results, report = results_of(graph)
    return [given, *(plan_of(report) if report else ("-", "-")), results if isinstance(results, str) else digest_of(*results)]


def lines(first: int, count: int, with_code: bool):
    with np.errstate(all="ignore"):
        for seed in range(first, first + count):
            yield seed, line_of(seed)


def show(seed: int) -> str:
    """A graph as Python on hgops, its plan and its results."""
    with np.errstate(all="ignore"):
        graph = draft(seed)
        words = [str(graph)]
        try:
            answers, report = graph.c.run_on(hgops.ENGINES[0], report="json")
        except (hgops.Error, AssertionError) as error:
            return "\n".join([*words, str(error)])
    for number, answer in enumerate(answers):
        words.append(f"result {number}: {answer.dtype}{list(answer.shape)}, digest {digest_of(answer.tobytes())}: {answer.reshape(-1)[:6]}")
    return "\n".join([*words, report.rstrip()])
