//! The shell: it joins the engine to a runtime, a cache and a feed, and does nothing else.
//!
//! [`Pleg::builder`] gives a [`Pleg`], the handle to clone and ask, and a [`Driver`], a future that the
//! embedder runs where it likes; nothing works until it does, and nothing is spawned but the stream's
//! reader on its thread. The driver is the one task that owns the engine, the cache's writer and the
//! feed: it carries inputs in, one at a time, and outputs out, in order. What happens and when is the
//! engine's to decide.

mod builder;
mod command;
mod driver;
mod handle;
mod notes;
mod tap;
#[cfg(test)]
mod tests;

pub use crate::cri::Tapped;
pub use builder::{BuildError, Builder};
pub use driver::Driver;
pub use handle::{Pleg, Stats, Stopped};
