"""A disk that is full: nothing that was not kept is visible, and `/readyz` says so (F4)."""

from __future__ import annotations

from pathlib import Path

from cluster.embedded.http.serving import MAPS, Api, config_map, serve
from enbloc import config
from enbloc.cluster.embedded.api.datadir import DataDir
from enbloc.cluster.embedded.api.journal import Journal
from enbloc.cluster.embedded.cluster import make_store


def test_f4_what_was_not_kept_is_not_visible(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    journal = Journal(data)
    store = make_store(lambda: 10**18, config.parse(None), journal.restore)

    async def test(api: Api) -> None:
        await api.post(MAPS, config_map("kept"))
        assert (await api("GET", "/readyz"))[0] == 200
        async with api.watch(MAPS) as following:
            assert (await following())["object"]["metadata"]["name"] == "kept"
            pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
            journal._db.execute(f"PRAGMA max_page_count = {pages}")
            code, answer = await api("POST", MAPS, config_map("lost", a="x" * 100_000))
            assert (code, answer["reason"]) == (503, "ServiceUnavailable")
            assert "state.db cannot be written: database or disk is full" in answer["message"]
            assert await following() is None, "the watch ends without the object"
        for path in (MAPS, f"{MAPS}/lost", f"{MAPS}?watch=true", "/readyz", "/healthz"):
            code, answer = await api("GET", path)
            assert code == 503, path
            assert "full" in answer["message"]
        assert (await api("GET", "/livez"))[0] == 200

    serve(test, store, committed=journal.durable, failure=lambda: journal.failure)
    journal.close()
    data.close()
    again = Journal(DataDir(tmp_path))
    assert "lost" not in {obj["metadata"]["name"] for obj in again._objects}
    assert "kept" in {obj["metadata"]["name"] for obj in again._objects}
    again.close()
