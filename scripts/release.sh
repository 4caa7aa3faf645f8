#!/usr/bin/env bash
# Builds all that a version consists of into dist/: wheel, archive of the sources, chart and image, with checksums.
#
# The same commit gives the same bytes: files carry the time of that commit and are sorted. The image needs root and, from
# Debian, buildah and mmdebstrap; `IMAGE=no` leaves it out (`make release RELEASE_IMAGE=no`).
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
python=.venv/bin/python
version=$($python -c 'from enbloc.version import __version__; print(__version__)')
if [ -n "$(git status --porcelain)" ]; then
  echo "release: there are uncommitted changes; a release is built from a commit" >&2
  exit 1
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf dist
mkdir dist
$python -m hatchling build -d dist > /dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/enbloc install --no-merge --image "localhost/enbloc:$version" --chart "$work/enbloc" > /dev/null
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work" -cf - enbloc |
  gzip -n > "dist/enbloc-chart-$version.tgz"

if [ "${IMAGE:-yes}" != no ]; then
  scripts/image.sh "localhost/enbloc:$version" "dist/enbloc-image-$version.tar" > /dev/null
fi
(cd dist && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
