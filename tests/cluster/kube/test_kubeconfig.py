"""What is read of kubeconfigs: merged files, every key, and files as the tools of clouds and clusters write them."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc.cluster.kube.kubeconfig import Access, NoCredentials, of_pod, read

SECRETS = ("s3cr3t", base64.b64encode(b"s3cr3t").decode())
"""What the tests write where a secret belongs; no message has it."""


def written(path: Path, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any) -> str:
    config = {
        "current-context": "here",
        "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1", **(cluster or {})}}],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
        **more,
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return str(path)


def why_not(files: str, context: str | None = None) -> str:
    with pytest.raises(NoCredentials) as caught:
        read(files, context)
    said = str(caught.value)
    assert "\n" not in said
    assert not any(secret in said for secret in SECRETS)
    return said


def texts(access: Access) -> tuple[bytes | None, ...]:
    parts = (access.server.authority, access.certificate, access.key, access.token)
    return tuple(None if one is None else one.read() for one in parts)


# -- several files


def test_of_entries_with_one_name_that_of_the_first_file_is_taken_whole(tmp_path: Path) -> None:
    first = written(tmp_path / "a" / "config", {"token": "first"}, **{"current-context": ""})
    second = written(
        tmp_path / "b" / "config",
        {"username": "of-second", "password": "s3cr3t"},
        {"server": "https://second:1", "insecure-skip-tls-verify": True},
        **{
            "current-context": "there",
            "contexts": [{"name": "there", "context": {"cluster": "one", "user": "me"}}],
        },
    )
    third = written(tmp_path / "c" / "config", **{"current-context": "nowhere"})
    files = os.pathsep.join([str(tmp_path / "missing"), first, "", second, third])
    found = read(files, None)
    assert found.context == "there"  # of the first file that sets one
    assert (found.server.address, found.server.verifies) == ("https://127.0.0.1:1", True)
    assert texts(found)[-1] == b"first"
    assert found.basic == ""
    assert read(files, "here").context == "here"


def test_an_entry_of_one_file_names_those_of_another_and_paths_are_of_their_own_file(tmp_path: Path) -> None:
    contexts = written(tmp_path / "a" / "config", clusters=None, users=None)
    clusters = written(tmp_path / "b" / "config", cluster={"certificate-authority": "ca.crt"}, users=[], contexts=[])
    users = written(tmp_path / "c" / "config", {"tokenFile": "sub/token"}, clusters=[], contexts=[])
    (tmp_path / "b" / "ca.crt").write_text("of b")
    (tmp_path / "c" / "sub").mkdir()
    (tmp_path / "c" / "sub" / "token").write_text("of c")
    found = read(os.pathsep.join([contexts, clusters, users]), None)
    assert texts(found) == (b"of b", None, None, b"of c")


def test_an_empty_file_says_nothing_and_a_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    config = written(tmp_path / "config", {"token": "t"})
    assert read(f"{tmp_path}/empty{os.pathsep}{config}", None).context == "here"
    assert "current-context is not set" in why_not(f"{tmp_path}/empty")
    assert "cannot be read: Is a directory" in why_not(f"{config}{os.pathsep}{tmp_path}")
    assert why_not(f"{tmp_path}/x{os.pathsep}{tmp_path}/y").endswith("there is no such kubeconfig")


# -- what is wrong with it


@pytest.mark.parametrize(
    "user, cluster, message",
    [
        ({"auth-provider": {"name": "oidc"}}, {}, "users.me.auth-provider: is not supported; an exec plug-in"),
        ({"tokne": "s3cr3t"}, {}, "users.me: Object contains unknown field `tokne`"),
        ({"token": 7}, {}, "users.me: Expected `str | null`, got `int` - at `$.token`"),
        ({"password": 7}, {}, "at `$.password`"),
        ({"token": "s3cr3t", "username": "a", "password": "s3cr3t"}, {}, "users.me: token and username exclude"),
        ({"client-certificate": "a", "client-certificate-data": "s3cr3t"}, {}, "client-certificate-data exclude"),
        ({"client-certificate": "a"}, {}, "client-certificate and client-key need each other"),
        ({"client-key-data": SECRETS[1]}, {}, "client-certificate and client-key need each other"),
        ({"client-certificate-data": "%s3cr3t", "client-key": "a"}, {}, "client-certificate-data: not base64"),
        ({"client-certificate": "a", "client-key-data": "ü"}, {}, "client-key-data: not base64"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, {}, "missing required field `command`"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": ""}}, {}, "exec.command: is not set"),
        ({"exec": {"command": "x"}}, {}, "missing required field `apiVersion` - at `$.exec`"),
        ({"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, {}, "$.exec.apiVersion"),
        ({"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1", "x": 1}}, {}, "unknown field `x`"),
        ({"as-groups": ["g"]}, {}, "users.me: as-uid, as-groups and as-user-extra need `as`"),
        ({"as": "a", "as-groups": "g"}, {}, "at `$.as-groups`"),
        ({"as": "a\r\nb"}, {}, "control characters in what is impersonated"),
        ([], {}, "users.me: Expected `object`, got `array`"),
        ({}, {"server": "ftp://x"}, "clusters.one.server: the cluster's server is not an http(s) address: 'ftp://x'"),
        ({}, {"server": None}, "clusters.one.server: the cluster's server is not an http(s) address: ''"),
        ({}, {"server": "https://"}, "clusters.one.server: not the address of a server"),
        ({}, {"server": "https://a:b"}, "clusters.one.server: not the address of a server"),
        ({}, {"server": "https://a b"}, "clusters.one.server: not the address of a server"),
        ({}, {"server": "https://a\nb"}, "clusters.one.server: not the address of a server"),
        ({}, {"api-version": "v1"}, "clusters.one: Object contains unknown field `api-version`"),
        ({}, {"insecure-skip-tls-verify": "false"}, "at `$.insecure-skip-tls-verify`"),
        (
            {},
            {"insecure-skip-tls-verify": True, "certificate-authority": "a"},
            "certificate-authority and insecure-skip-tls-verify exclude each other",
        ),
        ({}, {"certificate-authority": "a", "certificate-authority-data": "YQ=="}, "exclude each other"),
        ({}, {"proxy-url": "socks5://me:s3cr3t@proxy:1"}, "clusters.one.proxy-url: not an http(s) proxy"),
        ({}, {"proxy-url": "http://me:s3cr3t@:x"}, "clusters.one.proxy-url: not an http(s) proxy"),
    ],
)
def test_what_is_not_known_or_wrong_is_named_with_its_file_and_key(
    tmp_path: Path, user: Any, cluster: dict[str, Any], message: str
) -> None:
    file = written(tmp_path / "config", cluster=cluster, users=[{"name": "me", "user": user}])
    said = why_not(file)
    assert said.startswith(f"{file}: ")
    assert message in said


@pytest.mark.parametrize(
    "more, message",
    [
        ({"current-context": None}, "current-context is not set"),
        ({"current-context": "x"}, "contexts: there is no 'x' (there are: here)"),
        ({"current-context": ["x"]}, "at `$.current-context`"),
        ({"contexts": 7}, "at `$.contexts`"),
        ({"contexts": [{"context": {}}]}, "missing required field `name`"),
        ({"contexts": [{"name": "here", "context": {}}]}, "contexts.here.cluster: is not set"),
        ({"contexts": [{"name": "here", "context": {"cluster": "x"}}]}, "contexts.here.cluster: there is no cluster"),
        (
            {"contexts": [{"name": "here", "context": {"cluster": "one", "user": "x"}}]},
            "contexts.here.user: there is no user 'x'",
        ),
        ({"contexts": [{"name": "here", "context": {"cluster": "one", "usr": "x"}}]}, "contexts.here: Object contains"),
        ({"users": [{"name": "me"}, {"name": "me"}]}, "users.me: there are two of this name"),
        ({"clusters": [{"name": 1}]}, "at `$.clusters[0].name`"),
    ],
)
def test_what_leads_nowhere_is_named_too(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    file = written(tmp_path / "config", **more)
    said = why_not(file)
    assert said.startswith(f"{file}: ")
    assert message in said


@pytest.mark.parametrize(
    "text, message",
    [
        ("[]", "Expected `object`, got `array`"),
        ("token: s3cr3t\nb: [", "not YAML: did not find expected node content in line 3"),
        ("a: !!python/object:s3cr3t {}", "not YAML: could not determine a constructor"),
        ("\0", "not YAML"),
        (b"\xff\xfe\xff", "not YAML"),
        ("a: &x [" + "[" * 5000, "nested too deep"),
    ],
)
def test_a_file_that_is_none_is_one_line_without_its_text(tmp_path: Path, text: str | bytes, message: str) -> None:
    (tmp_path / "config").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(NoCredentials) as caught:
        read(str(tmp_path / "config"), None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named_with_the_key_that_names_it(tmp_path: Path) -> None:
    file = written(tmp_path / "config", {"tokenFile": "token"}, {"certificate-authority": "ca.crt"})
    found = read(file, None)
    for one, key, name in (
        (found.token, "users.me.tokenFile", "token"),
        (found.server.authority, "clusters.", "ca.crt"),
    ):
        assert one is not None
        with pytest.raises(NoCredentials, match=f"{key}.*{tmp_path}/{name}: No such file or directory"):
            one.read()


# -- keys


def test_who_is_impersonated_becomes_headers_as_kubectl_writes_them(tmp_path: Path) -> None:
    user = {
        "token": "t",
        "as": "jane",
        "as-uid": "u-1",
        "as-groups": ["ops", "dev"],
        "as-user-extra": {"scopes": ["view", "edit"], "acme.com/team%": ["a b"]},
    }
    assert read(written(tmp_path / "config", user), None).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Uid", "u-1"),
        ("Impersonate-Extra-acme.com%2Fteam%25", "a b"),
        ("Impersonate-Extra-scopes", "view"),
        ("Impersonate-Extra-scopes", "edit"),
    )


def test_user_and_password_and_the_other_keys(tmp_path: Path) -> None:
    cluster = {"proxy-url": "http://proxy:1", "tls-server-name": "api.example", "disable-compression": True}
    found = read(written(tmp_path / "config", {"username": "me", "password": "a:b"}, cluster), None)
    assert found.basic == "me:a:b"
    assert found.server[1:] == (None, True, "api.example", "http://proxy:1", True, None)
    both = {"token": "t", "tokenFile": "token"}
    token = read(written(tmp_path / "config", both), None).token
    assert token is not None
    assert token.file == tmp_path / "token"


def test_a_command_with_a_slash_is_relative_to_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command, path in (("./bin/x", f"{tmp_path}/sub/bin/x"), ("/opt/x", "/opt/x"), ("x", "x")):
        user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command}}
        written(tmp_path / "sub" / "config", user)
        plugin = read("sub/config", None).plugin
        assert plugin is not None
        assert plugin.command == path


def test_a_pods_own_account(tmp_path: Path) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(NoCredentials, match=r"^in this pod: .*token: No such file"):
        of_pod(environ, str(token), str(ca))
    token.write_text("t\n")
    ca.write_text(" ")
    with pytest.raises(NoCredentials, match=r"^in this pod: .*ca\.crt is empty"):
        of_pod(environ, str(token), str(ca))
    ca.write_text("some")
    found = of_pod(environ, str(token), str(ca))
    assert found.server.address == "https://[fd00::1]:443"
    assert texts(found) == (b"some", None, None, b"t\n")
    with pytest.raises(NoCredentials, match=r"^in this pod: KUBERNETES_SERVICE_HOST"):
        of_pod({"KUBERNETES_SERVICE_HOST": "a"}, str(token), str(ca))


# -- as clouds and clusters write them; names and secrets are made up

EKS = """
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Y2E=
    server: https://0A1B2C3D4E5F.gr7.eu-central-1.eks.amazonaws.com
  name: arn:aws:eks:eu-central-1:111122223333:cluster/demo
