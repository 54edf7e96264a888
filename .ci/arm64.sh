#!/usr/bin/env bash
# The engine for ARM, by a cross compiler, and its tests run under qemu: arm64.sh FOLDER
# Debian: apt install g++-aarch64-linux-gnu qemu-user-static. Emulated, so with fewer random jobs.
set -euo pipefail
cd "$(dirname "$0")/.."
root=/usr/aarch64-linux-gnu
cmake -S . -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDCQCN_GYM_PYTHON=OFF -DDCQCN_GYM_TESTS=ON \
  -DDCQCN_GYM_FUZZ=50 -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64-static;-L;$root" >/dev/null
cmake --build "$1" -j "${JOBS:-2}"
ctest --test-dir "$1" --output-on-failure --no-tests=error -j "${JOBS:-2}" "${@:2}"
