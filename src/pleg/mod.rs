//! The shell: it joins the engine to a runtime, a cache and a feed, and does nothing else.
//!
//! [`Pleg::builder`] gives a [`Pleg`], the handle to clone and ask, and a [`Driver`], a future that the
//! embedder runs where it likes. Nothing works until it does; what is spawned is the connection, and
//! the stream's reader on a thread of its own. The driver is the one task that owns the engine, the
//! cache's writer and the feed: it carries inputs in, one at a time, and outputs out, in order. What
//! happens and when is the engine's to decide.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use futures::StreamExt;
//! use pleg::Pleg;
//! use pleg::feed::WatchFrom;
//!
//! let (pleg, driver) = Pleg::builder()
//!     .endpoint("unix:///run/containerd/containerd.sock".parse()?)
//!     .build()?;
//! tokio::spawn(driver.run());
//! let mut events = pleg.watch(WatchFrom::Snapshot)?;
//! while let Some(event) = events.next().await {
//!     println!("{} {}/{}", event.kind, event.pod.namespace, event.pod.name);
//! }
//! # Ok(())
//! # }
//! ```

mod builder;
mod command;
mod driver;
mod handle;
mod measures;
mod notes;
mod tap;
#[cfg(test)]
mod tests;

pub use builder::{BuildError, Builder};
pub use driver::Driver;
pub use handle::{EngineStats, Pleg, Stats, Stopped};
pub use measures::{BOUNDS, Durations, InFlight, Measures, ModeStep};
