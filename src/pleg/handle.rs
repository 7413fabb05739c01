//! The handle: what an embedder holds, clones and asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, StreamExt};
use thiserror::Error;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_stream::wrappers::BroadcastStream;

use super::Builder;
use super::command::Command;
use super::measures::Measures;
use crate::cache::{Cache, Listing};
use crate::clock::Clock;
use crate::cri::{MethodAndCode, ReaderCounts};
use crate::engine::{
    Counters, Freshness, Health, Mode, ModeChange, ReaderId, Reading, RuntimeVersion, SubjectEvent,
};
use crate::feed::{FeedHandle, FeedSnapshot, FeedStats, Subscription, WatchError, WatchFrom};
use crate::lifecycle::{Mark, Now, PodUid, Revision};

/// The driver has ended or was dropped: nothing is known of the runtime any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the driver has stopped")]
pub struct Stopped;

/// The engine's counts and figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStats {
    /// What it counted since it began.
    pub counters: Counters,
    /// The runtime, as it last answered `Version`.
    pub runtime: Option<RuntimeVersion>,
    /// The kinds of event that this runtime is known never to send.
    pub known_gaps: Vec<SubjectEvent>,
    /// Pods with a subject that may change without an event, and so are looked at now and then.
    pub unsettled_pods: usize,
    /// Removed subjects that are remembered.
    pub tombstones: usize,
}

/// All counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The engine's.
    pub engine: EngineStats,
    /// The feed's.
    pub feed: FeedStats,
    /// The stream reader's.
    pub reader: ReaderCounts,
    /// The calls that have ended, by method and code; how streams ended is the engine's to tell.
    pub rpcs: BTreeMap<MethodAndCode, u64>,
    /// What was measured: durations, ages, changes of mode, and what is out.
    pub measures: Measures,
    /// Log lines that were left out because one like them had just been written.
    pub notes_suppressed: u64,
}

/// A handle to a pod lifecycle event generator. Clones lead to the same one.
///
/// What waits on the driver waits for as long as nobody runs it.
#[derive(Clone, Debug)]
pub struct Pleg {
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) cache: Cache,
    pub(super) feed: FeedHandle,
    pub(super) clock: Clock,
    pub(super) readers: Arc<AtomicU64>,
    pub(super) mode: watch::Receiver<Mode>,
    /// Only to subscribe to; the driver has the sender.
    pub(super) mode_changes: broadcast::WeakSender<ModeChange>,
    pub(super) relisted: watch::Receiver<Option<Mark>>,
}

impl Pleg {
    /// Begins to build one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Subscribes to the lifecycle events.
    ///
    /// # Errors
    ///
    /// If the feed cannot begin there, or has ended.
    pub fn watch(&self, from: WatchFrom) -> Result<Subscription, WatchError> {
        self.feed.watch(from, self.clock.now().wall)
    }

    /// The present phase of everything, as events, and after which revision to follow: for a server
    /// that keeps its own queue for its watchers.
    #[must_use]
    pub fn snapshot(&self) -> FeedSnapshot {
        self.feed.snapshot(self.clock.now().wall)
    }

    /// Every pod, with the revision to watch after.
    #[must_use]
    pub fn listing(&self) -> Listing {
        self.feed.listing()
    }

    /// The revision of the newest event that was told.
    #[must_use]
    pub fn told_up_to(&self) -> Revision {
        self.feed.told_up_to()
    }

    /// The newest revision that anybody can have been told, by the feed or by the cache.
    #[must_use]
    pub fn newest_revision(&self) -> Revision {
        self.feed.newest_revision()
    }

    /// What the feed has done so far. Answers without the driver.
    #[must_use]
    pub fn feed_stats(&self) -> FeedStats {
        self.feed.stats()
    }

