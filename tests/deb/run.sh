#!/usr/bin/env bash
# The Debian package, from its making to its purge, in a clean root of its own: nothing of this machine's
# system but apt's sources is used, and nothing is left behind.
#
#   tests/deb/run.sh [PACKAGE]      PACKAGE: one that is built already
#
# Needs root, on Debian. Installs what it needs of tools where they are missing, cargo-deb among them.
set -euo pipefail
cd "$(dirname "$0")/../.."

needed=()
command -v mmdebstrap >/dev/null || needed+=(mmdebstrap)
command -v dpkg-shlibdeps >/dev/null || needed+=(dpkg-dev)
command -v lexgrog >/dev/null || needed+=(man-db)
command -v groff >/dev/null || needed+=(groff-base)
[ ${#needed[@]} -eq 0 ] || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${needed[@]}"; } >/dev/null

package=${1:-}
if [ -z "$package" ]; then
    .ci/tools cargo-deb
    package=target/debian/pleg.deb
    deploy/deb/build.sh "$package"
fi
die() { echo "deb: $*" >&2; exit 1; }

# The machine's own mirrors, without what apt's files say beside them.
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
    if [ -s "$file" ] && grep -q debian "$file"; then sources+=("$file"); fi
done
[ ${#sources[@]} -gt 0 ] || die "apt has no Debian sources here"

work=$(mktemp -d /tmp/pleg-deb.XXXXXX)
root=$work/root
daemon=
cleaned() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$work"
}
trap cleaned EXIT
began=$EPOCHSECONDS
mmdebstrap --quiet --variant=essential --skip=check/empty "" "$root" "${sources[@]}" 2>"$work/log" \
    || { cat "$work/log" >&2; die "there is no clean root to be had"; }
echo "deb: a clean root of $(du -sm "$root" | cut -f1) MB after $((EPOCHSECONDS - began)) s"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C "$@"; }
# All that is in the root, but for what dpkg itself writes.
listing() {
    (cd "$root" && find . -path ./proc -prune -o -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -print | sort)
}
listing >"$work/before"

# Every dependency is there already: the package wants no more than a minimal system has.
cp "$package" "$root/pleg.deb"
inside dpkg --install /pleg.deb >"$work/log" 2>&1 || { cat "$work/log" >&2; die "it cannot be installed"; }
rm "$root/pleg.deb"
[ "$(inside dpkg-query -W -f '${Status}' pleg)" = "install ok installed" ] || die "it is not installed"

# It runs where nothing but its dependencies is.
inside pleg pods --simulate | grep -q 'kube-system/etcd-node-1' || die "pods lists nothing"
inside pleg watch --simulate --count 3 --type Started -o json | grep -c ContainerStarted | grep -qx 3 || die "watch tells nothing"
settings=$(inside pleg run --print-config)
grep -q 'relistPeriod: 1s *# /etc/pleg/config.yaml:' <<<"$settings" || die "run does not read its file: $settings"
mkdir -p "$root/run/pleg"
chroot "$root" /usr/bin/pleg run --simulate --http-listen off 2>"$work/daemon" &
daemon=$!
# It listens before it has listed anything, and is healthy once it has.
healthy=
for _ in $(seq 100); do
    if inside pleg status >"$work/status" 2>&1; then healthy=yes; break; fi
    sleep 0.1
done
[ -n "$healthy" ] || die "the daemon is not healthy: $(cat "$work/status" "$work/daemon")"
kill "$daemon" && wait "$daemon" || die "the daemon does not end well"
daemon=
# systemd takes its folder away with the unit; here nobody does.
rm -r "$root/run/pleg"

# Manual pages as man wants them, one for each subcommand.
pages=0
for page in "$root"/usr/share/man/man1/pleg*.1.gz; do
    lexgrog "$page" >/dev/null || die "$(basename "$page") has no name that whatis could find"
    warnings=$(zcat "$page" | groff -man -ww -z -Tutf8 2>&1 || true)
    [ -z "$warnings" ] || die "$(basename "$page"): $warnings"
    pages=$((pages + 1))
done
subcommands=$(inside pleg --help | sed -n '/^Commands:/,/^$/p' | grep -c '^  [a-z]')
[ "$pages" = $((subcommands + 1)) ] || die "$pages pages for $subcommands subcommands"

# Completions as the shells read them.
completions=$root/usr/share/bash-completion/completions/pleg
answer=$(bash -c ". '$completions'; COMP_WORDS=(pleg watch --dump); COMP_CWORD=2; _pleg pleg --dump watch; echo \${COMPREPLY[@]}")
[ "$answer" = "--dump-last" ] || die "bash completes --dump to '$answer'"
for pair in zsh:zsh/vendor-completions/_pleg fish:fish/vendor_completions.d/pleg.fish; do
    shell=${pair%%:*}
    command -v "$shell" >/dev/null || continue
    "$shell" -n "$root/usr/share/${pair#*:}" || die "$shell does not read its completions"
done

# The unit is there, whole, and neither enabled nor started: whoever installs decides when.
unit=$root/usr/lib/systemd/system/pleg.service
[ -f "$unit" ] || die "there is no unit"
if command -v systemd-analyze >/dev/null; then
    # With the command where it is here, or systemd would miss it.
    sed "s|=/usr/bin/pleg|=$root/usr/bin/pleg|" "$unit" >"$work/pleg.service"
    said=$(systemd-analyze verify --man=no "$work/pleg.service" 2>&1 | grep 'pleg\.service' || true)
    [ -z "$said" ] || die "systemd: $said"
fi
[ -z "$(find "$root/etc/systemd" -name 'pleg*' 2>/dev/null)" ] || die "it enabled itself"

# What an administrator has written survives an upgrade and a removal, and a purge takes it all.
echo '# ours' >>"$root/etc/pleg/config.yaml"
cp "$package" "$root/pleg.deb"
inside dpkg --install /pleg.deb >"$work/log" 2>&1 || { cat "$work/log" >&2; die "it cannot be installed again"; }
rm "$root/pleg.deb"
tail -1 "$root/etc/pleg/config.yaml" | grep -qx '# ours' || die "an upgrade overwrote the settings"
inside dpkg --remove pleg >"$work/log" 2>&1 || { cat "$work/log" >&2; die "it cannot be removed"; }
[ ! -e "$root/usr/bin/pleg" ] || die "removal left the command"
[ -f "$root/etc/pleg/config.yaml" ] || die "removal took the settings"
inside dpkg --purge pleg >"$work/log" 2>&1 || { cat "$work/log" >&2; die "it cannot be purged"; }
listing >"$work/after"
diff "$work/before" "$work/after" >"$work/left" || die "a purge leaves: $(cat "$work/left")"
echo "deb: $(basename "$package"), $(stat -c %s "$package") bytes: installed, run, upgraded, removed, purged without a trace"
