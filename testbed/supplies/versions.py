"""What differs between versions of Kubernetes, as far as the testbed must know it to start the components.

Each difference names the change that made it: a pull request of kubernetes/kubernetes, listed in the
CHANGELOG of that minor version. Only the versions in ``RUN_HERE`` were ever run; for the others the
differences were looked up, so they are expected to work and no more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT = "1.20.2"
RUN_HERE = ("1.20.2",)
CURRENT = "1.34.0"  # what machines get when the programs come from the internet
# What Debian 12 has as a source package; the Go that builds it is pinned in requirements/go.txt.
BUILDABLE = ("1.20.2",)

# The minor versions whose changes were looked up. Later kubelets refuse cgroup v1 unless told otherwise.
OLDEST, NEWEST = 20, 34


@dataclass(frozen=True, order=True)
class Version:
    """A release of Kubernetes 1."""

    minor: int
    patch: int

    def __str__(self) -> str:
        return f"1.{self.minor}.{self.patch}"

    @property
    def assumes_docker(self) -> bool:
        """Whether the kubelet needs ``--container-runtime=remote``.

        Docker was the default until 1.24 took it out (#97252); 1.27 does not know the flag (#114017).
        """
        return self.minor < 24

    @property
    def has_insecure_ports(self) -> bool:
        """Whether controller manager and scheduler need ``--port=0``, or they serve without encryption.

        The flag does nothing since 1.22 (#96216) and 1.23 (#96345), and is gone in 1.24.
        """
        return self.minor < 24

    @property
    def can_forgo_device_plugins(self) -> bool:
        """Whether the kubelet knows ``featureGates: {DevicePlugins: false}``.

        They are always on since 1.26 (#112980), and the gate is gone in 1.28 (#117656). A kubelet that has
        them takes extended resources out of its node when it registers (kubelet_node_status.go,
        reconcileExtendedResource): those are published again then.
        """
        return self.minor < 26

    @property
    def keeps_two_families(self) -> bool:
        """Whether a Node keeps its blocks of both families by itself.

        The gate IPv6DualStack is on by default from 1.21 (#98969), and is gone in 1.25.
        """
        return self.minor >= 21

    @property
    def limits_disks_by_gate(self) -> bool:
        """Whether it is the gate LocalStorageCapacityIsolation that says if pods' disks have limits.

        Since 1.25 it is a setting of the kubelet (#111513).
        """
        return self.minor < 25

    @property
    def kubeadm_configuration(self) -> str:
        """The version of the configuration file that kubeadm is given.

        v1beta3 came with 1.22 and v1beta4 with 1.31 (kubeadm's API reference); each is read for several
        minor versions more.
        """
        return "v1beta2" if self.minor < 22 else "v1beta3" if self.minor < 31 else "v1beta4"

    @property
    def has_patches_in_configuration(self) -> bool:
        """Whether kubeadm is told in its configuration where patches are, and not by a flag (#103063)."""
        return self.minor >= 22

    @property
    def names_algorithm_in_configuration(self) -> bool:
        """Whether kubeadm is told the algorithm of its keys by name; from v1beta4 on (#123054).

        Before that it has the feature gate ``PublicKeysECDSA``, since 1.19 (#86953).
        """
        return self.minor >= 31

    @property
    def has_timeouts_in_configuration(self) -> bool:
        """Whether kubeadm is told in one place how long it waits for what; from v1beta4 on (#122529)."""
        return self.minor >= 31


def parse(text: str) -> Version:
    """Return the version that is written like 1.20.2. Raises LookupError for anything that is none."""
    match = re.fullmatch(r"1\.([0-9]{1,3})\.([0-9]{1,3})", text)
    if match is None:
        raise LookupError(f"--version: must be a version of Kubernetes, such as {DEFAULT}, not {text!r}")
    version = Version(int(match[1]), int(match[2]))
    if not OLDEST <= version.minor <= NEWEST:
        raise LookupError(
            f"--version: Kubernetes {version} is not known here (known: 1.{OLDEST} to 1.{NEWEST}; "
            f"run here: {', '.join(RUN_HERE)})"
        )
    return version