    /// The moment on the driver's clocks.
    #[must_use]
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// The cache, to read and clone.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// A mark: a point in the driver's order that lies after everything it has taken so far. Whoever
    /// changes something on the node, takes a mark and then asks [`Pleg::get_newer_than`] it, sees
    /// the change.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn mark(&self) -> Result<Mark, Stopped> {
        self.ask(Command::Mark).await
    }

    /// A pod as a read shows it that began at or after `newer_than`. Causes such a read if none is
    /// due. Dropping the future takes the wish back.
    ///
    /// It waits for as long as the runtime does not answer; the caller sets the limit.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn get_newer_than(
        &self,
        uid: PodUid,
        newer_than: Mark,
        freshness: Freshness,
    ) -> Result<Reading, Stopped> {
        let mut wish = Wish {
            commands: &self.commands,
            reader: ReaderId(self.readers.fetch_add(1, Ordering::Relaxed)),
            open: true,
        };
        let reader = wish.reader;
        let reading = self
            .ask(|reply| Command::Read {
                reader,
                uid,
                newer_than,
                freshness,
                reply,
            })
            .await;
        wish.open = false;
        reading
    }

    /// Waits until a full relist that began at or after a mark has been applied; with
    /// [`Mark::default`], until the first has. Gives the mark at which it began.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn relisted_since(&self, mark: Mark) -> Result<Mark, Stopped> {
        let mut relisted = self.relisted.clone();
        let seen = relisted
            .wait_for(|begun| begun.is_some_and(|begun| begun >= mark))
            .await;
        seen.ok().and_then(|begun| *begun).ok_or(Stopped)
    }

    /// Has a pod looked at now: somebody acted on it. Returns once the driver has taken the wish.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn request_relist(&self, uid: PodUid) -> Result<(), Stopped> {
        self.ask(|reply| Command::Relist(Some(uid), reply)).await
    }

    /// Has the whole node relisted now. Returns once the driver has taken the wish.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn request_full_relist(&self) -> Result<(), Stopped> {
        self.ask(|reply| Command::Relist(None, reply)).await
    }

    /// Has a pod inspected; one `PodSync` tells when that was done. Returns once the driver has taken
    /// the wish.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn request_reinspect(&self, uid: PodUid) -> Result<(), Stopped> {
        self.ask(|reply| Command::Reinspect(uid, reply)).await
    }

    /// Whether relists succeed often enough. Asking changes nothing.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn health(&self) -> Result<Health, Stopped> {
        self.ask(Command::Health).await
    }

    /// How the runtime is followed at present; the last mode, once the driver has ended.
    #[must_use]
    pub fn mode(&self) -> Mode {
        *self.mode.borrow()
    }

    /// Changes of mode from now on. A reader that falls 64 changes behind misses the oldest. Ends
    /// with the driver.
    pub fn modes(&self) -> impl Stream<Item = ModeChange> + Send + Unpin + use<> {
        let changes = match self.mode_changes.upgrade() {
            Some(sender) => sender.subscribe(),
            // The driver has ended: a channel without a sender ends at once.
            None => broadcast::channel(1).1,
        };
        BroadcastStream::new(changes).filter_map(|change| std::future::ready(change.ok()))
    }

    /// All counts so far.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn stats(&self) -> Result<Stats, Stopped> {
        self.ask(Command::Stats).await
    }

    /// Stops the driver and waits until it has ended: after that there is no call to the runtime and
    /// no delivery, and the stream's reader has ended. Subscribers take what had been delivered to
    /// them, then see the end of their stream.
    pub async fn shutdown(&self) {
        // It fails only if the driver has ended already.
        let _ = self.commands.send(Command::Shutdown);
        self.commands.closed().await;
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}

/// A read that is wanted until it is answered or given up.
struct Wish<'a> {
    commands: &'a mpsc::UnboundedSender<Command>,
    reader: ReaderId,
    open: bool,
}

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        if self.open {
            // Once the driver has ended there is nothing to take back.
            let _ = self.commands.send(Command::CancelRead(self.reader));
        }
    }
}
