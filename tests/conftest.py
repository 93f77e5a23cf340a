"""What all tests share."""

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests import cases, parts
from tests.paths import ROOT

# A shell starts what is to run in the background with SIGINT ignored, and so would start whatever tests
# start, to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ASKED_FOR = ("pytest.mark.long", "pytest.mark.alone")
UNIT = ROOT / "tests" / "unit"

# Modules read it as they are imported, and xdist's processes inherit it: all of a run have one seed.
os.environ.setdefault(cases.SEED, str(cases.of_commit()))

# Half of what it takes to collect thousands of tests would go into looking for garbage among them.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for garbage again, but among what tests make, and not among themselves."""
    gc.freeze()
    gc.enable()


def pytest_report_header() -> str:
    return f"seed: {cases.seed()} ({cases.SEED}; by default of the commit), {cases.share()} % of full counts"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave modules unread that have no test of the mark that is asked for: to import all takes long."""
    mark = f"pytest.mark.{config.option.markexpr.partition(' ')[0]}"
    if mark not in ASKED_FOR or not collection_path.match("test_*.py"):
        return None
    return mark not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run is not asked for, and give what hypothesis generates the run's seed.

    Of tests marked ``long(one_in=N)``, ``./invokew test`` runs each N-th case, or with 0 none, and
    ``./invokew test.long`` its share of all - or, if they are ``counted``, all with a share of their count.
    ``test`` with a share does both, and has no test twice. What is named on the command line is run.
    """
    if hypothesis := sys.modules.get("hypothesis"):
        for item in items:
            if isinstance(item, pytest.Function) and hypothesis.is_hypothesis_test(item.obj):
                hypothesis.seed(cases.seed())(item.obj)
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(cases.most_seconds()))
    if any("::" in argument for argument in config.args):
        return
    some = config.option.markexpr.partition(" ")[0] in ("long", "alone")
    wanted = set(cases.shard(_wanted(items, each_nth=not (some and cases.share()))))
    if left_out := [item for item in items if item not in wanted]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in wanted]


def _wanted(items: list[pytest.Item], each_nth: bool) -> list[pytest.Item]:
    usual: list[pytest.Item] = []
    part: list[pytest.Item] = []
    by_turns: list[pytest.Item] = []
    number: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("alone") and UNIT in item.path.parents:
            raise pytest.UsageError(f"{item.nodeid}: marked alone, but only tests elsewhere are run alone")
        mark = item.get_closest_marker("long")
        if mark is None or "one_in" not in mark.kwargs:
            (by_turns if item.get_closest_marker("by_turns") else usual).append(item)
            continue
        test, one_in = item.nodeid.partition("[")[0], mark.kwargs["one_in"]
        if (each_nth and one_in and number[test] % one_in == 0) or (
            cases.share() and mark.kwargs.get("counted")
        ):
            usual.append(item)
        elif cases.share():
            part.append(item)
        number[test] += 1
    return [*usual, *cases.chosen(part), *cases.whose_turn_it_is(by_turns)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Judge what runs alone anew, once, before it fails; the last one's word counts.

    It judges a rate or a time on a machine that others may use, and not all can be asked for more samples
    (``cases.with_more_samples``). What is broken is broken twice.
    """
    if not isinstance(item, pytest.Function) or item.get_closest_marker("alone") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if failed := [report for report in reports if report.failed]:
        item._initrequest()  # fixtures are made anew, as pytest-rerunfailures does it
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            report.sections.append(("it failed before", str(failed[0].longrepr)))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.append(("to repeat it", cases.command(item.nodeid)))
    return report


@pytest.fixture
def own_parts() -> Iterator[None]:
    """Let a test make parts known, or take them away, for itself alone."""
    with parts.put_back():
        yield
