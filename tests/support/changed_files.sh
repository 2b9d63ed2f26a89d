#!/bin/sh
# Prints the files that changed since the branch left main, or on main in the last commit, and files that git does not
# track; as paths from the root. Fails if there is no history for that, as in a shallow clone.
set -eu
cd "$(dirname "$0")/../.."
base=
for main in origin/main main; do
  base=$(git merge-base HEAD "$main" 2>/dev/null) && break
done
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
  base=$(git rev-parse --quiet --verify HEAD~1)
fi
git diff --name-only --diff-filter=d "$base"
git ls-files --others --exclude-standard
