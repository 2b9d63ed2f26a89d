#!/bin/sh
# Shows the effect of schedules on a model: the loops and the speed of each, and that the answers do not change by a
# bit.
#   schedule_tour.sh MODEL ROWS     (forestvm on the PATH)
set -eu
model=$1
rows=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

tour() { # NAME SCHEDULE
  echo "== $1"
  forestvm dump "$model" --stage loops --schedule "$2"
  forestvm bench "$model" "$rows" --schedule "$2" --batch 4096 --seconds 0.05 |
    awk '$1 == 4096 { print "us/row: " $3 }'
  forestvm run "$model" "$rows" --schedule "$2" --output raw --threads 1 -o "$folder/$1.npy"
  cmp "$folder/$1.npy" "$folder/default.npy"
}

tour default   default
tour blocks    'tile(batch, b0, b1, 64); reorder(b0, tree, b1)'
tour lockstep  'tile(batch, b0, b1, 64); reorder(b0, tree, b1); tile(b1, b2, b3, 16); interleave(b3); layout(tree, sparse)'
tour encoded   'tile(batch, b0, b1, 64); reorder(b0, tree, b1); encode(u8)'
tour parallel  'tile(batch, b0, b1, 512); reorder(b0, tree, b1); parallel(b0); encode(u8)'
tour auto      auto
echo "All schedules give the same bits."
