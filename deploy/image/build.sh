#!/usr/bin/env bash
# Builds the image: one static binary, nothing else. No container engine, no network beyond cargo's.
#
#   deploy/image/build.sh [FILE]      FILE: the OCI archive to write, target/image/pleg.oci.tar by default
#
# Load it with `ctr -n k8s.io images import FILE`, `skopeo copy oci-archive:FILE …` or `podman load`.
# The same sources and the same compiler give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."

archive=${1:-target/image/pleg.oci.tar}
machine=$(uname -m)
case $machine in
    x86_64) architecture=amd64 ;;
    aarch64) architecture=arm64 ;;
    *) echo "no image for $machine" >&2; exit 1 ;;
esac
triple=$machine-unknown-linux-gnu
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=localhost/pleg:$version

# A target given by name keeps the flag away from build scripts and procedural macros, which cannot be static.
# Nothing in the daemon resolves names, so glibc's name service is not missed.
RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --quiet --bin pleg --target "$triple"
binary=target/$triple/release/pleg
if grep -q ld-linux <(head -c 4096 "$binary" | strings); then
    echo "$binary is not static" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blobs=$work/layout/blobs/sha256
mkdir -p "$blobs" "$work/root"

# Puts a file among the blobs; prints its digest and its size.
add_blob() {
    local digest
    digest=$(sha256sum "$1" | cut -d' ' -f1)
    mv "$1" "$blobs/$digest"
    echo "$digest $(stat -c %s "$blobs/$digest")"
}

archived() { tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf "$2" .; }

install -m 0755 "$binary" "$work/root/pleg"
archived "$work/root" "$work/layer"
read -r layer layer_size < <(add_blob "$work/layer")

cat >"$work/config" <<EOF
{"architecture":"$architecture","os":"linux","created":"1970-01-01T00:00:00Z","config":{"Entrypoint":["/pleg"],"Cmd":["run"],"Labels":{"org.opencontainers.image.title":"pleg","org.opencontainers.image.version":"$version","org.opencontainers.image.licenses":"Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]},"history":[{"created":"1970-01-01T00:00:00Z","created_by":"deploy/image/build.sh"}]}
EOF
read -r config config_size < <(add_blob "$work/config")

cat >"$work/manifest" <<EOF
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$config_size},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:$layer","size":$layer_size}]}
EOF
read -r manifest manifest_size < <(add_blob "$work/manifest")

cat >"$work/layout/index.json" <<EOF
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$manifest","size":$manifest_size,"platform":{"architecture":"$architecture","os":"linux"},"annotations":{"io.containerd.image.name":"$name","org.opencontainers.image.ref.name":"$version"}}]}
EOF
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"

mkdir -p "$(dirname "$archive")"
archived "$work/layout" "$archive"
echo "$name: $archive, $(stat -c %s "$archive") bytes"
