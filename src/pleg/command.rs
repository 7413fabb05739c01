//! What handles ask of the driver.
//!
//! Each command but a cancellation has a caller who waits for its reply, and each cancellation had a
//! read, so the channel that carries them needs no bound of its own.

use tokio::sync::oneshot;

use super::handle::Stats;
use crate::engine::{Freshness, Health, ReaderId, Reading};
use crate::lifecycle::{Mark, PodUid};

/// A command, with where its reply goes.
#[derive(Debug)]
pub(super) enum Command {
    /// Give a mark.
    Mark(oneshot::Sender<Mark>),
    /// Read a pod from a read begun at or after a mark.
    Read {
        reader: ReaderId,
        uid: PodUid,
        newer_than: Mark,
        freshness: Freshness,
        reply: oneshot::Sender<Reading>,
    },
    /// The reader gave up.
    CancelRead(ReaderId),
    /// Relist a pod, or the node. The reply tells that the wish was taken.
    Relist(Option<PodUid>, oneshot::Sender<()>),
    /// Inspect a pod and tell of it. The reply tells that the wish was taken.
    Reinspect(PodUid, oneshot::Sender<()>),
    /// Give the health.
    Health(oneshot::Sender<Health>),
    /// Give the counters.
    Stats(oneshot::Sender<Stats>),
    /// Stop.
    Shutdown,
}