contexts:
- context:
    cluster: arn:aws:eks:eu-central-1:111122223333:cluster/demo
    user: arn:aws:eks:eu-central-1:111122223333:cluster/demo
  name: arn:aws:eks:eu-central-1:111122223333:cluster/demo
current-context: arn:aws:eks:eu-central-1:111122223333:cluster/demo
kind: Config
preferences: {}
users:
- name: arn:aws:eks:eu-central-1:111122223333:cluster/demo
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args: [--region, eu-central-1, eks, get-token, --cluster-name, demo, --output, json]
      command: aws
      env:
      - name: AWS_PROFILE
        value: work
"""
GKE = """
apiVersion: v1
kind: Config
clusters:
- name: gke_project_europe-west1_demo
  cluster:
    certificate-authority-data: Y2E=
    server: https://203.0.113.7
contexts:
- name: gke_project_europe-west1_demo
  context:
    cluster: gke_project_europe-west1_demo
    user: gke_project_europe-west1_demo
current-context: gke_project_europe-west1_demo
preferences: {}
users:
- name: gke_project_europe-west1_demo
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: gke-gcloud-auth-plugin
      env: null
      args: null
      installHint: Install gke-gcloud-auth-plugin for use with kubectl by following
        https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl#install_plugin
      interactiveMode: IfAvailable
      provideClusterInfo: true
