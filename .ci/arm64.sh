#!/usr/bin/env bash
# The engine for ARM by a cross compiler, run under qemu: its tests, and the same bytes as here from
# the same random jobs: arm64.sh FOLDER [JOBS]
# Debian: apt install g++-aarch64-linux-gnu qemu-user-static
set -euo pipefail
cd "$(dirname "$0")/.."
arm=$1/arm64 here=$1/here
run=(qemu-aarch64-static -L /usr/aarch64-linux-gnu)
build() { # FOLDER OPTION..
  cmake -S . -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDCQCN_GYM_PYTHON=OFF -DDCQCN_GYM_TESTS=ON \
    -DDCQCN_GYM_FUZZ=50 "${@:2}" >/dev/null
}
build "$here"
cmake --build "$here" --target engine_fuzz engine_bench
build "$arm" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ "-DCMAKE_CROSSCOMPILING_EMULATOR=${run[0]};${run[1]};${run[2]}"
cmake --build "$arm"
cmake --build "$arm" --target engine_bench
# engine_digests draws its jobs itself, and a compiler is free in the order in which it draws
ctest --test-dir "$arm" --output-on-failure --no-tests=error -E engine_digests

for ((i = 0; i < ${2:-100}; i++)); do
  "$here/engine_fuzz" --show "$i" 1 >"$1/job"
  ours=$("$here/engine_bench" "$1/job" 1 3000) theirs=$("${run[@]}" "$arm/engine_bench" "$1/job" 1 3000)
  [ "${ours##*digest}" = "${theirs##*digest}" ] || { echo "job $i differs: $ours $theirs" >&2; exit 1; }
done
echo "${2:-100} jobs: the same bytes on ARM"
