#!/usr/bin/env bash
# Upgrades an older version to the present one on a real node: scripts/upgrade_from.sh COMMIT
#
# Takes COMMIT out of the history, builds its image, and runs tests/node/test_upgraded.py: the older version is installed
# by its own `enbloc install`, runs gangs and reserves a node, then the present image takes over. Needs what
# `make e2e-node` needs. The older sources run with the packages of .venv; their image has those that they pinned.
set -euo pipefail
commit=${1:?usage: scripts/upgrade_from.sh COMMIT}
root=$(cd "$(dirname "$0")/.." && pwd)
commit=$(git -C "$root" rev-parse --short=12 "$commit^{commit}")
older=$root/build/older-$commit
if [ ! -f "$older/image.tar" ]; then
  rm -rf "$older"
  mkdir -p "$older"
  git -C "$root" archive "$commit" src requirements | tar -x -C "$older"
  SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit") ENBLOC_SOURCES=$older \
    "$root/scripts/image.sh" localhost/enbloc:older "$older/image.tar"
fi
ENBLOC_OLDER=$older make -C "$root" e2e-node ARGS="-k test_upgraded -s"
