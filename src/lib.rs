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
//! Without a runtime at hand, follow a simulated one (feature `simulate`): put
//! `.connector(move || runtime.channel())` in the endpoint's place.
//!
//! ```
//! # #[cfg(feature = "simulate")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use futures::StreamExt;
//! # use pleg::{Pleg, feed::WatchFrom, simulate::SimulatedRuntime};
//! let runtime = SimulatedRuntime::builder().busy_node().build();
//! let _churn = runtime.spawn_churn();
//! let (pleg, driver) = Pleg::builder().connector(move || runtime.channel()).build()?;
//! # tokio::spawn(driver.run());
//! # let first = pleg.watch(WatchFrom::Snapshot)?.next().await;
//! # assert!(first.is_some());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "simulate"))]
//! # fn main() {}
//! ```
//!
//! # Where to look next
//!
//! | to | see |
//! |---|---|
//! | watch, read the cache, ask for a status newer than a mark, ask for health | [`Pleg`] |
//! | set it up, with the kubelet's names and values | [`Builder`] |
//! | know what an event and a status hold | [`lifecycle::LifecycleEvent`], [`lifecycle::PodStatus`] |
//! | know how a subscription begins, resumes and falls behind | [`feed`] |
//! | know how fresh a cached status is | [`cache`] |
//! | know what each mode means, and what "healthy" | [`engine::Mode`], [`engine::Health`] |
//! | read counts and durations | [`Stats`], [`stats`] |
//! | test an agent without a runtime | `simulate` |
//! | play a story or a recording | `scenario` |
//! | serve many agents from one daemon, or ask one | `serve` |
//! | audit a runtime's event stream | [`verify`] |
//! | bring your own I/O, or read the decisions | [`engine`] |
//!
//! `docs/` in the repository explains the model, what differs from the kubelet, and how to operate it.
//!
//! # Features
//!
//! None are needed to follow a runtime. `simulate` adds the simulated runtime, `scenarios` the player,
//! `daemon` what `pleg run` serves and the client of it. `cli`, the default together with `simulate`,
//! is the `pleg` command: `default-features = false` leaves it out.
//!
//! # What may change
//!
//! What is read may grow: structs and enums that this crate hands out are `#[non_exhaustive]`. What is
//! handed *in* to [`engine`] and [`verify`] is not, on purpose: an input or output that a caller
//! overlooked would break their contracts, so that the compiler had better say so. Durations are
//! [`std::time::Duration`]; moments are nanoseconds since 1970 on the wall clock where they are for people
//! ([`lifecycle::UnixNanos`]) and points in the driver's own order where something depends on them
//! ([`lifecycle::Mark`]). Each operation has an error type of its own.
#![forbid(unsafe_code)]

mod backoff;
pub mod cache;
// The command is a binary of this crate; its parts are no library.
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

pub use pleg::{BuildError, Builder, Driver, Pleg, Stats, Stopped};

/// What [`Stats`] is made of: the engine's counts, durations as histograms, what is out.
pub mod stats {
    pub use crate::pleg::{BOUNDS, Durations, EngineStats, InFlight, Measures, ModeStep};
}

/// The README's and the guide's programs compile, and those of the guide run.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/from-the-kubelet.md")]
    struct FromTheKubelet;
    #[doc = include_str!("../docs/testing-agents.md")]
    struct TestingAgents;
}