"""
AKS = """
apiVersion: v1
clusters:
- cluster: {certificate-authority-data: Y2E=, server: "https://demo-dns-1a2b3c4d.hcp.westeurope.azmk8s.io:443"}
  name: demo
contexts:
- context: {cluster: demo, user: clusterUser_group_demo}
  name: demo
current-context: demo
kind: Config
preferences: {}
users:
- name: clusterUser_group_demo
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args: [get-token, --environment, AzurePublicCloud, --server-id, 6dae42f8-0000, --login, devicecode]
      command: kubelogin
      env: null
      installHint: |2

        kubelogin is not installed which is required to connect to AAD enabled cluster.

        To learn more, please go to https://aka.ms/aks/kubelogin
      provideClusterInfo: false
"""
AKS_ADMIN = """
apiVersion: v1
kind: Config
current-context: demo-admin
clusters:
- cluster: {certificate-authority-data: Y2E=, server: "https://demo-dns-1a2b3c4d.hcp.westeurope.azmk8s.io:443"}
  name: demo
contexts:
- context: {cluster: demo, user: clusterAdmin_group_demo}
  name: demo-admin
users:
- name: clusterAdmin_group_demo
  user: {client-certificate-data: Y3J0, client-key-data: a2V5, token: 0a1b2c}
