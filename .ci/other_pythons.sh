#!/usr/bin/env bash
# The same bytes under every Python >= 3.10 that is installed (python3.x on the PATH, pyenv's):
# installs the project into a fresh environment of each, compares the playthroughs of tests/golden
# and the digests of whole runs. Fails if one differs, or if fewer than two versions are found.
#   .ci/other_pythons.sh              every version found
#   .ci/other_pythons.sh 3.10 3.13    these alone
set -euo pipefail
cd "$(dirname "$0")/.."

ROOT=$PWD
WORK=$ROOT/build/ci/pythons
export PIP_DISABLE_PIP_VERSION_CHECK=1 CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2}

# one interpreter per minor version, the first that runs
found() {
  local candidate minor
  declare -A seen=()
  for candidate in "$(command -v "${PYTHON:-python3}" || true)" \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python $(compgen -c 'python3.' | sort -u); do
    minor=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    [[ $minor =~ ^3\.[1-9][0-9]$ && -z ${seen[$minor]:-} ]] || continue
    seen[$minor]=1
    echo "$minor $candidate"
  done
}

check() { # version, interpreter
  local bin=$WORK/$1/bin results=$WORK/$1/results
  printf '\n### Python %s (%s)\n' "$1" "$2"
  rm -rf "${WORK:?}/$1"
  "$2" -m venv "$WORK/$1"
  "$bin/python" -m pip install -qq -c tests/constraints.txt "$ROOT"
  mkdir -p "$results"
  (cd "$results" && "$bin/python" -m dcqcn_gym.testing.golden golden)
  diff -r "$ROOT/tests/golden" "$results/golden"
  (cd "$results" && "$bin/python" -m dcqcn_gym.testing.digests --quick \
    --file "$ROOT/tests/digests/runs.txt" 2>"$results/digests.log") ||
    { tail -n 20 "$results/digests.log"; exit 1; }
}

passed=0
while read -r minor python; do
  if [ "$#" -gt 0 ] && [[ " $* " != *" $minor "* ]]; then continue; fi
  check "$minor" "$python"
  passed=$((passed + 1))
done < <(found)
if [ "$passed" -lt 2 ]; then
  echo "only $passed version(s) of Python >= 3.10 found; the comparison needs two" >&2
  exit 1
fi
printf '\n### the same bytes under %d versions of Python\n' "$passed"
