#!/usr/bin/env bash
# Builds the image that `enbloc install` runs, without a Docker engine: scripts/image.sh IMAGE [ARCHIVE]
#
# The base is made of Debian's packages (mmdebstrap), the Python packages are pinned and checked by hash. Everything that
# would differ from one build to the next is fixed: times, their order, compiled files. So the same sources and the same
# packages give the same digest: that of the archive, which is printed. Needs root, and: apt-get install buildah mmdebstrap
#
# ENBLOC_APT_SOURCES  the apt sources that the base is made from; they name bookworm
#                     (/etc/apt/sources.list.d/debian.sources)
# ENBLOC_IMAGE_STORE  a directory in which the image is kept for buildah; without it only ARCHIVE is left
# ENBLOC_SOURCES      a folder with the src and requirements to build (this checkout)
# SOURCE_DATE_EPOCH   the time of all files, in seconds (that of the last commit)
set -euo pipefail
umask 022 # modes are part of the digest
image=${1:?usage: scripts/image.sh IMAGE [ARCHIVE]}
archive=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
from=${ENBLOC_SOURCES:-$root}
sources=${ENBLOC_APT_SOURCES:-/etc/apt/sources.list.d/debian.sources}
if ! grep -qw bookworm "$sources" 2> /dev/null; then
  echo "$sources does not name bookworm, of which the base is made: set ENBLOC_APT_SOURCES to apt sources that do" >&2
  exit 1
fi
work=$(mktemp -d)
container=
cleanup() {
  if [ -n "$container" ]; then buildah "${storage[@]}" rm "$container" > /dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
user=65532
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
storage=(--storage-driver vfs --root "${ENBLOC_IMAGE_STORE:-$work/store}" --runroot "$work/run")

# Debian's own Python; what only people read, and what only a package manager needs, is left out or removed.
excluded=(man doc locale info lintian bug)
options=()
for name in "${excluded[@]}"; do options+=(--dpkgopt="path-exclude=/usr/share/$name/*"); done
mmdebstrap --quiet --mode=root --variant=custom "${options[@]}" \
  --include=python3,ca-certificates,media-types,tzdata,netbase,base-files,base-passwd,dash,coreutils,libc-bin \
  --include=debianutils,sed,grep,diffutils,dpkg,perl-base,tar,libstdc++6 \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists "$1"/var/cache/* "$1"/var/log/* "$1"/etc/machine-id "$1"/etc/hostname "$1"/etc/resolv.conf' \
  --customize-hook='find "$1"/usr -xdev -name __pycache__ -type d -prune -exec rm -rf {} +' \
  bookworm "$work/base.tar" "$sources"

# The packages, for the Python of that base (3.11).
python=$root/.venv/bin/python
"$python" -c 'import sys; assert sys.version_info[:2] == (3, 11), "the image has Python 3.11: make PYTHON=python3.11"'
mkdir -p "$work/tree/opt/enbloc/lib" "$work/tree/opt/enbloc/bin"
# What only building needs is in the same list of pinned packages; tests/install/test_image.py compares.
building='^(hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)=='
awk -v building="$building" '/^[^ ]/ {skip = $0 ~ building} !skip' "$from/requirements/image.txt" > "$work/packages.txt"
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps \
  --target "$work/tree/opt/enbloc/lib" -r "$work/packages.txt"
cp -r "$from/src/enbloc" "$work/tree/opt/enbloc/lib/enbloc"
find "$work/tree" -name __pycache__ -type d -prune -exec rm -rf {} +
# Scripts begin with the path of the Python that installed them, which is this checkout's: they go, and their digests.
rm -rf "$work/tree/opt/enbloc/lib/bin"
find "$work/tree" -path '*.dist-info/RECORD' -exec sed -i '/^\.\.\/.*bin\//d' {} +
find "$work/tree" -name 'direct_url.json' -delete
printf '#!/usr/bin/python3 -I\nimport sys\nsys.path.insert(0, "/opt/enbloc/lib")\nfrom enbloc.cli.main import main\nmain()\n' \
  > "$work/tree/opt/enbloc/bin/enbloc"
chmod 755 "$work/tree/opt/enbloc/bin/enbloc"
# Compiled files, so that no start has to compile a thousand modules; by hash, since those by time would carry times.
PYTHONHASHSEED=0 "$python" -m compileall -q --invalidation-mode unchecked-hash -s "$work/tree" -p / \
  "$work/tree/opt/enbloc/lib"
chmod -R u=rwX,go=rX "$work/tree" # those of a checkout depend on the umask that it was made with
find "$work/tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

container=$(buildah "${storage[@]}" from scratch)
buildah "${storage[@]}" add --quiet "$container" "$work/base.tar" / > /dev/null
buildah "${storage[@]}" copy --quiet "$container" "$work/tree" / > /dev/null
buildah "${storage[@]}" config --user "$user:$user" --entrypoint '["/opt/enbloc/bin/enbloc"]' --cmd '["--help"]' \
  --env PYTHONUNBUFFERED=1 --env PYTHONDONTWRITEBYTECODE=1 --workingdir / "$container"
buildah "${storage[@]}" commit --quiet --timestamp "$SOURCE_DATE_EPOCH" "$container" "$image" > /dev/null
buildah "${storage[@]}" rm "$container" > /dev/null
container=
# In a store layers are not compressed, so that its digest is another one: the archive's is what a registry shows.
buildah "${storage[@]}" push --quiet --digestfile "$work/digest" "$image" "oci-archive:${archive:-$work/image.tar}:$image"
echo "$(< "$work/digest")"