"""
OPENSHIFT = """
apiVersion: v1
clusters:
- cluster:
    insecure-skip-tls-verify: true
    server: https://api.demo.example.com:6443
  name: api-demo-example-com:6443
contexts:
- context:
    cluster: api-demo-example-com:6443
    namespace: default
    user: kube:admin/api-demo-example-com:6443
  name: default/api-demo-example-com:6443/kube:admin
current-context: default/api-demo-example-com:6443/kube:admin
kind: Config
preferences: {}
users:
- name: kube:admin/api-demo-example-com:6443
  user:
    token: sha256~abc
"""
K3S = """
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Y2E=
    server: https://127.0.0.1:6443
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
kind: Config
preferences: {}
users:
- name: default
  user:
    client-certificate-data: Y3J0
    client-key-data: a2V5
"""
MINIKUBE = """
apiVersion: v1
clusters:
- cluster:
    certificate-authority: CA_FILE
    extensions:
    - extension:
        last-update: Tue, 17 Nov 2026 10:00:00 UTC
        provider: minikube.sigs.k8s.io
        version: v1.38.0
      name: cluster_info
    server: https://192.168.49.2:8443
  name: minikube
contexts:
- context:
    cluster: minikube
    extensions:
    - extension: {provider: minikube.sigs.k8s.io}
      name: context_info
    namespace: default
    user: minikube
  name: minikube
