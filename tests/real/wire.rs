//! The wire messages that the driver sends, and the proof that they are what the proto says.
//!
//! Kept apart from the crate's own messages: those can only read, these can change a node.

use std::fs;
use std::path::Path;

#[allow(
    clippy::all,
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    reason = "generated"
)]
mod generated {
    include!("generated/runtime.v1.rs");
}

pub(crate) use generated::runtime_service_client::RuntimeServiceClient;
pub(crate) use generated::*;

/// After a change of the proto, run this with `PLEG_WRITE_PROTO=1` to rewrite the checked-in file.
#[test]
fn the_checked_in_driver_messages_are_what_the_proto_says() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real");
    let descriptors = protox::compile([here.join("proto/cri_driver.proto")], [here.join("proto")])
        .expect("the proto compiles");
    let scratch = tempfile::tempdir().expect("a temporary directory");
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .btree_map(".")
        .build_server(false)
        .build_transport(false)
        .out_dir(scratch.path())
        .compile_fds(descriptors)
        .expect("tonic writes the client");

    let made = fs::read_to_string(scratch.path().join("runtime.v1.rs")).expect("it was written");
    let path = here.join("generated/runtime.v1.rs");
    if std::env::var_os("PLEG_WRITE_PROTO").is_some() {
        fs::write(&path, &made).expect("the checked-in file can be written");
    }
    assert!(
        made == fs::read_to_string(&path).unwrap_or_default(),
        "tests/real/generated/runtime.v1.rs is not what tests/real/proto/cri_driver.proto says; run \
         `PLEG_WRITE_PROTO=1 cargo test --test real driver_messages` \
         and check the result in"
    );
}
