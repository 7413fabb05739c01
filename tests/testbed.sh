#!/usr/bin/env bash
#
# testbed.sh - private, throw-away containerd daemons for integration tests.
#
#   testbed.sh install [1.6|1.7|2.1 ...]   unpack containerd + runc + CNI + busybox under $TESTBED_PREFIX
#   testbed.sh start <1.6|1.7|2.1> <dir>   start a daemon that keeps everything in <dir>; prints its socket
#   testbed.sh image <dir>                 import the two test images into that daemon
#   testbed.sh stop <dir> [--keep]         stop the daemon, its shims, pods, mounts, netns, bridge; remove <dir>
#                                          (--keep: leave configuration, content store and logs in <dir>)
#   testbed.sh guard <dir>                 stop <dir> when standard input ends: a test holds the other end
#                                          of the pipe, so that whatever ends the test ends the daemon too
#
# Needs: root, amd64 Debian, the machine's own apt sources. No image registry, no systemd, no docker.
# The system's packages and apt state are not touched: packages are downloaded with a private apt
# state directory and unpacked with dpkg-deb into $TESTBED_PREFIX. Each version needs nothing but the
# system's libc6 (>= 2.34) and libseccomp2.
#
# In <dir> after `start`:
#   containerd.sock   CRI (and containerd) gRPC socket          containerd.pid   pid of the daemon
#   containerd.log    its log (appended to on every start)      version          the label it was started with
#   config.toml       its configuration                         ctr              wrapper: ctr for this daemon
# To test a daemon restart: kill -TERM / -KILL the pid in containerd.pid, then `start` the same <dir>
# again: containers keep running under their shims in the meantime and are picked up again.
#
# Images (same single busybox layer):
#   testbed.local/pause:1     the sandbox ("pause") image; exits 0 on SIGTERM
#   testbed.local/busybox:1   default command /bin/sh; all busybox applets are in /bin
#                             fast exit: /bin/true   exit code: sh -c 'exit 7'   OOM: tail /dev/zero
#
# Environment: TESTBED_PREFIX (default ~/.cache/pleg-testbed), TESTBED_LOG_LEVEL (default info),
#              TESTBED_SNAPSHOTTER (default overlayfs, or native where <dir> is itself on overlayfs).

set -euo pipefail
umask 022
PREFIX=${TESTBED_PREFIX:-${XDG_CACHE_HOME:-$HOME/.cache}/pleg-testbed}
LOG_LEVEL=${TESTBED_LOG_LEVEL:-info}
PAUSE_IMAGE=testbed.local/pause:1
WORK_IMAGE=testbed.local/busybox:1

die()  { echo "testbed: $*" >&2; exit 1; }
note() { echo "testbed: $*" >&2; }
snapshotter() {  # snapshotter <dir>
    local fs=${TESTBED_SNAPSHOTTER:-}
    [ -n "$fs" ] || { fs=overlayfs; [ "$(stat -fc %T "$1")" != overlayfs ] || fs=native; }
    echo "$fs"
}
now_ms() { local t=$EPOCHREALTIME; echo $(( ${t/[.,]/} / 1000 )); }

usage() { sed -n '3,12p' "$0" | sed 's/^# \{0,2\}//' >&2; exit 2; }

# Which Debian suites may carry which version label, in order of preference: the first whose version
# matches the label is taken, or, with a warning, the first that has the package at all.
suites_for() {
    case $1 in
        1.6) echo "bookworm" ;;
        1.7) echo "trixie" ;;
        2.1) echo "sid forky" ;;
        *)   die "unknown version '$1' (want 1.6, 1.7 or 2.1)" ;;
    esac
}

# ---------------------------------------------------------------------------------------------------
# install
# ---------------------------------------------------------------------------------------------------

