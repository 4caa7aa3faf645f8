"""How kwok plays nodes and pods, so that they behave as in a simulation: the same annotations, the same ends.

kwok plans a stage anew whenever its object changes. Every delay is therefore counted from an instant that the object
itself tells (bound, started, ended, deleted), not from the change. Those instants are whole seconds, so a pod that is
changed while it runs may run up to a second longer than it was told to, and never shorter.

What differs from a simulation: attempts (for a list of exit codes) are counted per pod and not per name, and nobody
checks room on the node. A node is made Ready if it says nothing about that itself; one that was made NotReady stays so.
`fail-pod` is a patch of the annotations: `run-time: 0s` and an `exit-code`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from enbloc.cluster.embedded.nodes.pod_script import EXIT_CODE, RUN_TIME, START_DELAY, STOP_DELAY

HEARTBEAT_S = 10

# jq. Seconds of a duration such as 1h30m or 250ms; nothing for what cannot be read.
_SECONDS = (
    'def seconds: [scan("([0-9]*[.]?[0-9]+)(ns|us|µs|ms|s|m|h)") | (.[0] | tonumber) * '
    '{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[.[1]]] | add;'
)
# jq. What is left of `length` that began within the second `since`, as a duration.
_LEFT = (
    "def left(length; since): length as $length | (since | fromdateiso8601) as $since |"
    ' [$length, $since + 1 + $length - now] | min | [., 0] | max | . * 1000 | floor | tostring | . + "ms";'
)
_RUNS = ".status.containerStatuses[0].state.running.startedAt"
_BOUND = '(.status.conditions[] | select(.type == "PodScheduled") | .lastTransitionTime)'
_ENDED = ".status.containerStatuses[0].lastState.terminated.finishedAt"
_DELETED = (
    "(.metadata.deletionTimestamp | fromdateiso8601 - ($pod.metadata.deletionGracePeriodSeconds // 0) | todateiso8601)"
)
_RESTARTS = ".status.containerStatuses[0].restartCount"
# jq. The exit code of this attempt: the list has one an attempt, and the last one repeats.
_CODE = (
    f'((.metadata.annotations["{EXIT_CODE}"] // "0") | split(",") | map(tonumber)) as $codes |'
    f" $codes[[{_RESTARTS} // 0, ($codes | length) - 1] | min]"
)


def _annotation(name: str, default: str) -> str:
    return f'(.metadata.annotations["{name}"] // "{default}" | seconds // 0)'


def _delay(length: str, since: str) -> dict[str, Any]:
    return {"durationFrom": {"jq": {"expression": f"{_SECONDS} {_LEFT} . as $pod | left({length}; {since})"}}}


def _is(key: str, *values: str) -> dict[str, Any]:
    return {"jq": {"key": key, "operator": "In", "values": list(values)}}


def _is_not(key: str, *values: str) -> dict[str, Any]:
    return {"jq": {"key": key, "operator": "NotIn", "values": list(values)}}


def _has(key: str) -> dict[str, Any]:
    return {"jq": {"key": key, "operator": "Exists"}}


def _has_no(key: str) -> dict[str, Any]:
    return {"jq": {"key": key, "operator": "DoesNotExist"}}


def _stage(kind: str, name: str, when: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": {"matchExpressions": when}, **rest},
    }


def _status(template: str) -> dict[str, Any]:
    return {"steps": [{"patch": {"subresource": "status", "root": "status", "template": template}}]}


# The words of a status, as Go templates. All containers of a pod are played as one.
def _containers(state: str, *, ready: bool, restarts: str, before: str = "") -> str:
    return f"""
