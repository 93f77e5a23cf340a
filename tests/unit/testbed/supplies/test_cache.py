from __future__ import annotations

import threading
from pathlib import Path

import pytest

from testbed import resources
from testbed.supplies import cache
from testbed.supplies.cache import GO_CACHE
from tests.waiting import PATIENCE


def test_the_cache_is_where_the_desktop_standard_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(resources.CACHE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.root() == Path("/somewhere/concorde-testbed/kubernetes")
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache.root() == Path.home() / ".cache/concorde-testbed/kubernetes"


def test_one_variable_moves_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(resources.CACHE, "/elsewhere")
    assert cache.root() == Path("/elsewhere/kubernetes")


def test_a_second_claim_waits_for_the_first_and_says_so() -> None:
    order: list[str] = []
    waiting = threading.Event()

    def say(words: str) -> None:
        order.append(words)
        waiting.set()

    def second() -> None:
        with cache.claimed("1.20.2", say):
            order.append("second")

    with cache.claimed("1.20.2", order.append):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(PATIENCE)
        order.append("first")
    thread.join(PATIENCE)
    assert order == ["waiting for another process that is getting 1.20.2", "first", "second"]


def test_claims_of_different_versions_do_not_wait() -> None:
    with cache.claimed("1.20.2", pytest.fail), cache.claimed("1.21.0", pytest.fail):
        pass


def test_finished_work_leaves_nothing(own_cache: Path) -> None:
    own_cache.mkdir(parents=True)
    with cache.workspace("1.20.2") as directory:
        (directory / GO_CACHE).mkdir()
        (directory / "log").write_text("words", encoding="utf-8")
    assert list(own_cache.iterdir()) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_interrupted_work_leaves_only_what_go_compiled(own_cache: Path, error: type[BaseException]) -> None:
    own_cache.mkdir(parents=True)

    def work() -> None:
        with cache.workspace("1.20.2") as directory:
            (directory / GO_CACHE).mkdir()
            (directory / "programs").mkdir()
            (directory / "log").write_text("words", encoding="utf-8")
            raise error

    with pytest.raises(error):
        work()
    assert [str(path.relative_to(own_cache)) for path in own_cache.rglob("*")] == [
        "1.20.2.unfinished",
        f"1.20.2.unfinished/{GO_CACHE}",
    ]


def test_what_a_killed_process_left_is_removed(own_cache: Path) -> None:
    left = own_cache / "1.20.2.unfinished" / "programs"
    left.mkdir(parents=True)
    (left / "kubelet").touch()
    with cache.workspace("1.20.2") as directory:
        assert list(directory.iterdir()) == []