current-context: minikube
kind: Config
users:
- name: minikube
  user:
    client-certificate: profiles/minikube/client.crt
    client-key: profiles/minikube/client.key
"""
RANCHER = r"""
apiVersion: v1
kind: Config
clusters:
- name: "demo"
  cluster:
    server: "https://rancher.example.com/k8s/clusters/c-m-abcd1234"
    certificate-authority-data: "Y\
      2E\
      ="
- name: "demo-control-1"
  cluster:
    server: "https://203.0.113.9:6443"
    certificate-authority-data: |
      Y2
      E=

users:
- name: "demo"
  user:
    token: "kubeconfig-user-abcde:t0k3n"


contexts:
- name: "demo"
  context:
    user: "demo"
    cluster: "demo"
- name: "demo-control-1"
  context:
    user: "demo"
    cluster: "demo-control-1"

current-context: "demo"
"""


@pytest.mark.parametrize(
    "text, server, known, command",
    [
        (EKS, "https://0A1B2C3D4E5F.gr7.eu-central-1.eks.amazonaws.com", (b"ca", None, None, None), "aws"),
        (GKE, "https://203.0.113.7", (b"ca", None, None, None), "gke-gcloud-auth-plugin"),
        (AKS, "https://demo-dns-1a2b3c4d.hcp.westeurope.azmk8s.io:443", (b"ca", None, None, None), "kubelogin"),
        (AKS_ADMIN, "https://demo-dns-1a2b3c4d.hcp.westeurope.azmk8s.io:443", (b"ca", b"crt", b"key", b"0a1b2c"), ""),
        (OPENSHIFT, "https://api.demo.example.com:6443", (None, None, None, b"sha256~abc"), ""),
        (K3S, "https://127.0.0.1:6443", (b"ca", b"crt", b"key", None), ""),
        (MINIKUBE, "https://192.168.49.2:8443", (b"of a file",) * 3 + (None,), ""),
        (
            RANCHER,
            "https://rancher.example.com/k8s/clusters/c-m-abcd1234",
            (b"ca", None, None, b"kubeconfig-user-abcde:t0k3n"),
            "",
        ),
    ],
    ids=["eks", "gke", "aks", "aks-admin", "openshift", "k3s-kind", "minikube", "rancher"],
)
def test_kubeconfigs_as_clouds_and_clusters_write_them(
    tmp_path: Path, text: str, server: str, known: tuple[bytes | None, ...], command: str
) -> None:
    (tmp_path / "profiles" / "minikube").mkdir(parents=True)
    for name in ("ca.crt", "profiles/minikube/client.crt", "profiles/minikube/client.key"):
        (tmp_path / name).write_text("of a file")
    (tmp_path / "config").write_text(text.replace("CA_FILE", str(tmp_path / "ca.crt")))
    found = read(str(tmp_path / "config"), None)
    assert (found.server.address, texts(found)) == (server, known)
    assert found.server.verifies == (text is not OPENSHIFT)
    assert (found.plugin.command if found.plugin else "") == command


def test_ranchers_other_context_goes_to_the_cluster_itself(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(RANCHER)
    found = read(str(tmp_path / "config"), "demo-control-1")
    assert (found.server.address, texts(found)[0]) == ("https://203.0.113.9:6443", b"ca")
