#!/usr/bin/env bash
# Builds the Debian package: the command, its unit, its configuration, manual pages and completions.
#
#   deploy/deb/build.sh [FILE]      FILE: the package to write, target/debian/pleg.deb by default
#
# It wants cargo-deb (cargo install cargo-deb --locked) and, for exact dependencies, dpkg-dev. The same
# sources and the same compiler give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."

package=${1:-target/debian/pleg.deb}
cargo deb --version >/dev/null 2>&1 || { echo "cargo-deb is missing: cargo install cargo-deb --locked" >&2; exit 1; }

rm -rf target/manual
cargo run --quiet --example manual -- target/manual
# Stamps inside the package: those of the newest commit, where there is one.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
mkdir -p "$(dirname "$package")"
cargo deb --quiet --output "$package"
echo "$package: $(stat -c %s "$package") bytes, of which the command unpacks to $(stat -c %s target/release/pleg)"
