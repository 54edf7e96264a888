#!/usr/bin/env bash
# The same bytes under every Python >= 3.10 that is installed (python3.x on the PATH, pyenv's):
# installs the project into a fresh environment of each, compares the playthroughs of tests/golden
# and the digests of whole runs. Fails if one differs, or if fewer than two versions are found.
# The engine does not know Python, so it is compiled once (the build that .ci/compare_builds.sh has
# left will do); its bindings, with little optimisation, are built one version after the other, as uv
# locks what it builds, while the versions before are checked. .venv stands for its own version; the
# others are made anew each time, in build/ci/pythons.
#   .ci/other_pythons.sh              every version found
#   .ci/other_pythons.sh 3.10 3.13    these alone
set -euo pipefail
cd "$(dirname "$0")/.."

ROOT=$PWD
WORK=$ROOT/build/ci/pythons
export UV_NO_PROGRESS=1 UV_LINK_MODE=hardlink
uv=$ROOT/.venv/bin/uv

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

# one build for all, with the flags of a Release build of the package
build_engine() {
  local dir=$ROOT/build/ci/engine-O3
  PATH=$ROOT/.venv/bin:$PATH
  cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDCQCN_GYM_PYTHON=OFF \
    -DDCQCN_GYM_TESTS=ON "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG" >/dev/null
  cmake --build "$dir" --target dcqcn_engine -j "${JOBS:-2}" >/dev/null
  export CMAKE_ARGS="-DDCQCN_GYM_ENGINE=$dir/libdcqcn_engine.a -DCMAKE_CXX_FLAGS_RELEASE=-O1"
}

is_venv() { # version
  "$ROOT/.venv/bin/python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" \
    2>/dev/null
}

check() { # version, interpreter
  set -e
  local bin=$WORK/$1/bin results=$WORK/$1/results
  rm -rf "${WORK:?}/$1"
  if is_venv "$1"; then
    bin=$ROOT/.venv/bin
  else
    "$uv" venv -q --python "$2" "$WORK/$1"
    # a folder of its own: from 3.12 on all have the same wheel tag, by which folders are called
    "$uv" pip install -q --refresh-package dcqcn-gym --python "$WORK/$1" -c tests/constraints.txt \
      -C "build-dir=$WORK/$1/build" "$ROOT"
  fi
  printf 'installed after %d s\n' "$SECONDS"
  mkdir -p "$results"
  (cd "$results" && "$bin/python" "$ROOT/tools/golden_runs.py" golden)
  diff -r "$ROOT/tests/golden" "$results/golden"
  (cd "$results" && "$bin/python" "$ROOT/tools/run_digests.py" --quick \
    --file "$ROOT/tests/digests/runs.txt" 2>"$results/digests.log") ||
    { tail -n 20 "$results/digests.log"; exit 1; }
  printf 'checked after %d s\n' "$SECONDS"
}

minors=() pythons=()
while read -r minor python; do
  if [ "$#" -gt 0 ] && [[ " $* " != *" $minor "* ]]; then continue; fi
  minors+=("$minor") pythons+=("$python")
done < <(found)
if [ "${#minors[@]}" -lt 2 ]; then
  echo "only ${#minors[@]} version(s) of Python >= 3.10 found; the comparison needs two" >&2
  exit 1
fi

mkdir -p "$WORK"
build_engine
running=()
for k in "${!minors[@]}"; do
  (check "${minors[k]}" "${pythons[k]}") >"$WORK/${minors[k]}.log" 2>&1 &
  running+=("$!")
done
for k in "${!minors[@]}"; do
  status=0
  wait "${running[k]}" || status=$?
  printf '\n### Python %s (%s)\n' "${minors[k]}" "${pythons[k]}"
  cat "$WORK/${minors[k]}.log"
  if [ "$status" -ne 0 ]; then exit "$status"; fi
done
printf '\n### the same bytes under %d versions of Python\n' "${#minors[@]}"