containerStatuses:
{{{{ range .spec.containers }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  imageID: ""
  ready: {str(ready).lower()}
  started: {str(ready).lower()}
  restartCount: {restarts}
  state: {state}
  {before}
{{{{ end }}}}
"""


def _conditions(ready: bool, reason: str = "") -> str:
    word = '"True"' if ready else '"False"'
    why = f", reason: {reason}" if reason else ""
    types = [("Initialized", '"True"', ""), ("Ready", word, why), ("ContainersReady", word, why)]
    lines = [
        f"- {{type: {type_}, status: {value}, lastTransitionTime: {{{{ Now | Quote }}}}{because}}}"
        for type_, value, because in types
    ]
    return "\n".join(["conditions:", *lines])


_COUNT = (
    """
{{ $restarts := 0 }}{{ $since := Now }}
{{ range .status.containerStatuses }}
  {{ $restarts = or .restartCount 0 }}
  {{ if .state.running }}{{ $since = .state.running.startedAt }}{{ end }}
{{ end }}
"""
    + f'{{{{ $codes := splitList "," (or (index (or .metadata.annotations dict) "{EXIT_CODE}") "0") }}}}\n'
    + "{{ $code := index $codes (int (min $restarts (sub (len $codes) 1))) | trim }}\n"
)
_NOW_RUNS = "{running: {startedAt: {{ Now | Quote }}}}"
_TERMINATED = (
    '{terminated: {exitCode: {{ $code }}, reason: {{ if eq $code "0" }}Completed{{ else }}Error{{ end }},'
    " startedAt: {{ $since | Quote }}, finishedAt: {{ Now | Quote }}}}"
)
_KILLED = "{terminated: {exitCode: 137, reason: Error, startedAt: {{ $since | Quote }}, finishedAt: {{ Now | Quote }}}}"
_ADDRESS = """
startTime: {{ or .status.startTime Now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
"""


def _pod_stages() -> list[dict[str, Any]]:
    lives = _has_no(".metadata.deletionTimestamp")
    runs, rests = _has(_RUNS), _is(".status.containerStatuses[0].state.waiting.reason", "CrashLoopBackOff")
    ends = _has(f'.metadata.annotations["{RUN_TIME}"]')
    run_out = _delay(_annotation(RUN_TIME, "0s"), _RUNS)
    # Whether the restart policy lets it rest in peace, in one word.
    fate = (
        f'{_CODE} as $code | if .spec.restartPolicy == "Never" or (.spec.restartPolicy == "OnFailure" and $code == 0)'
        f' then "over" elif ({_RESTARTS} // 0) == 0 then "at once" else "later" end'
    )
    started = _conditions(True) + _containers(_NOW_RUNS, ready=True, restarts="0") + _ADDRESS + "phase: Running\n"
    return [
        _stage(
            "Pod",
            "pod-start",
            [lives, _is(".status.phase", "Pending"), _has(".spec.nodeName"), _has_no(_RUNS)],
            delay=_delay(_annotation(START_DELAY, "0s"), _BOUND),
            **_status(started),
        ),
        _stage(
            "Pod",
            "pod-end",
            [lives, runs, ends, _is(fate, "over")],
            delay=run_out,
            **_status(
                _COUNT
                + _conditions(False, '{{ if eq $code "0" }}PodCompleted{{ else }}PodFailed{{ end }}')
                + _containers(_TERMINATED, ready=False, restarts="{{ $restarts }}")
                + '\nphase: {{ if eq $code "0" }}Succeeded{{ else }}Failed{{ end }}\n'
            ),
        ),
        _stage(
            "Pod",
            "pod-restart",
            [lives, runs, ends, _is(fate, "at once")],
            delay=run_out,
            **_status(
                _COUNT
                + _conditions(True)
                + _containers(_NOW_RUNS, ready=True, restarts="1", before=f"lastState: {_TERMINATED}")
            ),
        ),
        _stage(
            "Pod",
            "pod-rest",
            [lives, runs, ends, _is(fate, "later")],
            delay=run_out,
            **_status(
                _COUNT
                + _conditions(False, "ContainersNotReady")
                + _containers(
                    "{waiting: {reason: CrashLoopBackOff}}",
                    ready=False,
                    restarts="{{ add $restarts 1 }}",
                    before=f"lastState: {_TERMINATED}",
                )
            ),
        ),
        _stage(
            "Pod",
            "pod-again",
            [lives, rests],
            delay=_delay(f"([10 * pow(2; ({_RESTARTS} // 2) - 2), 300] | min)", _ENDED),
            **_status(_COUNT + _conditions(True) + _containers(_NOW_RUNS, ready=True, restarts="{{ $restarts }}")),
        ),
        _stage(
            "Pod",
            "pod-gone",
            [_has(".metadata.deletionTimestamp"), _has_no(".metadata.finalizers[0]")],
            delay=_delay(_annotation(STOP_DELAY, "0s"), _DELETED),
            steps=[{"delete": True}],
        ),
        _stage(
            "Pod",
            "pod-stopped",
            [
                _has(".metadata.deletionTimestamp"),
                _has(".metadata.finalizers[0]"),
                _is_not(".status.phase", "Succeeded", "Failed"),
            ],
            delay=_delay(_annotation(STOP_DELAY, "0s"), _DELETED),
            **_status(
                _COUNT
                + _conditions(False, "PodFailed")
                + _containers(_KILLED, ready=False, restarts="{{ $restarts }}")
                + "\nphase: Failed\n"
            ),
        ),
    ]


def _node_stages() -> list[dict[str, Any]]:
    ready = '.status.conditions[] | select(.type == "Ready") | .status'
    beat = (
        'conditions:\n- {type: Ready, status: "True", reason: KubeletReady, message: kwok plays it,'
        " lastHeartbeatTime: {{ Now | Quote }}%s}\n"
    )
    first = (
        "{{ $address := or .status.addresses (list) }}"
        + beat % ", lastTransitionTime: {{ Now | Quote }}"
        + "{{ if not $address }}addresses:\n- {type: InternalIP, address: {{ NodeIP | Quote }}}\n"
        + "- {type: Hostname, address: {{ .metadata.name | Quote }}}\n{{ end }}"
    )
    return [
        _stage("Node", "node-ready", [_has_no(ready)], **_status(first)),
        _stage(
            "Node",
            "node-heartbeat",
            [_is(ready, "True")],
            delay={"durationMilliseconds": HEARTBEAT_S * 1000},
            immediateNextStage=True,
            **_status(beat % ""),
        ),
    ]


def write(path: Path) -> None:
    """The file for `kwok --config`."""
    path.write_text(yaml.safe_dump_all([*_node_stages(), *_pod_stages()], sort_keys=False))
