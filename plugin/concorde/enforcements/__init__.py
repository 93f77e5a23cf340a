"""How a promise is kept: one module for each way, chosen by the configuration key `enforcement`.

A further one is a module beside these, which has what `Enforcement` lists, and its name in
configuration.ENFORCEMENTS. Nobody else asks which of them it is. What every attachment has is not theirs: its
interface, its entry in the node's ledger, and the guard at its port.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from ..configuration import Configuration, Identity
    from ..leases import Lease
    from ..node.records import Entry
    from ..node.settings import Settings

    class Enforcement(Protocol):
        """What the verbs, the installer and `rebuild` ask; STATUS stands for the installer too.

        `RESERVES` says whether a guarantee is kept on the node's uplink. It is then a class of the node's
        tree, which outlives the pod's interface, and at the interface only a ceiling is kept. `RECEIVES` says
        whether it keeps promises of what pods receive, too. `TOOLS` are the programs it runs, `QDISCS` the
        kinds of queues it makes.
        """

        RESERVES: bool
        RECEIVES: bool
        TOOLS: tuple[str, ...]
        QDISCS: tuple[str, ...]

        def on_uplink(self, network: Configuration) -> Settings | None:
            """The keys that say how promises are kept on the uplink; None if not there. Raises CniError 7.

            For ADD, CHECK, STATUS and `rebuild`.
            """

        def absent(self, network: Configuration) -> str:
            """What is to run on the node for promises of what pods receive, and does not, in words; or "".

            Where that is so, an ADD with such a promise is to be tried again, and STATUS warns.
            """

        def install(self, network: Configuration, lease: Lease, entry: Entry, netns: str) -> None:
            """ADD: enforce the lease's rate before its interface carries traffic. All or nothing."""

        def remove(self, network: Identity, lease: Lease, netns: str) -> None:
            """DEL and GC: undo what would outlive the pod's interface; `netns` may be empty: unknown."""

        def check(self, network: Configuration, lease: Lease, netns: str) -> None:
            """CHECK: raise CniError 104 when the kernel no longer enforces what install() set."""


def load(name: str) -> Enforcement:
    """The module of that name, one of configuration.ENFORCEMENTS; only it is imported."""
    # Not importlib, whose own loading takes a quarter of a millisecond.
    module: Any = __import__(f"{__name__}.{name}", fromlist=["install"])
    enforcement: Enforcement = module
    return enforcement
