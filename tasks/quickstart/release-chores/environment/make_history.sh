#!/bin/bash
# Turn the folder in $1 into the repository of the task.
set -euo pipefail
cd "$1"
export GIT_AUTHOR_NAME="Ada Example" GIT_AUTHOR_EMAIL=ada@example.org GIT_AUTHOR_DATE="2030-05-01T12:00:00Z"
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
git init --quiet --initial-branch=main
git add .
git commit --quiet --message "chore: pantry 1.4.0"
git tag v1.4.0
while read -r subject; do
    git commit --quiet --allow-empty --message "$subject"
done <<'SUBJECTS'
feat: read stock from several files
fix: names with blanks are kept whole
docs: an example with flour
feat: print worth in other currencies
fix: an empty pantry has a sum
revert: feat: print worth in other currencies
remove: the --ascii option
test: more of the table
feat: --version
fix: sorting ignores the number of pieces
fix: file names: keep what follows a colon
revert: fix: sorting ignores the number of pieces
SUBJECTS
