"""What ``docker run`` makes of its options, for runc: no Docker is needed to try a command of the docs.

Capabilities, hidden paths and mounts are Docker's defaults (github.com/moby/moby, daemon/pkg/oci). Of its
default seccomp profile only that is here which concerns namespaces and mounts: other calls are allowed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

DEFAULT_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
MASKED = [
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
    "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
    "/sys/devices/virtual/powercap", "/sys/firmware",
]  # fmt: skip
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
# profiles/seccomp/default.json allows these with CAP_SYS_ADMIN only, and clone if it makes no namespace.
GUARDED = [
    "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount", "open_tree",
    "sethostname", "setns", "umount", "umount2", "unshare",
]  # fmt: skip
NEW_NAMESPACES = (
    0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET (linux/sched.h)
)
UNCONFINED = ("seccomp", "apparmor", "systempaths")


@dataclass(frozen=True)
class Command:
    """A ``docker run`` line, understood."""

    image: str
    words: tuple[str, ...]
    capabilities: frozenset[str] = DEFAULT_CAPABILITIES
    unconfined: frozenset[str] = frozenset()
    user: tuple[int, int] = (0, 0)
    volumes: dict[str, str] = field(default_factory=dict)  # directories of the host, by where they are seen
    devices: tuple[str, ...] = ()


def parse(words: Sequence[str]) -> Command:
    """Understand the words of a ``docker run`` line. Raises LookupError for other options."""
    program, verb, *rest = words
    assert (program, verb) == ("docker", "run")
    command = Command("", ())
    while rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--rm":
            continue
        value = rest.pop(0)
        if option == "--cap-add":
            command = replace(command, capabilities=command.capabilities | {value})
        elif option == "--security-opt":
            what, _, how = value.partition("=")
            if what not in UNCONFINED or how != "unconfined":
                raise LookupError(f"{option} {value}")
            command = replace(command, unconfined=command.unconfined | {what})
        elif option == "--user":
            user, _, group = value.partition(":")
            command = replace(command, user=(int(user), int(group)))
        elif option == "--volume":
            source, _, target = value.partition(":")
            command = replace(command, volumes={**command.volumes, target: source})
        elif option == "--device":
            command = replace(command, devices=(*command.devices, value))
        else:
            raise LookupError(option)
    image, *others = rest
    return replace(command, image=image, words=tuple(others))


def configuration(command: Command, start: dict[str, Any]) -> dict[str, Any]:
    """Return runc's configuration of a container (github.com/opencontainers/runtime-spec, config.md)."""
    user, group = command.user
    bounding = [f"CAP_{name}" for name in sorted(command.capabilities)]
    effective = bounding if user == 0 else []  # the kernel takes them from others than root at exec
    proc = "systempaths" not in command.unconfined
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs"},
        "hostname": "container",
        "process": {
            "args": [*start["Entrypoint"], *command.words],
            "env": start["Env"],
            "cwd": start["WorkingDir"],
            "user": {"uid": user, "gid": group},
            "capabilities": {"bounding": bounding, "effective": effective, "permitted": effective},
        },
        "mounts": [
            _mount("proc", "/proc", "nosuid", "noexec", "nodev"),
            _mount("tmpfs", "/dev", "nosuid", "strictatime", "mode=755", "size=65536k"),
            _mount(
                "devpts", "/dev/pts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"
            ),
            _mount("sysfs", "/sys", "nosuid", "noexec", "nodev", "ro"),
            _mount("cgroup", "/sys/fs/cgroup", "ro", "nosuid", "noexec", "nodev"),
            _mount("mqueue", "/dev/mqueue", "nosuid", "noexec", "nodev"),
            _mount("tmpfs", "/dev/shm", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),
            *(
                {"type": "bind", "source": source, "destination": target, "options": ["rbind", "rprivate"]}
                for target, source in command.volumes.items()
            ),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("mount", "network", "uts", "pid", "ipc")],
            "maskedPaths": MASKED if proc else [],
            "readonlyPaths": READ_ONLY if proc else [],
            "devices": [_device(path) for path in command.devices],
            "resources": {
                "devices": [
                    {"allow": False, "access": "rwm"},
                    *({**_device(path), "allow": True, "access": "rwm"} for path in command.devices),
                ]
            },
            **({} if "seccomp" in command.unconfined else {"seccomp": _seccomp(command)}),
        },
    }


def unpack(archive: Path, directory: Path) -> dict[str, Any]:
    """Lay an image's files out below a directory, as ``rootfs``; return what it says of how it starts."""
    with tarfile.open(archive) as image:

        def member(name: str) -> Any:
            stream = image.extractfile(name)
            assert stream is not None
            return stream

        (described,) = json.load(member("manifest.json"))
        (layer,) = described["Layers"]
        (directory / "rootfs").mkdir()
        unpack = ["tar", "--extract", "--preserve-permissions", "--directory", str(directory / "rootfs")]
        with subprocess.Popen(unpack, stdin=subprocess.PIPE) as unpacking:
            assert unpacking.stdin is not None
            shutil.copyfileobj(member(layer), unpacking.stdin)
        assert unpacking.returncode == 0
        start: dict[str, Any] = json.load(member(described["Config"]))["config"]
        return start


def run(
    command: Command, start: dict[str, Any], directory: Path, name: str, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a container of the files below a directory, with a fresh ``/tmp``; return how it ended."""
    temporary = directory / "rootfs" / "tmp"
    shutil.rmtree(temporary)
    temporary.mkdir()
    temporary.chmod(0o1777)
    (directory / "config.json").write_text(json.dumps(configuration(command, start)), encoding="utf-8")
    runc = ["runc", "--root", str(directory / "state"), "run", "--bundle", str(directory), name]
    return subprocess.run(runc, capture_output=True, text=True, check=False, timeout=seconds)


def _mount(kind: str, place: str, *options: str) -> dict[str, Any]:
    return {"type": kind, "source": kind, "destination": place, "options": [*options]}


def _device(path: str) -> dict[str, Any]:
    found = Path(path).stat()
    number = found.st_rdev
    return {
        "path": path, "type": "c", "major": os.major(number), "minor": os.minor(number),
        "fileMode": found.st_mode & 0o777, "uid": 0, "gid": 0,
    }  # fmt: skip


def _seccomp(command: Command) -> dict[str, Any]:
    refused: list[dict[str, Any]] = []
    if "SYS_ADMIN" not in command.capabilities:
        namespaces = [
            {"index": 0, "value": 1 << bit, "valueTwo": 1 << bit, "op": "SCMP_CMP_MASKED_EQ"}
            for bit in range(32)
            if NEW_NAMESPACES >> bit & 1
        ]
        refused = [
            {"names": GUARDED, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
            *(
                {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [one]}
                for one in namespaces
            ),
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
        ]
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": refused}
