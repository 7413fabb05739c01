#!/usr/bin/env bash
# The daemon's page in a real browser: see page.py. Installs Debian's Chromium where it is missing. PLEG is
# the command to test; if unset, the debug build. PICTURES=DIRECTORY keeps pictures of the page.
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v chromium >/dev/null ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null
if [ -z "${PLEG:-}" ]; then
    cargo build --quiet
    PLEG=target/debug/pleg
fi
exec python3 tests/browser/page.py "$PLEG" ${PICTURES:+"$PICTURES"}