# Prints "<mirror URL>\t<keyring>" of the first Debian archive in the machine's apt sources.
find_mirror() {
    local f
    for f in /etc/apt/sources.list.d/*.sources; do          # deb822 format
        [ -e "$f" ] || continue
        awk -v RS= '
            {   uri = suites = comps = key = ""; on = 1
                n = split($0, line, "\n")
                for (i = 1; i <= n; i++) {
                    if (line[i] ~ /^[ \t]*#/) continue
                    split(line[i], w, /[ \t]+/); v = line[i]; sub(/^[^:]*:[ \t]*/, "", v); k = tolower(w[1])
                    if (k == "uris:")       { split(v, u, /[ \t]+/); uri = u[1] }
                    if (k == "suites:")     suites = v
                    if (k == "components:") comps = v
                    if (k == "signed-by:")  key = v
                    if (k == "enabled:" && tolower(v) == "no") on = 0
                }
                # the main archive, not -security: its path ends in /debian
                if (on && comps ~ /(^| )main( |$)/ && uri ~ /\/debian\/?$/) { print uri "\t" key; exit }
            }' "$f"
    done
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do   # one-line format
        [ -e "$f" ] || continue
        awk '$1 == "deb" {
                key = ""; rest = $0; sub(/^deb[ \t]+/, "", rest)
                if (rest ~ /^\[/) {
                    opts = rest; sub(/\].*/, "", opts); sub(/^[^\]]*\][ \t]*/, "", rest)
                    if (match(opts, /signed-by=[^ \t\]]+/)) key = substr(opts, RSTART + 10, RLENGTH - 10)
                }
                split(rest, w, /[ \t]+/)
                if (w[1] ~ /\/debian\/?$/ && rest ~ /[ \t]main([ \t]|$)/) { print w[1] "\t" key; exit }
             }' "$f"
    done
}

# apt-get/apt-cache with a private state, so that neither the system's lists nor its pins take part.
papt() {
    local tool=$1; shift
    "$tool" -q \
        -o Dir::State="$PREFIX/apt/state" -o Dir::State::status="$PREFIX/apt/status" \
        -o Dir::Cache="$PREFIX/apt/cache" -o Dir::Cache::pkgcache=pkgcache.bin -o Dir::Cache::srcpkgcache=srcpkgcache.bin \
        -o Dir::Etc::sourcelist="$PREFIX/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o APT::Update::Post-Invoke-Success::= -o APT::Update::Post-Invoke::= \
        -o APT::Sandbox::User=root -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Retries=3 \
        -o APT::Get::List-Cleanup=false "$@"
}

papt_update() {      # papt_update <suite>...: fetch the lists of these suites, unless they are there and fresh
    local mirror key suite missing=0 line
    # lists older than an hour may name packages that the mirror has since replaced
    [ -n "$(find "$PREFIX/apt/updated" -mmin -60 2>/dev/null || true)" ] || rm -f "$PREFIX/apt/updated"
    mkdir -p "$PREFIX/apt/state/lists/partial" "$PREFIX/apt/cache/archives/partial"
    : > "$PREFIX/apt/status"
    line=$(find_mirror | head -n 1)
    [ -n "$line" ] || die "no Debian archive found in /etc/apt/sources.list*"
    mirror=${line%%$'\t'*}; key=${line#*$'\t'}
    [ -n "$key" ] || key=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e "$PREFIX/apt/sources.list" ] || : > "$PREFIX/apt/sources.list"
    for suite in "$@"; do
        grep -qs " $suite main" "$PREFIX/apt/updated" || missing=1
        grep -q " $suite main" "$PREFIX/apt/sources.list" ||
            echo "deb [arch=amd64 signed-by=$key] $mirror $suite main" >> "$PREFIX/apt/sources.list"
    done
    [ "$missing" = 0 ] && return 0
    papt apt-get update >"$PREFIX/apt/update.log" 2>&1 || { cat "$PREFIX/apt/update.log" >&2; die "apt-get update failed"; }
    cp "$PREFIX/apt/sources.list" "$PREFIX/apt/updated"
}

# suite_version <package> <suite>: the version of the package in that suite
suite_version() {
    papt apt-cache madison "$1" 2>/dev/null | awk -F' *[|] *' -v s="$2" '
        { sub(/^ */, "", $1); split($3, w, " "); if (w[2] == s "/main") { print $2; exit } }'
}

# fetch <package=version>...: downloads all of them in one go into $PREFIX/dl
fetch() {
    mkdir -p "$PREFIX/dl"
    ( cd "$PREFIX/dl" && papt apt-get download "$@" >"$PREFIX/dl/log" 2>&1 ) || { cat "$PREFIX/dl/log" >&2; die "cannot download $*"; }
}

