//! The checked-in code for both wires is what the protos say.
//!
//! Users of the library compile no proto. These tests do, with a compiler written in Rust, and
//! compare byte for byte. After a change of `proto/`, run them with `PLEG_WRITE_PROTO=1` to rewrite
//! the checked-in files.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tonic_prost_build::Builder;

/// A proto, compiled again and again into a folder of its own.
struct Proto {
    file: &'static str,
    folder: &'static str,
    scratch: TempDir,
}

impl Proto {
    fn new(file: &'static str, folder: &'static str) -> Self {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        Self {
            file,
            folder,
            scratch,
        }
    }

    /// What `set_up` makes of the proto.
    fn compiled(&self, made: &str, set_up: impl FnOnce(Builder) -> Builder) -> PathBuf {
        let descriptors = protox::compile(
            [root().join("proto").join(self.file)],
            [root().join("proto")],
        )
        .expect("the proto compiles");
        let out = self.scratch.path().join(made);
        fs::create_dir(&out).expect("the directory is new");
        set_up(tonic_prost_build::configure().emit_rerun_if_changed(false))
            .out_dir(&out)
            .compile_fds(descriptors)
            .expect("the generators write");
        out
    }

    fn is_checked_in(&self, made: &Path, checked_in: &str) {
        let made = fs::read_to_string(made).expect("the generator wrote it");
        let path = root().join(self.folder).join(checked_in);
        if std::env::var_os("PLEG_WRITE_PROTO").is_some() {
            fs::write(&path, &made).expect("the checked-in file can be written");
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            made == kept,
            "{}/{checked_in} is not what proto/{} says; \
             run `PLEG_WRITE_PROTO=1 cargo test --test proto` and check the result in",
            self.folder,
            self.file
        );
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_checked_in_wire_messages_are_what_the_proto_says() {
    let proto = Proto::new("runtime/v1/api.proto", "src/cri/wire/generated");
    let messages = proto.compiled("messages", |builder| {
        builder
            .btree_map(".")
            .build_client(false)
            .build_server(false)
    });
    // The trait alone: its messages are the ones above.
    let server = proto.compiled("server", |builder| {
        builder
            .extern_path(".runtime.v1", "crate::cri::wire::messages")
            .build_client(false)
            .generate_default_stubs(true)
    });
    proto.is_checked_in(&messages.join("runtime.v1.rs"), "runtime.v1.rs");
    proto.is_checked_in(&server.join("runtime.v1.rs"), "runtime.v1.server.rs");
}

#[test]
fn the_checked_in_service_is_what_the_proto_says() {
    let proto = Proto::new("pleg/v1/pleg.proto", "src/serve/grpc/generated");
    let messages = proto.compiled("messages", |builder| {
        builder.build_client(false).build_server(false)
    });
    // A watcher's answer is encoded once for all of them: the server sends it as it is.
    let server = proto.compiled("server", |builder| {
        builder
            .extern_path(
                ".pleg.v1.WatchResponse",
                "crate::serve::grpc::encoded::Encoded",
            )
            .extern_path(".pleg.v1", "crate::serve::grpc::messages")
            .build_client(false)
    });
    let client = proto.compiled("client", |builder| {
        builder
            .extern_path(".pleg.v1", "crate::serve::grpc::messages")
            .build_server(false)
            .build_transport(false)
    });
    proto.is_checked_in(&messages.join("pleg.v1.rs"), "pleg.v1.rs");
    proto.is_checked_in(&server.join("pleg.v1.rs"), "pleg.v1.server.rs");
    proto.is_checked_in(&client.join("pleg.v1.rs"), "pleg.v1.client.rs");
}
