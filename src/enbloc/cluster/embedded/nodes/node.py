"""A node as its own kubelet sees it: whether it is up, what it can hold, what it holds."""

from __future__ import annotations

from enbloc.api.meta import Obj, condition_of
from enbloc.cluster.embedded.api.pods import Amounts
from enbloc.units import NANO, format_quantity, parse_quantity


class Machine:
    """The room of one node. `used` is what pods that were let in, and have not ended, ask for."""

    __slots__ = ("address", "allocatable", "ready", "used")

    def __init__(self, node: Obj, number: int) -> None:
        self.address = f"192.168.{number >> 8 & 255}.{number & 255}"
        self.used: Amounts = {}
        self.update(node)

    def update(self, node: Obj) -> None:
        ready = condition_of(node, "Ready")
        self.ready = ready is None or ready.get("status") == "True"
        status = node.get("status") or {}
        room = status.get("allocatable") or status.get("capacity") or {}
        self.allocatable: Amounts = {name: parse_quantity(value).nanos for name, value in room.items()}

    def refusal(self, asked: Amounts) -> tuple[str, str] | None:
        """The reason and message with which a kubelet refuses a pod that does not fit; a node that names no number of
        pods takes any."""
        for name, nanos in {"pods": NANO, **asked}.items():
            used = self.used.get(name, 0)
            room = self.allocatable.get(name, used + nanos if name == "pods" else 0)
            if nanos and used + nanos > room:
                amounts = [format_quantity(amount) for amount in (nanos, used, room)]
                return f"OutOf{name}", (
                    f"Pod was rejected: Node didn't have enough resource: {name}, "
                    f"requested: {amounts[0]}, used: {amounts[1]}, capacity: {amounts[2]}"
                )
        return None

    def hold(self, asked: Amounts) -> None:
        self._change(asked, 1)

    def release(self, asked: Amounts) -> None:
        self._change(asked, -1)

    def _change(self, asked: Amounts, sign: int) -> None:
        used = self.used
        used["pods"] = used.get("pods", 0) + sign * NANO
        for name, nanos in asked.items():
            used[name] = used.get(name, 0) + sign * nanos
