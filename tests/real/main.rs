//! `pleg` against real containerd daemons: 1.6.20 (polling only), 1.7.24 and 2.1.x, side by side.
//!
//! Needs root on amd64 Debian; the daemons come from the machine's own package archive and leave
//! nothing behind. One command, which installs the test bed first:
//!
//! ```text
//! cargo test --test real
//! ```
//!
//! A [`story`] is told through the [`driver`], which keeps the record of what truly happened; the
//! record becomes a [`truth`], and that is what an observer of the node is held against. These tests
//! alone use the real clock: nothing else can be true of a real runtime.

/// Makes one test for each runtime of a function that takes the version.
macro_rules! on_each_runtime {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use crate::testbed::Version;

            #[tokio::test]
            async fn containerd_16() {
                super::$test(Version::Containerd16).await;
            }

            #[tokio::test]
            async fn containerd_17() {
                super::$test(Version::Containerd17).await;
            }

            #[tokio::test]
            async fn containerd_21() {
                super::$test(Version::Containerd21).await;
            }
        }
    )+};
}

mod account;
mod disturbances;
mod driver;
mod driver_alone;
mod follows;
mod latency;
mod observer;
mod other_clients;
mod quiet;
mod raw_events;
mod recorded;
mod runtime_faults;
mod runtime_lists;
mod scenarios;
mod stalls;
mod story;
mod testbed;
mod truth;
mod verify;
mod wire;
