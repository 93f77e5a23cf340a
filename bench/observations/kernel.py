"""Has the kernel what was configured, still? And did all packets leave through classes that keep promises?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.observations import counters
from bench.observations.observation import Observation, Scene, Seen
from bench.recording.records import Fault
from testbed.access.place import CommandError

if TYPE_CHECKING:
    from testbed.enforcements.enforcement import Guarded


class Kernel(Observation):
    """Asks the testbed, which knows what it configured."""

    name = "kernel"
    at_once = False

    def after(self, scene: Scene, before: Any) -> Seen:
        """Return a fault for everything that is not as it was configured."""
        return Seen(faults=[Fault(kind="state", text=text) for text in scene.testbed.check()])


Passed = dict[str, int | str]  # packets past the classes by interface, or what is wrong with one


class Classes(Observation):
    """Counts at every interface where the enforcement says that none may pass."""

    name = "classes"
    at_once = False

    def before(self, scene: Scene) -> Passed:
        """Count what has passed by before."""
        return passed(scene.testbed.enforcement.guarded(scene.testbed))

    def after(self, scene: Scene, before: Passed) -> Seen:
        """Return a fault for each interface with more."""
        found = faults(before, self.before(scene))
        return Seen(faults=[Fault(kind="state", text=text) for text in found])


def passed(guarded: Mapping[str, Guarded]) -> Passed:
    """Return how many packets have left each interface past its classes, or what is wrong."""
    found: Passed = {}
    for name, (place, interface) in guarded.items():
        try:
            count = counters.read(place, interface)
        except CommandError as error:
            found[name] = str(error)
            continue
        without = f"{interface} has no HTB, so nothing kept a guarantee"
        found[name] = without if count.class_bytes is None else count.direct_packets
    return found


def faults(before: Passed, after: Passed) -> list[str]:
    """Return a fault for every interface that packets left past its classes, or that had none."""
    found = []
    for name, count in after.items():
        earlier = before[name]
        if isinstance(count, str) or isinstance(earlier, str):
            found.append(f"{name}: {count if isinstance(count, str) else earlier}")
        elif count > earlier:
            found.append(f"{name}: {count - earlier} packets passed by its classes")
    return found
