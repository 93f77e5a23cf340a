"""What a pod's flows get of its class beside its own flood, where they take turns and where they do not.

Run as root on a bare machine, by its text: namespaces are a node, the other end of its uplink, and two pods.
Arguments are the built plugin's path, which pod sends, and further keys of the network as JSON. Says as JSON
what was received, and what the plugin said meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any

PLUGIN, POD = sys.argv[1:3]
KEYS = json.loads(sys.argv[3])
# Rounds of which each is another connection, for its flow may be taken for the flood's, once in 256; and how
# many there may be, as one in which a busy machine could not flood tells nothing.
ROUNDS, MOST = 3, 9
WARM_UP, SECONDS = 3.0, 6.0
FLOOD = 4_000_000  # bits per second of payload, of a link of 1 Mbit/s
PAYLOAD, AT_ONCE = 1200, 5
PORT = 5300
REMOTE = "172.16.2.77"
ENDS = {
    # What the uplink's two ends are made of: addresses, and a VXLAN between them as flannel makes it.
    "node": ("192.168.9.1", "192.168.9.2", "0e:00:00:00:00:01", "0e:00:00:00:00:02", 1, 2),
    "other": ("192.168.9.2", "192.168.9.1", "0e:00:00:00:00:02", "0e:00:00:00:00:01", 2, 1),
}
PROMISED, PLAIN = "A-1", "A-2"
CLASSES = {PROMISED: "c0de:10", PLAIN: "c0de:4011"}
STATE = "/run/leaves"

# In the pod: connects, writes into its connection in a process of its own, and floods by datagrams until its
# input ends; then says how many bytes a second these were.
SENDER = f"""
import os, select, socket, sys, time
link = socket.create_connection(({REMOTE!r}, {PORT}))
child = os.fork()
if child == 0:
    while True:
        link.send(bytes({PAYLOAD}))
datagrams = socket.socket(type=socket.SOCK_DGRAM)
datagrams.connect(({REMOTE!r}, {PORT}))
print("under way", flush=True)
begun = due = time.monotonic()
sent, wait = 0, 0.0
while not select.select([sys.stdin], [], [], wait)[0]:
    for _ in range({AT_ONCE}):
        datagrams.send(bytes({PAYLOAD}))
    sent += {AT_ONCE * PAYLOAD}
    due = max(due + {AT_ONCE * PAYLOAD * 8 / FLOOD}, time.monotonic() - 0.1)
    wait = max(0.0, due - time.monotonic())
print(sent / (time.monotonic() - begun), flush=True)
os.kill(child, 9)
"""
# At the other end: counts what arrives, and says both counts for each line of its input.
RECEIVER = f"""
import json, socket, sys, threading
got = {{"tcp": 0, "udp": 0}}
def count(kind, link):
    while True:
        size = len(link.recv(1 << 16))
        if not size:
            return
        got[kind] += size
server = socket.create_server(("", {PORT}))
def accept():
    while True:
        threading.Thread(target=count, args=("tcp", server.accept()[0]), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
datagrams = socket.socket(type=socket.SOCK_DGRAM)
datagrams.bind(("", {PORT}))
threading.Thread(target=count, args=("udp", datagrams), daemon=True).start()
for _ in iter(lambda: print(json.dumps(got), flush=True) or sys.stdin.readline(), ""):
    pass
"""


def run(place: str, *command: str, stdin: str = "") -> str:
    """Run a command in a namespace; its output."""
    argv = ["ip", "netns", "exec", place, *command]
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout} {done.stderr}")
    return done.stdout


def call(verb: str, pod: str, **keys: Any) -> dict[str, Any]:
    """Call the plugin on the node, as a runtime does."""
    promise = {"concorde.contmec.dev/egress-guarantee": "500k"} if pod == PROMISED else {}
    network = {
        "cniVersion": "1.1.0", "name": "cluster-a", "type": "concorde", "bridge": "cni-a",
        "subnet": "172.16.1.0/24", "mtu": 1450, "enforcement": "node", "uplink": "eth0",
        "capacity": "1M", "stateDir": STATE,
        "runtimeConfig": {"io.kubernetes.cri.pod-annotations": promise}, **keys,
    }  # fmt: skip
    environment = {
        "CNI_COMMAND": verb, "CNI_CONTAINERID": pod, "CNI_IFNAME": "eth0", "CNI_PATH": "/nowhere",
        "CNI_NETNS": f"/run/netns/{pod}", "PATH": os.environ["PATH"],
    }  # fmt: skip
    argv = ["ip", "netns", "exec", "node", PLUGIN]
    done = subprocess.run(
        argv, input=json.dumps(network), env=environment, capture_output=True, text=True, check=False
    )
    answer: dict[str, Any] = json.loads(done.stdout or "{}")
    return answer


def make() -> None:
    """Make the node, the other end of its uplink, and the pods' namespaces, in place of those of before."""
    shutil.rmtree(STATE, ignore_errors=True)
    for name in (*ENDS, PROMISED, PLAIN):
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "add", name], check=True)
        run(name, "ip", "link", "set", "lo", "up")
    run("node", "ip", "-batch", "-", stdin="link add eth0 type veth peer name eth0 netns other\n")
    for name, (own, peer, mac, peers_mac, mine, theirs) in ENDS.items():
        lines = (
            f"addr add {own}/24 dev eth0",
            "link set eth0 up",
            f"link add flannel.1 type vxlan id 1 dev eth0 local {own} dstport 8472 nolearning",
            f"link set flannel.1 address {mac} mtu 1450 up",
            f"addr add 172.16.{mine}.0/32 dev flannel.1",
            f"route add 172.16.{theirs}.0/24 via 172.16.{theirs}.0 dev flannel.1 onlink",
            f"neigh add 172.16.{theirs}.0 lladdr {peers_mac} dev flannel.1 nud permanent",
        )
        run(name, "ip", "-batch", "-", stdin="\n".join(lines) + "\n")
        run(name, *f"bridge fdb add {peers_mac} dev flannel.1 dst {peer}".split())
    run("other", "ip", "addr", "add", f"{REMOTE}/32", "dev", "lo")


