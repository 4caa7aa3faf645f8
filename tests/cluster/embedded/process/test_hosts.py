"""Names and addresses of pods on one machine."""

from __future__ import annotations

import pytest

from cluster.embedded.process.running import World, pod_of, python
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.process.hosts import AddressBook, host_of


def job_pod(name: str = "train-worker-0", job: str = "train") -> Obj:
    made = pod_of({"name": "main"}, name=name, hostname=name, subdomain=job)
    made["metadata"].update(namespace="default", labels={"volcano.sh/job-name": job})
    return made


def test_every_host_has_an_address_of_its_own_and_keeps_it() -> None:
    book = AddressBook(own_addresses=True)
    found = [book.address("default", f"h{number}") for number in range(300)]
    assert len(set(found)) == 300
    assert all(address.startswith("127.64.") for address in found)
    assert book.address("default", "h7") == found[7]
    assert book.address("other", "h7") != found[7]


def test_elsewhere_all_are_one() -> None:
    book = AddressBook(own_addresses=False)
    assert {book.address("default", host) for host in "abc"} == {"127.0.0.1"}


@pytest.mark.parametrize(
    "text, result",
    [
        ("train-worker-1.train", "W1"),
        ("tcp://train-worker-1.train:2222/x", "tcp://W1:2222/x"),
        ("train-worker-1.train,train-worker-2.train", "W1,W2"),
        ('{"worker": ["train-worker-1.train:1"]}', '{"worker": ["W1:1"]}'),
        ("train-worker-1.train.default", "W1"),
        ("train-worker-1.train.default.svc", "W1"),
        ("train-worker-1.train.default.svc.cluster.local:80", "W1:80"),
        ("in train-worker-1.train.", "in W1."),
        ("other-0.other", "O"),
        ("train-worker-1.train.example.com", None),
        ("x.train-worker-1.train", None),
        ("xtrain-worker-1.train2", None),
        ("model.train(); train.worker", None),
        ("train-worker.train", None),
        ("unknown-0.unknown", None),
        ("1.5 a.b.c /usr/lib/x.so", None),
    ],
)
def test_names_become_addresses_where_they_are_names(text: str, result: str | None) -> None:
    book = AddressBook(own_addresses=True)
    addresses = {
        "W1": book.address("default", "train-worker-1.train"),
        "W2": book.address("default", "train-worker-2.train"),
        "O": book.address("default", "other-0.other"),
    }
    wanted = text if result is None else result
    if result is not None:
        for short, address in addresses.items():
            wanted = wanted.replace(short, address)
    assert book.resolved(text, job_pod(), {"other-0.other"}) == wanted


def test_a_host_is_the_name_within_its_subdomain() -> None:
    assert host_of(job_pod()) == "train-worker-0.train"
    assert host_of(pod_of({"name": "main"})) == "p"


def test_pods_listen_on_the_same_port_and_reach_each_other_by_name() -> None:
    serve = (
        "import os, socket; s = socket.create_server((os.environ['ME'], 28123)); print('up', flush=True)\n"
        "c, _ = s.accept(); c.sendall(os.environ['NAME'].encode()); c.close()"
    )
    ask = (
        "import os, socket\nfor host in os.environ['HOSTS'].split(','):\n"
        "    c = socket.create_connection((host, 28123), 5); print(c.recv(99).decode()); c.close()"
    )
    me = {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    with World() as world:
        for name in ("a", "b"):
            env = [me, {"name": "NAME", "value": name}]
            world.run(pod_of(python(serve, env=env), name=name, hostname=name, subdomain="svc"))
        for name in ("a", "b"):
            world.said("up", name)
        world.run(pod_of(python(ask, env=[{"name": "HOSTS", "value": "a.svc,b.svc.default.svc"}]), name="client"))
        assert world.ended("client")["status"]["phase"] == "Succeeded", world.log("client")
        assert world.log("client") == "a\nb\n"
