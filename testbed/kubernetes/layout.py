"""Where things are on a provisioned machine, and what the installer calls what it makes in a cluster.

See docs/howto/machines-become-clusters.md and ``plugin/deploy``.
"""

from __future__ import annotations

HOME = "/opt/concorde-testbed"  # programs, which all clusters share
SETTINGS = "/etc/concorde-testbed"
CELLS = "/var/cells"  # where all that is a cell's own lies
PROGRAMS, CNI = f"{HOME}/bin", f"{HOME}/cni"
IN_CELL = f"{PROGRAMS}/in-cell"  # CLUSTER COMMAND...: where its containerd and kubelet are
ADMIN = "/etc/kubernetes/admin.conf"  # in a master's cell


def networks(cluster: str) -> str:
    """Return where a cell's containerd finds its network configuration."""
    return f"{SETTINGS}/{cluster}/net.d"


def patches(cluster: str) -> str:
    """Return where kubeadm finds what is to be different about a control plane's pods."""
    return f"{SETTINGS}/{cluster}/patches"


CONFIGURATION = "concorde"  # namespace and name of the installer's ConfigMap; plugin/deploy

LIST, DIRECTORY = "concorde.conflist", "bin-dir"  # its keys
