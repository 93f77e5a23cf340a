"""The programs that nodes need, and Debian's packages of them.

``invokew`` installs those of this machine; it has their names too, since it comes before any Python package.
"""

NODE = {
    "ip": "iproute2",
    "tc": "iproute2",
    "bridge": "iproute2",
    "ss": "iproute2",
    "nft": "nftables",
    "iperf3": "iperf3",
    "nsenter": "util-linux",
}
# For nodes that are namespaces of this machine.
SANDBOX = {**NODE, "unshare": "util-linux", "setpriv": "util-linux", "mount": "mount"}
# For a node that is a machine.
MACHINE = {
    **NODE,
    "timeout": "coreutils",
    "tar": "tar",
    "/usr/bin/python3": "python3",
}
