#!/usr/bin/env bash
# release_notes.sh TAG: print the section of CHANGELOG.md that is of this release; fails without one
set -euo pipefail
release=${1#v}
notes=$(awk -v release="$release" '/^## /{on = $2 == release} on' "$(dirname "$0")/../CHANGELOG.md")
case $notes in
  "") echo "CHANGELOG.md has no section \"## $release\"" >&2; exit 1 ;;
  "## $release (not yet released)"*)
    echo "CHANGELOG.md says that $release is not yet released: write the day there, commit, tag" >&2
    exit 1 ;;
esac
printf '%s\n' "$notes"
