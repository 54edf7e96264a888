#!/usr/bin/env bash
# The wheel with the oldest, or the newest, versions that pyproject.toml allows:
#   bounds.sh lowest WHEEL    all extras in one environment, each direct requirement at its bound
#   bounds.sh newest WHEEL    each extra alone in an empty environment
#   bounds.sh solvable        whether each extra has versions at all for each Python, and `dev` with
#                             tests/constraints.txt; nothing is installed
# Says which versions these are, checks that they fit together, and uses them (.ci/smoke.py).
# Extras with torch are left to the stage sb3_check, which pins its build for CPUs; `dev` is this checkout.
set -euo pipefail
which=$1 wheel=$(realpath "${2:-.}")
cd "$(dirname "$0")/.."
root=$PWD
work=$root/build/ci/bounds-$which
export UV_NO_PROGRESS=1 UV_LINK_MODE=hardlink MPLBACKEND=Agg
uv=$root/.venv/bin/uv
rm -rf "$work"
mkdir -p "$work"
mapfile -t extras < <("$root/.venv/bin/python" - <<'PY'
try:
    import tomllib
except ImportError:
    import tomli as tomllib
table = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
print(*(name for name in table if name not in ("dev", "rl", "gp")), sep="\n")
PY
)

used() { # name, extras...: the environment of this name, checked and used
  local name=$1
  shift
  "$uv" pip check -q --python "$work/$name"
  mkdir -p "$work/$name-use"
  (cd "$work/$name-use" && "$work/$name/bin/python" "$root/.ci/smoke.py" "$@") \
    >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; echo "FAILED: $which, $name"; return 1; }
  grep '^###' "$work/$name.log" || true
}

case $which in
  lowest)
    "$uv" venv -q --python "$root/.venv/bin/python" "$work/all"
    "$uv" pip install -q --python "$work/all" --resolution lowest-direct -r pyproject.toml \
      $(printf -- '--extra %s ' "${extras[@]}")
    "$uv" pip install -q --python "$work/all" --no-deps "$wheel"
    "$uv" pip list -q --format freeze --python "$work/all"
    used all core "${extras[@]}"
    ;;
  newest)
    for extra in core "${extras[@]}"; do
      "$uv" venv -q --python "$root/.venv/bin/python" "$work/$extra"
      "$uv" pip install -q --python "$work/$extra" "$wheel${extra:+[${extra#core}]}"
      "$uv" pip list -q --format freeze --python "$work/$extra" >>"$work/versions"
      used "$extra" "$extra"
    done
    sort -u "$work/versions"
    ;;
  solvable)
    # of all Pythons at once, middle releases too: markers of packages tell 3.11.2, which Debian has,
    # from 3.11.5. What `dev` includes has versions where `dev` has
    running=()
    for extra in dev tensorboard mlflow wandb rl gp; do
      constraints=()
      [ "$extra" != dev ] || constraints=(-c tests/constraints.txt)
      "$uv" pip compile -q --universal --python-version 3.10 --extra "$extra" "${constraints[@]}" \
        pyproject.toml -o "$work/$extra.txt" >"$work/$extra.log" 2>&1 &
      running+=("$extra:$!")
    done
    for one in "${running[@]}"; do
      extra=${one%%:*}
      wait "${one##*:}" ||
        { cat "$work/$extra.log"; echo "FAILED: nothing fits every Python with the extra $extra"; exit 1; }
      echo "### $extra has versions for every Python from 3.10 on"
    done
    ;;
esac
