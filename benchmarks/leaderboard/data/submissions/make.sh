#!/usr/bin/env bash
# Makes the committed submission anew and verifies it, after every change of dynamics, of the log's
# header or of the version. Half a minute.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
BIN=${BIN:-.venv/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
entry=benchmarks/leaderboard/data/submissions/hill-climber

"$BIN/dcqcn-gym" bench run smoke --tuners examples/03_own_tuner.py:HillClimber \
  --out "$work/leaderboard" --quiet
rm -rf "$entry"
"$BIN/dcqcn-gym" bench submit "$work/leaderboard" --tuner 03_own_tuner-HillClimber \
  --author "The dcqcn-gym developers" --licence MIT --category online --out "$entry"
"$BIN/dcqcn-gym" bench verify "$entry" --date "$(date +%F)" --fresh 1 --verdicts benchmarks/leaderboard/data/verdicts --quiet
