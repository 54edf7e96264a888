#!/usr/bin/env bash
# publish_docs.sh VERSION: put build/site beside the docs of other versions on the branch gh-pages.
# The first page lists the versions, newest first; links to latest/ never change.
set -euo pipefail
VERSION=$1
PAGES=$(mktemp -d)
git worktree prune
if git fetch -q origin gh-pages 2>/dev/null; then
  git worktree add -q --detach "$PAGES" FETCH_HEAD
else
  git worktree add -q --detach "$PAGES"
  git -C "$PAGES" checkout -q --orphan gh-pages-new
  git -C "$PAGES" rm -rfq .
fi
for name in "$VERSION" latest; do
  rm -rf "${PAGES:?}/$name"
  cp -r build/site "$PAGES/$name"
done
touch "$PAGES/.nojekyll"
{
  echo '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
  echo '<title>dcqcn-gym: docs</title><h1>dcqcn-gym: docs by version</h1><ul>'
  echo '<li><a href="latest/index.html">latest</a>'
  (cd "$PAGES" && ls -d [v0-9]*/ | sort -rV | sed -E 's#(.*)/#<li><a href="\1/index.html">\1</a>#')
  echo '</ul>'
} > "$PAGES/index.html"
git -C "$PAGES" add -A
git -C "$PAGES" -c user.name=docs -c user.email=docs@localhost commit -qm "Docs of $VERSION"
git -C "$PAGES" push -q origin HEAD:refs/heads/gh-pages
git worktree remove --force "$PAGES"