# unpack <target dir> <package> <version>
unpack() {
    mkdir -p "$1"
    dpkg-deb -x "$(echo "$PREFIX/dl/$2_${3//:/%3a}_"*.deb)" "$1"
}

cmd_install() {
    local t0 v p x suite ver want=("$@") suites=("bookworm") todo=() plan=()
    [ "$(id -u)" = 0 ] || die "must run as root"
    [ "$(dpkg --print-architecture)" = amd64 ] || die "amd64 only"
    t0=$(now_ms)
    [ ${#want[@]} -gt 0 ] || want=(1.6 1.7 2.1)
    mkdir -p "$PREFIX"
    exec 9>"$PREFIX/.lock"; flock 9                      # two installs at once: one waits for the other
    for v in "${want[@]}"; do
        suites_for "$v" >/dev/null
        [ -e "$PREFIX/$v/.ok" ] || { todo+=("$v"); suites+=($(suites_for "$v")); }
    done
    [ -e "$PREFIX/common/.ok" ] || todo+=(common)
    if [ ${#todo[@]} -gt 0 ]; then
        papt_update $(printf '%s\n' "${suites[@]}" | sort -u)
        # which package in which version goes where
        for v in "${todo[@]}"; do
            if [ "$v" = common ]; then
                # runc of trixie and sid wants a newer libc6 than bookworm has; bookworm's own
                # runs under every containerd here, so all versions share it.
                for p in runc containernetworking-plugins busybox-static; do
                    ver=$(suite_version "$p" bookworm); [ -n "$ver" ] || die "no $p found in bookworm"
                    plan+=("$v $p $ver")
                done
            else
                ver=
                for suite in $(suites_for "$v"); do
                    x=$(suite_version containerd "$suite")
                    case $x in "$v".*) ver=$x; break ;; esac
                    [ -n "$ver" ] || ver=$x
                done
                [ -n "$ver" ] || die "no containerd found for $v"
                case $ver in "$v".*) ;; *) note "warning: the archive's containerd for label $v is now $ver" ;; esac
                plan+=("$v containerd $ver")
            fi
        done
        fetch $(printf '%s\n' "${plan[@]}" | awk '{ print $2 "=" $3 }')
        for v in "${todo[@]}"; do rm -rf "$PREFIX/$v.tmp"; done
        for x in "${plan[@]}"; do
            read -r v p ver <<<"$x"
            unpack "$PREFIX/$v.tmp" "$p" "$ver"
            echo "$ver" > "$PREFIX/$v.tmp/$p.version"
        done
        for v in "${todo[@]}"; do
            if [ "$v" = common ]; then
                "$PREFIX/$v.tmp/usr/sbin/runc" --version >/dev/null || die "runc does not run here (libseccomp2 missing?)"
                build_images "$PREFIX/$v.tmp"
            else
                "$PREFIX/$v.tmp/usr/bin/containerd" --version >/dev/null || die "containerd does not run here: $v"
            fi
            touch "$PREFIX/$v.tmp/.ok"
            rm -rf "${PREFIX:?}/$v"; mv "$PREFIX/$v.tmp" "$PREFIX/$v"
        done
        rm -rf "$PREFIX/dl" "$PREFIX"/apt/cache/*.bin       # some 250 MB that are not needed any more
    fi
    for v in "${want[@]}"; do note "containerd $v: $(cat "$PREFIX/$v/containerd.version") in $PREFIX/$v"; done
    note "install took $(( $(now_ms) - t0 )) ms"
}

# build_images <common dir>: writes <common dir>/images.tar, a docker-archive with both test images.
# Everything in it is fixed (mtimes, owners), so that the image ids are the same on every machine.
build_images() {
    local base=$1 w applet diff cfg
    w=$(mktemp -d "$PREFIX/img.XXXXXX")
    mkdir -p "$w/root/bin" "$w/root/etc" "$w/root/tmp" "$w/root/proc" "$w/root/sys" "$w/root/dev" "$w/root/root"
    cp "$base/bin/busybox" "$w/root/bin/busybox"; chmod 755 "$w/root/bin/busybox"
    for applet in $("$base/bin/busybox" --list); do
        [ "$applet" = busybox ] || ln -s busybox "$w/root/bin/$applet"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' > "$w/root/etc/passwd"
    echo 'root:x:0:' > "$w/root/etc/group"
    tar -C "$w/root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$w/layer.tar" .
    diff=$(sha256sum "$w/layer.tar" | cut -d' ' -f1)
    mkdir "$w/a"; mv "$w/layer.tar" "$w/a/layer.tar"
    image_config() {    # image_config <entrypoint json> <cmd json>
        printf '{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z","config":{"Env":["PATH=/bin"],"Entrypoint":%s,"Cmd":%s},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"1970-01-01T00:00:00Z","created_by":"testbed"}]}' "$1" "$2" "$diff"
    }
    # pause: a shell loop that dies at once on SIGTERM, so that sandboxes stop quickly everywhere
    image_config '["/bin/sh","-c","trap \"exit 0\" TERM INT; while :; do sleep 3600 & wait $!; done"]' null > "$w/a/pause.json"
    image_config null '["/bin/sh"]' > "$w/a/busybox.json"
    printf '[{"Config":"pause.json","RepoTags":["%s"],"Layers":["layer.tar"]},{"Config":"busybox.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' \
        "$PAUSE_IMAGE" "$WORK_IMAGE" > "$w/a/manifest.json"
    tar -C "$w/a" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$base/images.tar" .
    rm -rf "$w"
}

# ---------------------------------------------------------------------------------------------------
# start
# ---------------------------------------------------------------------------------------------------

alive() { # alive <dir>: is the daemon of <dir> running? (checks that the pid is really that daemon)
    local pid; pid=$(cat "$1/containerd.pid" 2>/dev/null) || return 1
    [ -n "$pid" ] && tr '\0' ' ' 2>/dev/null < "/proc/$pid/cmdline" | grep -qF -- "--config $1/config.toml "
}

bridge_of() { echo "tb$(printf '%s' "$1" | sha256sum | cut -c1-8)"; }

# restrict_oom_score_adj: the pause container wants oom_score_adj -998, which runc cannot set without
# CAP_SYS_RESOURCE (root in many containers and small virtual machines lacks it); with it containerd asks for no less than its own.
write_config() {
    local v=$1 d=$2 runc="$PREFIX/common/usr/sbin/runc" cni="$PREFIX/common/usr/lib/cni" n
    # one private bridge per daemon, no masquerading, no gateway: pods get an address, nothing else
    n=$(( 16#$(printf '%s' "$d" | sha256sum | cut -c1-2) ))
    mkdir -p "$d/cni/net.d" "$d/cni/state"
    cat > "$d/cni/net.d/10-testbed.conflist" <<E
{ "cniVersion": "0.4.0", "name": "testbed", "plugins": [
  { "type": "bridge", "bridge": "$(bridge_of "$d")", "isGateway": false, "ipMasq": false,
    "ipam": { "type": "host-local", "dataDir": "$d/cni/state", "ranges": [[{ "subnet": "10.222.$n.0/24" }]] } } ] }
E
    if [ "$v" = 2.1 ]; then
        cat > "$d/config.toml" <<E
version = 3
root = '$d/root'
state = '$d/state'
[grpc]
  address = '$d/containerd.sock'
[ttrpc]
  address = '$d/containerd.sock.ttrpc'
[debug]
  level = '$LOG_LEVEL'
[plugins.'io.containerd.internal.v1.opt']
  path = '$d/opt'
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images']
  snapshotter = '$(snapshotter "$d")'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '$PAUSE_IMAGE'
[plugins.'io.containerd.cri.v1.runtime']
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = 'runc'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = '$runc'
  Root = '$d/state/runc'
  SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['$cni']
  conf_dir = '$d/cni/net.d'
[plugins.'io.containerd.grpc.v1.cri']
  stream_server_address = '127.0.0.1'
  stream_server_port = '0'
E
    else
        cat > "$d/config.toml" <<E
version = 2
root = "$d/root"
state = "$d/state"
[grpc]
  address = "$d/containerd.sock"
[ttrpc]
  address = "$d/containerd.sock.ttrpc"
[debug]
  level = "$LOG_LEVEL"
[plugins."io.containerd.internal.v1.opt"]
  path = "$d/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  restrict_oom_score_adj = true
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$(snapshotter "$d")"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$runc"
        Root = "$d/state/runc"
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$cni"
    conf_dir = "$d/cni/net.d"
E
    fi
}

# cgroup v2 only: hand the controllers down to children, as an init system would have done.
# (On a hybrid/v1 machine there is nothing to do.)
prepare_cgroups() {
    [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || return 0
    local c; for c in $(cat /sys/fs/cgroup/cgroup.controllers); do
        echo "+$c" > /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
    done
}

cmd_start() {
    [ $# = 2 ] || usage
    local v=$1 d t0 off pid i
    suites_for "$v" >/dev/null
    mkdir -p "$2"; d=$(cd "$2" && pwd -P)
    [ -e "$PREFIX/$v/.ok" ] && [ -e "$PREFIX/common/.ok" ] || die "not installed: run '$0 install $v' first"
    [ ${#d} -le 80 ] || die "path too long for a unix socket: $d"
    t0=$(now_ms)
    if alive "$d"; then
        [ "$(cat "$d/version")" = "$v" ] || die "a containerd $(cat "$d/version") is already running in $d"
        echo "$d/containerd.sock"; return 0
    fi
    if [ -e "$d/version" ] && [ "$(cat "$d/version")" != "$v" ]; then die "$d belongs to containerd $(cat "$d/version")"; fi
    echo "$v" > "$d/version"
    write_config "$v" "$d"
    prepare_cgroups
    printf '#!/bin/sh\nexec "%s/%s/usr/bin/ctr" --address "%s/containerd.sock" "$@"\n' "$PREFIX" "$v" "$d" > "$d/ctr"
    chmod 755 "$d/ctr"
    rm -f "$d/containerd.sock"
    touch "$d/containerd.log"; off=$(stat -c %s "$d/containerd.log")
    # the shim is looked up in PATH: each version must find its own. fd 9 and stdin are not inherited.
    PATH="$PREFIX/$v/usr/bin:$PREFIX/common/usr/sbin:$PATH" \
        setsid "$PREFIX/$v/usr/bin/containerd" --config "$d/config.toml" --log-level "$LOG_LEVEL" \
        </dev/null >>"$d/containerd.log" 2>&1 9>&- &
    pid=$!
    echo "$pid" > "$d/containerd.pid"
    # ready = the socket is there and the CRI service has said that it serves (until then its RPCs fail)
    for (( i = 0; i < 1200; i++ )); do
        kill -0 "$pid" 2>/dev/null || { tail -n 20 "$d/containerd.log" >&2; die "containerd $v exited during start"; }
        if [ -S "$d/containerd.sock" ] && tail -c "+$((off + 1))" "$d/containerd.log" | grep -q 'containerd successfully booted'  \
           && tail -c "+$((off + 1))" "$d/containerd.log" | grep -q 'Start streaming server'; then
            note "containerd $v (pid $pid) started in $(( $(now_ms) - t0 )) ms"
            echo "$d/containerd.sock"
            return 0
        fi
        sleep 0.05
    done
    tail -n 20 "$d/containerd.log" >&2; die "containerd $v not ready after 60 s"
}

# ---------------------------------------------------------------------------------------------------
# image
# ---------------------------------------------------------------------------------------------------

cmd_image() {
    [ $# = 1 ] || usage
    local d t0 i local_flag=; d=$(cd "$1" && pwd -P); t0=$(now_ms)
    [ "$(cat "$d/version")" = 2.1 ] && local_flag=--local    # its transfer service unpacks for overlayfs only
    alive "$d" || die "no containerd running in $d"
    "$d/ctr" -n k8s.io images import $local_flag --snapshotter "$(snapshotter "$d")" "$PREFIX/common/images.tar" >"$d/import.log" 2>&1 \
        || { cat "$d/import.log" >&2; die "import failed"; }
    # the CRI plugin learns of new images asynchronously and then marks them
    for (( i = 0; i < 200; i++ )); do
        if [ "$("$d/ctr" -n k8s.io images ls | grep -E "^($PAUSE_IMAGE|$WORK_IMAGE) " | grep -c 'io.cri-containerd.image=managed')" = 2 ]; then
            note "images imported in $(( $(now_ms) - t0 )) ms"
            printf '%s\n' "$PAUSE_IMAGE" "$WORK_IMAGE"
            return 0
        fi
        sleep 0.05
    done
    die "the CRI plugin did not pick up the images"
}

# ---------------------------------------------------------------------------------------------------
# stop
# ---------------------------------------------------------------------------------------------------

shims_of() { # pids of the shims that serve this daemon: those whose -address is our socket
    local p
    for p in /proc/[0-9]*; do
        tr '\0' '\n' 2>/dev/null < "$p/cmdline" | awk -v a="$1/containerd.sock" '
            NR == 1 && $0 !~ /containerd-shim/ { exit } prev == "-address" && $0 == a { ok = 1 } { prev = $0 }
            END { exit !ok }' && echo "${p#/proc/}" || true
    done
}

cmd_stop() {
    [ $# -ge 1 ] || usage
    local d pid i id m keep=${2:-} runc="$PREFIX/common/usr/sbin/runc" r
    [ -d "$1" ] || return 0
    d=$(cd "$1" && pwd -P)
    [ -e "$d/version" ] || die "$d is not a testbed directory"
    # 1. the daemon
    if alive "$d"; then
        pid=$(cat "$d/containerd.pid")
        kill -CONT "$pid" 2>/dev/null || true               # a test may have left it stopped
        kill -TERM "$pid" 2>/dev/null || true
        for (( i = 0; i < 100; i++ )); do alive "$d" || break; sleep 0.05; done
        alive "$d" && kill -KILL "$pid" 2>/dev/null || true
        for (( i = 0; i < 100; i++ )); do alive "$d" || break; sleep 0.05; done
    fi
    rm -f "$d/containerd.pid" "$d/containerd.sock" "$d/containerd.sock.ttrpc"
    # 2. shims first (so that nobody reaps and reports any more), then what is left of the containers;
    #    a shim's own socket lies outside <dir>, its bundle says where
    grep -rhoE '/run/containerd/s/[0-9a-f]+' "$d"/state/io.containerd.runtime.v2.task/*/*/{address,bootstrap.json} 2>/dev/null \
        | sort -u > "$d/shim-sockets" || true
    for pid in $(shims_of "$d"); do kill -KILL "$pid" 2>/dev/null || true; done
    for r in "$d"/state/runc/*/; do
        [ -d "$r" ] || continue
        for id in $(ls "$r"); do "$runc" --root "${r%/}" delete --force "$id" >/dev/null 2>&1 || true; done
    done
    while IFS= read -r m; do rm -f "$m"; done < "$d/shim-sockets"
    # 3. mounts below <dir> (rootfs, shm, network namespaces), innermost first
    for i in 1 2 3; do
        m=$(awk -v p="$d/" 'index($5, p) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
        [ -n "$m" ] || break
        while IFS= read -r m1; do umount -l "$(printf '%b' "$m1")" 2>/dev/null || true; done <<<"$m"
    done
    # 4. the pods' bridge (their veth pairs went with their network namespaces)
    if command -v ip >/dev/null && ip link show "$(bridge_of "$d")" >/dev/null 2>&1; then
        ip link delete "$(bridge_of "$d")" || true
    fi
    # 5. files
    if grep -qF " $d/" /proc/self/mountinfo; then note "warning: mounts left below $d, not removed"; return 1; fi
    if [ "$keep" = --keep ]; then rm -rf "$d/state" "$d/cni/state"
    else rm -rf "$d"; fi
}

# ---------------------------------------------------------------------------------------------------
# guard
# ---------------------------------------------------------------------------------------------------

cmd_guard() {
    [ $# = 1 ] || usage
    trap '' INT TERM HUP                                    # what ends the test must not end its clean-up
    cat >/dev/null || true
    [ -d "$1" ] || return 0
    if [ -e "$1/version" ]; then cmd_stop "$1"; else rm -rf "$1"; fi    # no version: never started
}

[ $# -ge 1 ] || usage
sub=$1; shift
case $sub in
    install) cmd_install "$@" ;;
    start)   cmd_start "$@" ;;
    image)   cmd_image "$@" ;;
    stop)    cmd_stop "$@" ;;
    guard)   cmd_guard "$@" ;;
    *)       usage ;;
esac
