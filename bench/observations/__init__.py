"""What is observed beside a run's transfers; one observation a module, from the look to the page.

In the order in which each looks before the traffic, and tells what it found.
"""

from __future__ import annotations

from bench.observations.clocks import Clocks
from bench.observations.counters import Counters
from bench.observations.delays import Delays
from bench.observations.kernel import Classes, Kernel
from bench.observations.neighbours import Neighbours
from bench.observations.observation import register
from bench.observations.processors import Saturation, Stalls
from bench.observations.queues import Queues

for _one in (
    Kernel(),
    Classes(),
    Clocks(),
    Delays(),
    Counters(),
    Stalls(),
    Saturation(),
    Queues(),
    Neighbours(),
):
    register(_one)
