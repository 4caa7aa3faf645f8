"""Volumes as directories, mount paths as links below a container's root."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from cluster.embedded.process.running import World, pod_of, shell, state_of


def mounts(**paths: str) -> list[dict[str, Any]]:
    return [{"name": name, "mountPath": path} for name, path in paths.items()]


def test_volumes_of_every_kind_are_where_they_are_mounted(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "file").write_text("host\n")
    volumes = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "config", "configMap": {"name": "cm", "items": [{"key": "a", "path": "deep/er"}]}},
        {"name": "hidden", "secret": {"secretName": "s"}},
        {"name": "self", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "cm"}}, {"secret": {"name": "s"}}]}},
        {"name": "host-dir", "hostPath": {"path": str(tmp_path / "host")}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "none", "configMap": {"name": "missing", "optional": True}},
    ]
    paths = {"scratch": "/tmp/s", "config": "/etc/config", "hidden": "/etc/hidden", "self": "/etc/self", "all": "/all"}
    code = (
        "cat etc/config/deep/er etc/hidden/k etc/self/l all/a all/k host-dir/file; touch tmp/s/x claim/kept;"
        'test -e "$ENBLOC_MOUNT_SCRATCH/x" && test -d "$ENBLOC_MOUNT_HOST_DIR" && echo same'
    )
    every = mounts(**paths) + [{"name": name, "mountPath": f"/{name}"} for name in ("host-dir", "claim", "none")]
    with World(tmp_path / "state") as world:
        world.store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"a": "A\n"}})
        data = {"k": base64.b64encode(b"K\n").decode()}
        world.store.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data})
        made = pod_of(shell(code, volumeMounts=every), volumes=volumes)
        made["metadata"]["labels"] = {"a": 'b"c'}
        world.run(made)
        assert state_of(world.ended())["state"]["terminated"]["exitCode"] == 0, world.log()
        assert world.log() == 'A\nK\na="b\\"c"A\nK\nhost\nsame\n'
        world.delete()
        world.until(lambda: not list((tmp_path / "state" / "pods").iterdir()))
    assert (tmp_path / "host" / "file").exists()  # what is linked is not what is removed
    assert (tmp_path / "state" / "claims" / "default" / "c" / "kept").exists()


def test_containers_share_volumes_but_not_roots() -> None:
    volumes = [{"name": "v", "emptyDir": {}}]
    wait = "touch mine; while ! test -e v/{other}; do sleep 0.01; done; ls"
    first = shell("touch v/a; " + wait.format(other="b"), "a", volumeMounts=mounts(v="/v"))
    second = shell("touch v/b; touch other; " + wait.format(other="a"), "b", volumeMounts=mounts(v="/v"))
    with World() as world:
        world.run(pod_of(first, second, volumes=volumes))
        world.ended()
        assert "other" not in world.log(container="a")
        assert "mine" in world.log(container="b")


def test_sub_paths_and_nested_mounts() -> None:
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]
    every = [
        {"name": "v", "mountPath": "/data"},
        {"name": "w", "mountPath": "/data/inner"},
        {"name": "v", "mountPath": "/part", "subPath": "a/b"},
    ]
    code = "touch part/x; touch data/inner/y; ls data/a/b data/inner"
    with World() as world:
        world.run(pod_of(shell(code, volumeMounts=every), volumes=volumes))
        world.ended()
        assert world.log().split() == ["data/a/b:", "x", "data/inner:", "y"]


@pytest.mark.parametrize(
    "volume, mount, why",
    [
        ({"nfs": {"server": "x"}}, {}, "has a type (nfs) that is not supported here"),
        ({"emptyDir": {}}, {"mountPath": "/../../up"}, "leads out"),
        ({"emptyDir": {}}, {"subPath": "../up"}, "leads out"),
        ({"emptyDir": {}}, {"name": "other"}, "there is no volume 'other'"),
        ({"configMap": {"name": "none"}}, {}, 'configmap "none" not found'),
        ({"hostPath": {"path": "/no/such/path"}}, {}, "does not exist"),
        ({"persistentVolumeClaim": {"claimName": "../x"}}, {}, "is not a valid name of a claim"),
        ({"downwardAPI": {"items": [{"path": "../x", "fieldRef": {"fieldPath": "metadata.name"}}]}}, {}, "leads out"),
    ],
)
def test_what_cannot_be_mounted_is_reported(volume: dict[str, Any], mount: dict[str, Any], why: str) -> None:
    container = shell("true", volumeMounts=[{"name": "v", "mountPath": "/v", **mount}])
    with World() as world:
        world.run(pod_of(container, volumes=[{"name": "v", **volume}]))
        world.until(lambda: "containerStatuses" in world.get()["status"])
        waiting = state_of(world.get())["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert why in waiting["message"]
