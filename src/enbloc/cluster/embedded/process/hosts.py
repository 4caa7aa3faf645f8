"""Addresses and host names of pods that all run on one machine, which has no DNS and no pod network.

On Linux all of 127.0.0.0/8 is the machine itself, so each pod gets an address of its own there: two pods may listen on
the same port if each listens on its own address. Elsewhere every pod has 127.0.0.1. A host name that a Service would
give (`job-worker-0.job`) gets its address when it is first mentioned, whether or not the pod exists yet.

Host names are replaced by addresses in every text that a container gets from its pod: see `AddressBook.resolved`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container
from typing import Final

from enbloc.api.meta import Obj, labels_of, name_of, namespace_of
from enbloc.api.volcano import JOB_NAME

SHARED: Final = "127.0.0.1"
_FIRST: Final = 127 << 24 | 64 << 16  # 127.64.0.0/10, apart from addresses in common use
_ADDRESSES: Final = 1 << 22
_BOUND: Final = 1 << 17
_HOST: Final = re.compile(r"(?<![\w.-])[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)+(?![\w-])")


class AddressBook:
    """Gives every host name of a namespace an address, which never changes."""

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
        """The text with host names replaced by addresses: those in `names` (pods of the same namespace) and those of
        the pods, present or future, of the pod's own job. Other text stays as it is."""
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
    """The name under which other pods of the namespace reach this pod; its own name if it has no subdomain."""
    subdomain = pod["spec"].get("subdomain")
    return f"{hostname_of(pod)}.{subdomain}" if subdomain else name_of(pod)


def hostname_of(pod: Obj) -> str:
    """The pod's own host name."""
    return pod["spec"].get("hostname") or name_of(pod)