def received(pod: str) -> dict[str, int]:
    """Let a pod send both ways for a while; the bytes of each that arrived, and of its flood that it sent."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    enter = ["ip", "netns", "exec"]
    with subprocess.Popen([*enter, "other", "python3", "-c", RECEIVER], **pipes) as receiver:
        asked, counts = receiver.stdin, receiver.stdout
        assert asked is not None
        assert counts is not None
        counts.readline()  # it listens

        def count() -> dict[str, int]:
            asked.write("\n")
            asked.flush()
            said: dict[str, int] = json.loads(counts.readline())
            return said

        with subprocess.Popen([*enter, pod, "python3", "-c", SENDER], **pipes) as sender:
            assert sender.stdin is not None
            assert sender.stdout is not None
            sender.stdout.readline()
            time.sleep(WARM_UP)
            before = count()
            time.sleep(SECONDS)
            after = count()
            sender.stdin.close()
            offered = float(sender.stdout.read())
        asked.close()
    return {"offered": round(offered * SECONDS), **{kind: after[kind] - before[kind] for kind in after}}


def rounds(pod: str) -> list[dict[str, int]]:
    """Let it do so until its flood has been twice what arrived often enough."""
    found: list[dict[str, int]] = []
    for _ in range(MOST):
        one = received(pod)
        found += [one] if one["offered"] > 2 * (one["tcp"] + one["udp"]) else []
        if len(found) == ROUNDS:
            break
    return found


def leaf(pod: str) -> list[dict[str, Any]]:
    """The queues of a pod's class, from the class down."""
    shown = json.loads(run("node", "tc", "-r", "-s", "-j", "qdisc", "show", "dev", "eth0"))
    above, found = CLASSES[pod], []
    for _ in range(2):
        for queue in shown:
            if queue.get("parent") == above:
                found.append(queue)
                above = queue["handle"] + "1"
    return found


def sent(pod: str) -> int:
    """The bytes that a pod's class has sent."""
    words = run("node", "tc", "-s", "class", "show", "dev", "eth0").split()
    return int(words[words.index("Sent", words.index(CLASSES[pod])) + 1])


def fifo(pod: str) -> None:
    """Give a pod's class the queue that it had before flows took turns."""
    above, limit = CLASSES[pod], leaf(pod)[-1]["options"]["memory_limit"] // 2
    lines = f"qdisc delete dev eth0 parent {above}\n"
    lines += f"qdisc add dev eth0 parent {above} handle {above.partition(':')[2]}: bfifo limit {limit}\n"
    run("node", "tc", "-batch", "-", stdin=lines)


def dropped(pod: str) -> list[float]:
    """The packets of a pod's class that were dropped, as the plugin's metrics have it."""
    return [
        float(line.split()[-1])
        for line in run("node", PLUGIN, "metrics", "--state-dir", STATE).splitlines()
        if line.startswith("concorde_class_dropped_packets_total{") and CLASSES[pod] in line
    ]


def main() -> None:
    """Do all, and say it."""
    make()
    results = {name: call("ADD", name, **KEYS) for name in (PROMISED, PLAIN)}
    said: dict[str, Any] = {"codes": [answer.get("code") for answer in results.values()]}
    network = {**KEYS, "prevResult": results[POD]}
    said["kinds"] = [queue["kind"] for queue in leaf(POD)]
    said["turns"] = rounds(POD)
    said["dropped"], said["metrics"] = leaf(POD)[0]["drops"], dropped(POD)
    before = sent(POD)
    fifo(POD)
    said["fifo"] = rounds(POD)
    said["check"] = call("CHECK", POD, **network).get("msg", "")
    said["reconcile"] = run("node", PLUGIN, "reconcile", "--state-dir", STATE).splitlines()
    said["counted on"] = sent(POD) > before > 0
    said["kinds after"] = [queue["kind"] for queue in leaf(POD)]
    said["check after"] = call("CHECK", POD, **network)
    said["again"] = run("node", PLUGIN, "reconcile", "--state-dir", STATE)
    sys.stdout.write(json.dumps(said) + "\n")


main()
