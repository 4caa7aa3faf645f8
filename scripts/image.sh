#!/usr/bin/env bash
# Builds the image that `enbloc install` runs, without a Docker engine: scripts/image.sh IMAGE [ARCHIVE]
#
# The base is made of Debian's packages (mmdebstrap), the Python packages are pinned and checked by hash. Everything that
# would differ from one build to the next is fixed: times, their order, compiled files. So the same sources and the same
# packages give the same digest, which is printed. Needs root, and: apt-get install buildah mmdebstrap
set -euo pipefail
image=${1:?usage: scripts/image.sh IMAGE [ARCHIVE]}
archive=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
  bookworm "$work/base.tar" /etc/apt/sources.list.d/debian.sources

# The packages, for the Python of that base (3.11); no compiled files, which carry times.
python=$root/.venv/bin/python
"$python" -c 'import sys; assert sys.version_info[:2] == (3, 11), "the image has Python 3.11: make PYTHON=python3.11"'
mkdir -p "$work/tree/opt/enbloc/lib" "$work/tree/opt/enbloc/bin"
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps \
  --target "$work/tree/opt/enbloc/lib" -r <(awk '/^(hatchling|editables|packaging|pathspec|pluggy|trove-classifiers)==/ {skip=1} /^[^ ]/ && !/^(hatchling|editables|packaging|pathspec|pluggy|trove-classifiers)==/ {skip=0} !skip' "$root/requirements/image.txt")
cp -r "$root/src/enbloc" "$work/tree/opt/enbloc/lib/enbloc"
find "$work/tree" -name __pycache__ -type d -prune -exec rm -rf {} +
rm -rf "$work/tree/opt/enbloc/lib/bin"
find "$work/tree" -name 'direct_url.json' -delete
printf '#!/usr/bin/python3 -I\nimport sys\nsys.path.insert(0, "/opt/enbloc/lib")\nfrom enbloc.cli.main import main\nmain()\n' \
  > "$work/tree/opt/enbloc/bin/enbloc"
chmod 755 "$work/tree/opt/enbloc/bin/enbloc"
find "$work/tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

container=$(buildah "${storage[@]}" from scratch)
buildah "${storage[@]}" add --quiet "$container" "$work/base.tar" / > /dev/null
buildah "${storage[@]}" copy --quiet "$container" "$work/tree" / > /dev/null
buildah "${storage[@]}" config --user "$user:$user" --entrypoint '["/opt/enbloc/bin/enbloc"]' --cmd '["--help"]' \
  --env PYTHONUNBUFFERED=1 --env PYTHONDONTWRITEBYTECODE=1 --workingdir / "$container"
buildah "${storage[@]}" commit --quiet --timestamp "$SOURCE_DATE_EPOCH" "$container" "$image" > /dev/null
if [ -n "$archive" ]; then
  buildah "${storage[@]}" push --quiet "$image" "oci-archive:$archive:$image"
fi
buildah "${storage[@]}" inspect --type image --format '{{.FromImageDigest}}' "$image"
