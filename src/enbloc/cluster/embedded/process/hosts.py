"""The addresses of pods that all run on one machine, and the names by which they know each other.

There is no DNS here, and no network of pods. On Linux all of 127.0.0.0/8 is the machine itself, so each pod has an
address of its own there: two pods may listen on the same port, as long as each listens on its own address. Elsewhere
every pod is 127.0.0.1. A host name that a Service would give (`job-worker-0.job`) has its pod's address from the moment
that anybody mentions it, whether or not the pod is there yet.

Addresses are put in the place of names wherever a container gets text from its pod: see `AddressBook.resolved`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container
from typing import Final

from enbloc.api.meta import Obj, labels_of, name_of, namespace_of
from enbloc.api.volcano import JOB_NAME

SHARED: Final = "127.0.0.1"
_FIRST: Final = 127 << 24 | 64 << 16  # 127.64.0.0/10, away from what people give to services of their own
_ADDRESSES: Final = 1 << 22
_BOUND: Final = 1 << 17
_HOST: Final = re.compile(r"(?<![\w.-])[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)+(?![\w-])")


class AddressBook:
    """Gives every host name of a namespace an address, and keeps to it."""

    def __init__(self, *, own_addresses: bool = sys.platform == "linux") -> None:
        self._own = own_addresses
        self._known: dict[tuple[str, str], str] = {}
        self._count = 0

    def address(self, namespace: str, host: str) -> str:
        if not self._own:
            return SHARED
        known = self._known.get((namespace, host))
        if known is None:
            if len(self._known) >= _BOUND:
                del self._known[next(iter(self._known))]
            self._count += 1
            number = _FIRST + self._count % _ADDRESSES
            known = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
            self._known[namespace, host] = known
        return known

    def resolved(self, text: str, pod: Obj, names: Container[str]) -> str:
        """The text with addresses in the place of host names: of `names`, pods of the same namespace, and of those that
        the pod's own job has or will have. What only looks like a host name is left alone."""
        if "." not in text:
            return text
        namespace = namespace_of(pod)
        domains = ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.cluster.local")
        job = labels_of(pod).get(JOB_NAME) or ""

        def address(found: re.Match[str]) -> str:
            for domain in domains:
                host = found[0].removesuffix(domain)
                if host in names or (job and _is_of_job(host, job)):
                    return self.address(namespace, host)
            return found[0]

        return _HOST.sub(address, text)


def _is_of_job(host: str, job: str) -> bool:
    """Whether it is `JOB-ROLE-INDEX.JOB`."""
    name, _, subdomain = host.partition(".")
    role, _, index = name.removeprefix(f"{job}-").rpartition("-")
    return subdomain == job and name.startswith(f"{job}-") and bool(role) and index.isdecimal()


def host_of(pod: Obj) -> str:
    """The name under which other pods of the namespace reach it; its own, which no DNS knows, if it has none."""
    subdomain = pod["spec"].get("subdomain")
    return f"{hostname_of(pod)}.{subdomain}" if subdomain else name_of(pod)


def hostname_of(pod: Obj) -> str:
    """What the pod itself takes as its name."""
    return pod["spec"].get("hostname") or name_of(pod)
