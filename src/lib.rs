//! The pod lifecycle event generator for one Kubernetes node.
//!
//! `pleg` follows a CRI runtime (containerd, CRI-O, cri-dockerd) and turns what happens there into an
//! ordered feed of lifecycle events and a cache of pod statuses that never lies about how fresh it is.
//! The runtime's event stream drives both; relists audit it, and take over whenever it breaks, goes
//! silent or loses events. It only ever reads: nothing in this crate can change a node.
//!
//! ```no_run
//! use futures::StreamExt;
//! use pleg::{Pleg, feed::WatchFrom};
//!
//! # async fn follow() -> Result<(), Box<dyn std::error::Error>> {
//! let (pleg, driver) = Pleg::builder()
//!     .endpoint("unix:///run/containerd/containerd.sock".parse()?)
//!     .build()?;
//! tokio::spawn(driver.run());
//! let mut events = pleg.watch(WatchFrom::Snapshot)?;
//! while let Some(event) = events.next().await {
//!     println!("{} {} {}", event.kind, event.pod.namespace, event.pod.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Without a runtime at hand, follow a simulated one (feature `simulate`):
//!
//! ```
//! # #[cfg(feature = "simulate")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use futures::StreamExt;
//! use pleg::{Pleg, feed::WatchFrom, simulate::SimulatedRuntime};
//!
//! let runtime = SimulatedRuntime::builder().busy_node().build();
//! let _churn = runtime.spawn_churn();
//! let simulated = runtime.clone();
//! let (pleg, driver) = Pleg::builder().connector(move || simulated.channel()).build()?;
//! tokio::spawn(driver.run());
//! let first = pleg.watch(WatchFrom::Snapshot)?.next().await;
//! assert!(first.is_some());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "simulate"))]
//! # fn main() {}
//! ```
//!
//! # Where to look next
//!
//! - [`Pleg`] is the handle: watch, read the cache, ask for a status that is newer than a mark.
//! - [`lifecycle`] has the values: events, statuses, phases, and the rules by which claims merge.
//! - [`engine`] has the decisions, as one state machine without I/O, clocks or tokio.
//! - [`cache`] and [`feed`] are what readers hold; [`cri`] speaks to the runtime.
//! - [`verify`] audits a runtime's event stream against its lists.
//! - `simulate` is a CRI runtime of our own to test agents against.
//!
//! The default features build the `pleg` command too; `default-features = false` is the library.
#![forbid(unsafe_code)]

pub mod backoff;
pub mod cache;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod clock;
pub mod cri;
pub mod engine;
pub mod feed;
mod law;
pub mod lifecycle;
mod pleg;
#[cfg(feature = "scenarios")]
pub mod scenario;
#[cfg(feature = "daemon")]
pub mod serve;
#[cfg(feature = "simulate")]
pub mod simulate;
pub mod verify;

pub use pleg::{
    BOUNDS, BuildError, Builder, Driver, Durations, EngineStats, InFlight, Measures, ModeStep,
    Pleg, Stats, Stopped,
};

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
