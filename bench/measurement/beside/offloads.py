"""A promised flow whose packets are as large as frames from the beginning: without segmentation offload."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.measurement.beside import streams
from bench.recording.beside import Round
from testbed.testbed import Testbed

WARM_UP_S = 1.0
# SIOCETHTOOL with ETHTOOL_SGSO, _STSO and _GGSO of linux/ethtool.h; where the pod's image has no ethtool.
TURN_OFF = """
import array, fcntl, socket, struct, sys
asked = socket.socket()
def ask(command, value=0):
    said = array.array("B", struct.pack("II", command, value))
    fcntl.ioctl(asked, 0x8946, struct.pack("16sP16x", sys.argv[1].encode(), said.buffer_info()[0]))
    return struct.unpack("II", said)[1]
ask(0x1F)
ask(0x24)
sys.exit(ask(0x23))
"""


def without(testbed: Testbed, label: str, others: str, pods: Sequence[str], seconds: float) -> Round:
    """Turn segmentation offload off in pods, and measure a flow beside others for so long.

    Raises RuntimeError, also for a pod in which it stays on.
    """
    for pod in pods:
        place = testbed.networks[pod]
        place.run(["python3", "-IS", "-c", TURN_OFF, place.interface])
    with (
        streams.counting(testbed, label) as counted,
        streams.sending(testbed, label, others),
    ):
        begun = time.monotonic() + WARM_UP_S
        streams.wait_until(begun + seconds)
        ended = time.monotonic()
    return counted.round("without GSO", streams.floor(testbed, label), begun, ended)
