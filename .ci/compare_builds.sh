#!/usr/bin/env bash
# One digest of the window engine from every build: compare_builds.sh FOLDER [JOBS] [PROGRAM..]
# Builds the engine with -O2, as one source, and with -O3 in FOLDER, runs the same random
# jobs on both and on every PROGRAM (an engine_fuzz that exists already, such as one with
# sanitizers), and compares.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
jobs=${2:-300}
shift $(($# < 2 ? $# : 2))

programs=("$@")
for level in -O2 -O3; do
  dir=$folder/engine$level unity=OFF
  [ "$level" != -O2 ] || unity=ON
  cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDCQCN_GYM_PYTHON=OFF \
    -DCMAKE_UNITY_BUILD=$unity -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 -DDCQCN_GYM_TESTS=ON \
    "-DCMAKE_CXX_FLAGS_RELEASE=$level -DNDEBUG" >/dev/null
  cmake --build "$dir" --target engine_fuzz
  programs+=("$dir/engine_fuzz")
done

first=""
for program in "${programs[@]}"; do
  found=$("$program" --digest "$jobs" 1)
  echo "$program: $found"
  [ "$found" = "${first:=$found}" ] || { echo "the builds differ" >&2; exit 1; }
done
