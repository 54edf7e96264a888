#!/usr/bin/env bash
# Makes the committed submission anew and verifies it: `bash board/submissions/make.sh`, after every
# change of dynamics, of the log's header or of the version. Half a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."
BIN=${BIN:-.venv/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
row=board/submissions/hill-climber

"$BIN/dcqcn-gym" bench run smoke --tuners examples/03_own_tuner.py:HillClimber \
  --out "$work/board" --quiet
rm -rf "$row"
"$BIN/dcqcn-gym" bench submit "$work/board" --tuner 03_own_tuner-HillClimber \
  --author "The dcqcn-gym developers" --licence MIT --track online --out "$row"
"$BIN/dcqcn-gym" bench verify "$row" --date "$(date +%F)" --fresh 1 --verdicts board/verdicts --quiet
