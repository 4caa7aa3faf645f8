"""A node as its kubelet accounts for it: readiness, allocatable and used resources."""

from __future__ import annotations

from enbloc.api.meta import Obj, condition_of
from enbloc.api.pod_amounts import Amounts
from enbloc.units import NANO, format_quantity, parse_quantity


class KubeletNode:
    """One node. `used` is what admitted pods that have not finished request."""

    __slots__ = ("address", "allocatable", "ready", "used")

    def __init__(self, node: Obj, number: int) -> None:
        self.address = f"192.168.{number >> 8 & 255}.{number & 255}"
        self.used: Amounts = {}
        self.update(node)

    def update(self, node: Obj) -> None:
        ready = condition_of(node, "Ready")
        self.ready = ready is None or ready.get("status") == "True"
        status = node.get("status") or {}
        capacity = status.get("allocatable") or status.get("capacity") or {}
        self.allocatable: Amounts = {name: parse_quantity(value).nanos for name, value in capacity.items()}

    def rejection(self, requests: Amounts) -> tuple[str, str] | None:
        """The reason and message with which a kubelet rejects a pod that does not fit; a node whose status has no
        `pods` takes any number."""
        for name, nanos in {"pods": NANO, **requests}.items():
            used = self.used.get(name, 0)
            capacity = self.allocatable.get(name, used + nanos if name == "pods" else 0)
            if nanos and used + nanos > capacity:
                amounts = [format_quantity(amount) for amount in (nanos, used, capacity)]
                return f"OutOf{name}", (
                    f"Pod was rejected: Node didn't have enough resource: {name}, "
                    f"requested: {amounts[0]}, used: {amounts[1]}, capacity: {amounts[2]}"
                )
        return None

    def allocate(self, requests: Amounts) -> None:
        self._change(requests, 1)

    def release(self, requests: Amounts) -> None:
        self._change(requests, -1)

    def _change(self, requests: Amounts, sign: int) -> None:
        used = self.used
        used["pods"] = used.get("pods", 0) + sign * NANO
        for name, nanos in requests.items():
            used[name] = used.get(name, 0) + sign * nanos
