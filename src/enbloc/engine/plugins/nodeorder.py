"""Scores nodes by how full they would be: least-allocated spreads, most-allocated packs, balanced evens out.

All in integers from the node's own row, so that placing a class in bulk gives the very same nodes as placing its pods
one by one. A tie between equally full nodes goes to the one with fewer (or, packing, more) pods: tasks
that ask for nothing would otherwise all land on one node.
"""

from __future__ import annotations

from enbloc.engine.resources import CPU, MEMORY, PODS, Ints
from enbloc.engine.room import Room

TIE = 128
"""One point of a score, in the finer units in which ties are told apart."""


class NodeOrder:
    def __init__(self, least: int, most: int, balanced: int) -> None:
        self._least = least
        self._most = most
        self._balanced = balanced

    def score(self, room: Room) -> Ints:
        cpu, memory = room.free_percent(CPU), room.free_percent(MEMORY)
        free = (cpu + memory) // 2
        total = free * (self._least - self._most)
        if self._balanced:
            total -= abs(room.free_parts(CPU) - room.free_parts(MEMORY)) * 100 // 256 * self._balanced
        total += 100 * (self._most + self._balanced)
        pods = room.free_percent(PODS)
        total *= TIE
        total += pods if self._least >= self._most else 100 - pods
        return total
