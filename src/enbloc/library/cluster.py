"""`enbloc.Cluster`: what `enbloc up` serves, in a thread of this process, for scripts and tests.

The API listens on loopback, on a free port. Any client of Kubernetes works with `kubeconfig`.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, Ref, name_of, namespace_of
from enbloc.api.writes import Refused
from enbloc.config import Config, where_alone
from enbloc.library.inputs import ConfigLike, Manifests, amounts_of, config_of, scenario_of
from enbloc.up.cluster import LocalCluster
from enbloc.up.options import Options
from enbloc.up.session import pages_of

_T = TypeVar("_T")
_START_S: Final = 30.0


class Cluster:
    """A context manager: the cluster runs inside the `with` block.

    `manifests` are created at the start. `nodes` and `node_resources`: as for `enbloc up` (two nodes of 8 CPUs unless
    the manifests have nodes); `speed` is how fast the `sim.enbloc.dev/` annotations are played. What the API refuses of
    `manifests` is in `refused`.
    """

    def __init__(
        self,
        manifests: Manifests = (),
        *,
        nodes: int | None = None,
        node_resources: Mapping[str, str | int] | None = None,
        config: ConfigLike = None,
        speed: float = 1.0,
    ) -> None:
        self._scenario = scenario_of(manifests)
        self.config: Config = where_alone(config_of(config))
        """The scheduler's."""
        self._directory = tempfile.TemporaryDirectory(prefix="enbloc-")
        self.kubeconfig: Path = Path(self._directory.name) / "kubeconfig"
        """Readable by its owner only; gone when the cluster stops."""
        resources = amounts_of(node_resources)
        self._options = Options(nodes=nodes, resources=resources, speed=speed, port=0, kubeconfig=self.kubeconfig)
        self.address: str = ""
        """Where the dashboard and `/metrics` are."""
        self.refused: list[tuple[str, str]] = []
        """Name and message of each manifest that the API refused."""
        self._loop = asyncio.new_event_loop()
        self._cluster: LocalCluster | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="enbloc-cluster", daemon=True)

    def __enter__(self) -> Cluster:
        self._thread.start()
        try:
            self._in_loop(self._start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def objects(self, kind: str, api_version: str = "v1", namespace: str | None = None) -> list[Obj]:
        """The objects of a kind as the API returns them now."""
        found = self._call(lambda cluster: cluster.store.list(kind_id({"apiVersion": api_version, "kind": kind}))[0])
        return [obj for obj in found if namespace is None or namespace_of(obj) == namespace]

    def situation(self, kinds: Sequence[str]) -> tuple[list[Obj], int]:
        """All objects of these kinds (ids, such as `Job.batch`), and the cluster's time."""

        def read(cluster: LocalCluster) -> tuple[list[Obj], int]:
            store = cluster.store
            return [obj for kind in kinds for obj in store.list(kind)[0]], store.now()

        return self._call(read)

    def create(self, obj: Mapping[str, Any]) -> Obj:
        """Creates one object, in the namespace `default` unless it names one. Raises `Refused`."""
        (arrival,) = scenario_of(obj).arrivals
        return self._call(lambda cluster: cluster.store.create(arrival.obj))

    def delete(self, kind: str, name: str, *, api_version: str = "v1", namespace: str = "") -> None:
        """Deletes one object. Raises `Refused`."""
        ref = Ref(kind_id({"apiVersion": api_version, "kind": kind}), namespace, name)
        self._call(lambda cluster: cluster.store.delete(ref))

    async def _start(self) -> None:
        self._cluster = LocalCluster(self._options, self.config, self._scenario, self._refuse, lambda obj, text: None)
        self.address, _ = await self._cluster.start(pages_of(self._cluster, self.config).handlers())

    def _refuse(self, obj: Obj, why: Refused) -> None:
        self.refused.append((f"{namespace_of(obj)}/{name_of(obj)}".lstrip("/"), str(why)))

    def _in_loop(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_START_S)

    def _call(self, function: Callable[[LocalCluster], _T]) -> _T:
        """Calls a function in the cluster's thread."""

        async def call() -> _T:
            if self._cluster is None:
                raise RuntimeError("the cluster has not been started: use it in a `with` block")
            return function(self._cluster)

        found: _T = self._in_loop(call())
        return found

    def _end(self) -> None:
        if self._cluster is not None:
            self._in_loop(self._cluster.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S)
        self._loop.close()
        self._directory.cleanup()
