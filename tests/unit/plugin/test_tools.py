"""Programs that the plugin starts, real ones: of a directory that comes before all others."""

from __future__ import annotations

from pathlib import Path

import pytest
from concorde import tools

TOOL = """#!/bin/sh
echo "$0 $*" >>"{log}"
input=$(cat)
[ -z "$input" ] || echo "$input" >>"{log}"
case "$*$input" in
*fail*) echo "Error: it cannot be" >&2; echo "Command failed -:2" >&2; exit 1 ;;
esac
echo "$input" | tr a-z A-Z
echo "$PATH $LC_ALL $(env | wc -l)" >>"{log}.environment"
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ip", "tc", "nft", "nsenter"):
        file = tmp_path / name
        file.write_text(TOOL.format(log=tmp_path / "log"))
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"relative:{tmp_path}:/nowhere")
    return tmp_path / "log"


def lines(log: Path) -> list[str]:
    return log.read_text().replace(f"{log.parent}/", "").splitlines()


def test_a_tool_is_found_in_what_is_given_and_then_in_the_usual_places(log: Path, tmp_path: Path) -> None:
    assert tools.find("ip") == f"{tmp_path}/ip"
    assert tools.find("sh") in ("/usr/bin/sh", "/bin/sh")
    with pytest.raises(FileNotFoundError, match="nosuch is not installed"):
        tools.find("nosuch")
    (tmp_path / "ip").chmod(0o644)
    (tmp_path / "relative").mkdir()
    assert tools.find("sh").startswith("/")


def test_a_command_says_what_it_printed_in_a_fixed_environment(log: Path) -> None:
    assert tools.run("ip", "link", "show") == "\n"
    assert tools.start("tc", "qdisc").finish("one\n") == "ONE\n"
    assert lines(log) == ["ip link show", "tc qdisc", "one"]
    environment = Path(f"{log}.environment").read_text().splitlines()
    assert all(line.startswith("/usr/sbin:/usr/bin:/sbin:/bin C ") for line in environment)


def test_a_pods_command_is_run_in_its_namespace(log: Path, tmp_path: Path) -> None:
    tools.run("tc", "show", netns="/run/netns/pod")
    tools.start("nft", "-f", "-", netns="/run/netns/pod").finish("add\n")
    assert lines(log) == [
        "nsenter --net=/run/netns/pod tc show",
        "nsenter --net=/run/netns/pod nft -f -",
        "add",
    ]


def test_a_failure_names_the_command_and_the_reason(log: Path) -> None:
    with pytest.raises(tools.CommandError, match=r"^nft -f -: Error: it cannot be$") as caught:
        tools.start("nft", "-f", "-").finish("one\nfail two\nthree\n")
    assert (caught.value.line, caught.value.output.splitlines()[0]) == (0, "Error: it cannot be")
    with pytest.raises(tools.CommandError, match=r"^ip link fail: Error: it cannot be$"):
        tools.run("ip", "link", "fail")


def test_a_batch_longer_than_a_pipe_arrives_and_one_that_nobody_reads_is_its_tools_failure(
    log: Path, tmp_path: Path
) -> None:
    text = "line\n" * 100_000
    assert tools.start("tc", "-batch", "-").finish(text) == text.upper()
    (tmp_path / "tc").write_text("#!/bin/sh\nexec <&-\nexit 3\n")
    with pytest.raises(tools.CommandError, match="no message"):
        tools.start("tc").finish(text)


def test_nothing_is_left_open(log: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    tools.run("ip", "link")
    tools.start("nft").finish("y\n")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
