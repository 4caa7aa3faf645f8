"""`enbloc install`: everything a cluster needs, as YAML."""

from __future__ import annotations

import sys

import click

from enbloc.cli.errors import Refusal, read_config
from enbloc.config import Config, render, scheduler_names
from enbloc.units import is_dns_label

_MOST_REPLICAS = 100


@click.command("install")
@click.option("--namespace", default="enbloc-system", show_default=True, metavar="NAME", help="Where it runs.")
@click.option("--image", metavar="IMAGE", help="The image to run.  [default: enbloc:VERSION]")
@click.option("--replicas", type=int, default=2, show_default=True, help="Pods of each component; one of them leads.")
@click.option("--config", "config_file", metavar="FILE", help="The config file to install; without it, the defaults.")
def command(namespace: str, image: str | None, replicas: int, config_file: str | None) -> None:
    """Print everything that a cluster needs to run enbloc, for kubectl to apply.

    Definitions of our kinds, roles that allow what each component does and nothing else, deployments, services,
    webhooks. The webhook makes its own certificates and renews them. The same arguments print the same text, and
    applying it a second time changes nothing.

    \b
    Example:
      enbloc install --image registry.example/enbloc:1 | kubectl apply -f -
      enbloc install | kubectl delete -f -          # and everything is gone, jobs and queues too
    """
    problems = []
    if not is_dns_label(namespace):
        problems.append(f"--namespace: {namespace!r} is no name of a namespace (a-z, 0-9 and '-')")
    if not 1 <= replicas <= _MOST_REPLICAS:
        problems.append(f"--replicas: {replicas} is not between 1 and {_MOST_REPLICAS}")
    if image is not None and (not image or image.split() != [image]):
        problems.append(f"--image: {image!r} is no name of an image")
    if problems:
        raise Refusal(problems)
    _print(namespace, image, replicas, read_config(config_file))


def _print(namespace: str, image: str | None, replicas: int, config: Config) -> None:
    import yaml

    from enbloc import __version__
    from enbloc.install import Settings, manifests

    class Dumper(yaml.CSafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
        """A text of several lines is written as such."""
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    names = tuple(sorted(scheduler_names(config, alone=False)))
    settings = Settings(render(config), namespace, image or f"enbloc:{__version__}", replicas, names)
    sys.stdout.write(f"# Made by `enbloc install` {__version__}. Apply it with: kubectl apply -f -\n")
    yaml.dump_all(
        manifests(settings),
        sys.stdout,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        explicit_start=True,
        width=120,
    )
