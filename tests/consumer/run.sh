#!/usr/bin/env bash
# A crate of somebody else's that depends on this one: built in a scratch folder with the library and its
# simulated runtime alone, run, and its tree counted. The counts are those that docs/README.md states.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export CARGO_TERM_COLOR=never CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "$1" >&2
    exit 1
}

# crate NAME FEATURES: a crate with the library's lock file, so that nothing new is fetched.
crate() {
    mkdir -p "$work/$1/src"
    cp "$root/tests/consumer/main.rs" "$work/$1/src/main.rs"
    cp "$root/Cargo.lock" "$work/$1/"
    cat >"$work/$1/Cargo.toml" <<TOML
[package]
name = "$1"
edition = "2024"
[workspace]
[profile.dev]
debug = "line-tables-only"
[dependencies]
$2
TOML
}

# tree NAME: what a crate depends on, on this machine's platform, one a line, without itself and pleg.
tree() {
    cargo tree --offline --quiet --manifest-path "$work/$1/Cargo.toml" --edges normal,build --prefix none |
        cut -d' ' -f1,2 | sort -u | grep -vE "^($1|pleg) "
}

# The program, as the guide has it.
crate consumer 'futures = { version = "0.3", default-features = false }
pleg = { path = "'"$root"'", default-features = false, features = ["simulate"] }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }'
lines=$(sed -n '/^async fn main/,/^}/p' "$root/tests/consumer/main.rs" | sed '1d;$d' | wc -l)
[ "$lines" -le 10 ] || fail "the program has $lines lines"
cargo build --offline --quiet --manifest-path "$work/consumer/Cargo.toml"
told=$(timeout 30 "$CARGO_TARGET_DIR/debug/consumer")
echo "$told"
[ "$(grep -cE '^Container(Started|Died|Removed) [a-z-]+/[a-z0-9-]+$' <<<"$told")" -eq 10 ] ||
    fail "that is not ten events"

# The trees.
stated=$root/docs/README.md
count() {
    local name=$1 crates
    shift
    crate "$name" "pleg = { path = \"$root\", default-features = false, features = [$*] }"
    crates=$(tree "$name" | wc -l)
    echo "$name: $crates crates"
    grep -qF "| \`$name\` | $crates |" "$stated" || fail "docs/README.md states another number for $name"
}
count none
count simulate '"simulate"'
count scenarios '"scenarios"'
count daemon '"daemon"'
count default '"default"'
crate tonic-alone 'tonic = { version = "0.14", default-features = false, features = ["codegen", "channel"] }'
crates=$(tree tonic-alone | wc -l)
echo "tonic alone: $crates crates"
grep -qF "| tonic alone | $crates |" "$stated" || fail "docs/README.md states another number for tonic alone"

# Nothing of the command, nor of the daemon.
for name in none simulate consumer; do
    if tree "$name" | grep -E '^(axum|clap|clap_builder|prometheus-client|sd-notify|serde-saphyr|serde_json|tonic-health|tracing-subscriber|ruzstd|protox) '; then
        fail "$name depends on what only the command or the daemon needs"
    fi
done
tree default | grep -q '^clap ' || fail "the command does without clap: this check sees nothing"
