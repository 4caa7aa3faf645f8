"""What kubelets and Prometheus ask."""

from __future__ import annotations

import asyncio

import aiohttp

from enbloc.runtime.endpoints import Endpoints
from enbloc.runtime.metrics import Metrics


def test_health_readiness_and_metrics() -> None:
    async def main() -> None:
        metrics, ready = Metrics(), [False]
        endpoints = Endpoints(metrics, lambda: ready[0], lambda: metrics.leader.set(1))
        await endpoints.start("127.0.0.1", 0)
        metrics.binding(True, 0.01)
        metrics.refused(409)
        url = f"http://127.0.0.1:{endpoints.port}"
        async with aiohttp.ClientSession() as session:

            async def get(path: str) -> tuple[int, str]:
                async with session.get(url + path) as answer:
                    return answer.status, await answer.text()

            assert (await get("/healthz"))[0] == 200
            assert (await get("/readyz"))[0] == 503
            ready[0] = True
            assert (await get("/readyz"))[0] == 200
            status, text = await get("/metrics")
        await endpoints.close()
        assert status == 200
        assert 'enbloc_binds_total{result="taken"} 1.0' in text
        assert 'enbloc_refused_writes_total{code="409"} 1.0' in text
        assert "enbloc_leader 1.0" in text

    asyncio.run(main())
