from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from concorde import requests
from concorde.cni import INVALID_ENVIRONMENT, IO_FAILURE, UNDECODABLE, UNKNOWN_CONTAINER, CniError


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("K8S_POD_NAME=web;IgnoreUnknown=1;K8S_POD_NAMESPACE=default", "default/web"),
        ("K8S_POD_NAME=web", ""),
        ("K8S_POD_NAMESPACE=a b;K8S_POD_NAME=web", ""),
        ("", ""),
        ("=;;=", ""),
    ],
)
def test_the_pods_name_is_taken_from_the_runtimes_arguments(arguments: str, name: str) -> None:
    assert requests.pod_name(arguments) == name


OWN = "/proc/self/ns/net"
RIGHT = {"CNI_CONTAINERID": "a", "CNI_IFNAME": "eth0", "CNI_ARGS": "K8S_POD_NAME=web;K8S_POD_NAMESPACE=x"}


def refused(verb: str, environment: dict[str, str]) -> CniError:
    with pytest.raises(CniError) as caught:
        requests.request(verb, environment, {})
    return caught.value


@pytest.mark.parametrize(
    ("netns", "code", "words"),
    [
        ("", INVALID_ENVIRONMENT, "CNI_NETNS: missing"),
        ("relative", INVALID_ENVIRONMENT, "is not a plain absolute path"),
        ("/nowhere", UNKNOWN_CONTAINER, "CNI_NETNS: /nowhere: No such file or directory"),
        ("/dev/null", INVALID_ENVIRONMENT, "/dev/null is not a namespace"),
        (OWN, INVALID_ENVIRONMENT, "is the node's own namespace"),
        ("/proc/self/ns/mnt", INVALID_ENVIRONMENT, "is not a network namespace"),
    ],
)
def test_what_is_no_pods_namespace_is_refused_but_to_del(netns: str, code: int, words: str) -> None:
    for verb in ("ADD", "CHECK"):
        error = refused(verb, {**RIGHT, "CNI_NETNS": netns})
        assert (error.code, words in error.msg) == (code, True)
    if netns != "relative":
        request = requests.request("DEL", {**RIGHT, "CNI_NETNS": netns}, {"cniVersion": "1.1.0"})
        assert (request.netns, request.pod, request.version) == ("", "x/web", "1.1.0")


def test_another_namespace_of_the_network_is_a_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Path(OWN).stat()

    def stat(path: str) -> SimpleNamespace:
        return SimpleNamespace(st_dev=found.st_dev, st_ino=found.st_ino + (path == "/proc/self/ns/./net"))

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr("concorde.names.is_path", lambda text: True)
    for verb in ("ADD", "CHECK", "DEL"):
        environment = {**RIGHT, "CNI_NETNS": "/proc/self/ns/./net"}
        assert requests.request(verb, environment, {}).netns == "/proc/self/ns/./net"


@pytest.mark.parametrize(
    ("verb", "changed", "words"),
    [
        ("ADD", {"CNI_CONTAINERID": "a b"}, "CNI_CONTAINERID: 'a b' is not a container id"),
        ("DEL", {"CNI_CONTAINERID": ""}, "is not a container id"),
        ("ADD", {"CNI_IFNAME": "a/b"}, "CNI_IFNAME: 'a/b' is not an interface name"),
        ("ADD", {"CNI_IFNAME": "lo"}, "CNI_IFNAME: 'lo' is not an interface name"),
    ],
)
def test_a_variable_that_is_wrong_is_named(verb: str, changed: dict[str, str], words: str) -> None:
    error = refused(verb, {**RIGHT, **changed})
    assert (error.code, words in error.msg) == (INVALID_ENVIRONMENT, True)


def test_the_node_is_asked_without_a_pod_and_lo_may_be_given_back() -> None:
    for verb in ("GC", "STATUS"):
        request = requests.request(verb, {}, {})
        assert (request.container, request.interface, request.netns, request.pod) == ("", "", "", "")
    assert requests.request("DEL", {**RIGHT, "CNI_IFNAME": "lo"}, {}).interface == "lo"
    with pytest.raises(CniError, match="CNI_COMMAND: 'ad' is not an operation") as caught:
        requests.command({"CNI_COMMAND": "ad"})
    assert caught.value.code == INVALID_ENVIRONMENT
    assert [requests.command({"CNI_COMMAND": verb}) for verb in ("ADD", "VERSION")] == ["ADD", "VERSION"]


@pytest.mark.parametrize(("size", "fits"), [(0, True), ((4 << 20), True), ((4 << 20) + 1, False)])
def test_the_input_is_read_to_its_end_and_no_further_than_four_mebibytes(
    size: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = io.BytesIO(b"x" * size)
    monkeypatch.setattr(os, "read", lambda descriptor, most: given.read(most))
    if fits:
        assert len(requests.read_input()) == size
        return
    with pytest.raises(CniError, match="longer than 4194304 bytes") as caught:
        requests.read_input()
    assert caught.value.code == UNDECODABLE


def test_an_input_that_cannot_be_read_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, most: int) -> bytes:
        raise OSError(errno.EIO, "no disk")

    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(CniError, match="standard input: no disk") as caught:
        requests.read_input()
    assert caught.value.code == IO_FAILURE
