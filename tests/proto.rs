//! The checked-in wire messages are what the proto says.
//!
//! Users of the library compile no proto. This test does, with a compiler written in Rust, and
//! compares byte for byte. After a change of `proto/`, run it with `PLEG_WRITE_PROTO=1` to rewrite
//! the checked-in files.

use std::fs;
use std::path::Path;

const PROTO: &str = "proto/runtime/v1/api.proto";
const GENERATED: &str = "src/cri/wire/generated";

#[test]
fn the_checked_in_wire_messages_are_what_the_proto_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors =
        protox::compile([root.join(PROTO)], [root.join("proto")]).expect("the proto compiles");
    let scratch = tempfile::tempdir().expect("a temporary directory");

    let messages = scratch.path().join("messages");
    fs::create_dir(&messages).expect("the directory is new");
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .btree_map(".")
        .build_client(false)
        .build_server(false)
        .out_dir(&messages)
        .compile_fds(descriptors.clone())
        .expect("prost writes the messages");

    // The trait alone: its messages are the ones above.
    let server = scratch.path().join("server");
    fs::create_dir(&server).expect("the directory is new");
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .extern_path(".runtime.v1", "crate::cri::wire::messages")
        .build_client(false)
        .generate_default_stubs(true)
        .out_dir(&server)
        .compile_fds(descriptors)
        .expect("tonic writes the server");

    for (made, checked_in) in [
        (messages.join("runtime.v1.rs"), "runtime.v1.rs"),
        (server.join("runtime.v1.rs"), "runtime.v1.server.rs"),
    ] {
        let made = fs::read_to_string(made).expect("the generator wrote it");
        let path = root.join(GENERATED).join(checked_in);
        if std::env::var_os("PLEG_WRITE_PROTO").is_some() {
            fs::write(&path, &made).expect("the checked-in file can be written");
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            made == kept,
            "{GENERATED}/{checked_in} is not what {PROTO} says; \
             run `PLEG_WRITE_PROTO=1 cargo test --test proto` and check the result in"
        );
    }
}
