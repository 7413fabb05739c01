//! The node daemon: one driver, many readers.
//!
//! [`Serving`] is what every transport holds: the handle, the ring, the watchers, the status. The
//! driver runs on a thread of its own with a runtime of its own, and so does the event stream's reader,
//! so that no client can slow either. A *feeder* carries events from the feed into the ring, which
//! watchers read through cursors: whoever stalls costs nothing, and whoever comes back gets exactly
//! what followed or is told to list again. Nothing here decides what is told, or changes a node.
//!
//! Embedders have [`run`] with a [`Daemon`], and [`grpc::DaemonClient`] to ask one. What the transports are
//! made of is shown to nobody else's code, but for [`Beside`], which is handed a `Serving`.

mod daemon;
mod feeder;
pub mod grpc;
pub mod http;
mod metrics;
mod notify;
mod position;
mod ring;
pub mod status;
pub mod vitals;
mod watchdog;
mod watchers;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use serde::Serialize;

pub use daemon::{Beside, Daemon, DaemonConfig, DaemonError, HttpConfig, run};
#[doc(hidden)]
pub use feeder::Feeder;
#[doc(hidden)]
pub use position::{Epoch, EpochMark, Position, PositionError};
pub use ring::RingLimits;
#[doc(hidden)]
pub use ring::{
    Cursor, DEFAULT_BYTES, DEFAULT_EVENTS, ListAgain, Ring, RingEvent, RingStats, RingWriter,
    event_json, ring,
};
#[doc(hidden)]
pub use watchers::{
    Client, Told, WatchEnd, WatchRefused, WatchStart, Watcher, WatcherTotals, Watchers,
};

use crate::Pleg;
use crate::feed::{FeedSnapshot, ToldAhead};
use crate::lifecycle::{Mark, Now, PodStatus};
use status::{DriverAnswer, Notebook, Sources, Status};

/// How long a status waits for the driver.
const STATUS_DEADLINE: Duration = Duration::from_secs(1);

/// Limits of what is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What the ring keeps.
    pub ring: RingLimits,
    /// Watchers at a time, over all transports.
    pub watchers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ring: RingLimits::default(),
            watchers: 256,
        }
    }
}

/// Writes a recording of the last minutes: what the flight recorder has.
pub trait LastMinutes: Send + Sync {
    /// The recording of at least the last `span`, as far as it is kept: JSON Lines.
    fn recording(
        &self,
        span: Duration,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send + '_>>;
}

/// What every transport holds. A clone is the same daemon.
#[doc(hidden)]
#[derive(Clone)]
pub struct Serving {
    inner: Arc<Inner>,
}

struct Inner {
    pleg: Pleg,
    ring: Ring,
    watchers: Watchers,
    notebook: Notebook,
    started: Now,
    last_minutes: Option<Box<dyn LastMinutes>>,
    last_answer: Mutex<Option<DriverAnswer>>,
    /// The question that the driver has not answered yet. All who ask meanwhile share it: a driver
    /// that hangs must not be asked more and more.
    asking: Mutex<Option<Shared<BoxFuture<'static, bool>>>>,
}

/// Every pod, and the position to watch after: whoever does so misses nothing that is not in the list,
/// but may be told of a change that is.
#[doc(hidden)]
#[derive(Clone, Debug, Serialize)]
pub struct PodList {
    /// The pods, in order of uid.
    pub items: Vec<Arc<PodStatus>>,
    /// What to watch after.
    pub position: Position,
}

impl Serving {
    /// Serves a handle. The feeder is to be run ([`Feeder::run`]) beside the driver; made before the
    /// driver runs, it misses nothing. `epoch` must differ from that of any earlier life.
    ///
    /// # Errors
    ///
    /// If the driver has ended.
    pub fn new(
        pleg: Pleg,
        epoch: Epoch,
        limits: Limits,
        notebook: Notebook,
        last_minutes: Option<Box<dyn LastMinutes>>,
    ) -> Result<(Self, Feeder), crate::feed::WatchError> {
        let (feeder, ring) = Feeder::begin(&pleg, epoch, limits.ring)?;
        let inner = Inner {
            started: pleg.now(),
            pleg,
            ring,
            watchers: Watchers::new(limits.watchers),
            notebook,
            last_minutes,
            last_answer: Mutex::default(),
            asking: Mutex::default(),
        };
        let serving = Self {
            inner: Arc::new(inner),
        };
        Ok((serving, feeder))
    }

    /// The handle.
    #[must_use]
    pub fn pleg(&self) -> &Pleg {
        &self.inner.pleg
    }

    /// The ring.
    #[must_use]
    pub fn ring(&self) -> &Ring {
        &self.inner.ring
    }

    /// The watchers.
    #[must_use]
    pub fn watchers(&self) -> &Watchers {
        &self.inner.watchers
    }

    /// This life of the daemon.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.inner.ring.epoch()
    }

    /// The flight recorder, if one runs.
    #[must_use]
    pub fn last_minutes(&self) -> Option<&dyn LastMinutes> {
        self.inner.last_minutes.as_deref()
    }

    /// Every pod, and the position to watch after.
    #[must_use]
    pub fn list(&self) -> PodList {
        let listing = self.inner.pleg.listing();
        PodList {
            items: listing.pods.into_iter().map(|pod| pod.status).collect(),
            position: Position {
                epoch: self.epoch(),
                revision: listing.revision,
            },
        }
    }

    /// Whether a mark of this epoch can have been handed out. What is newer than one of the future would be
    /// read for again and again, until that has come.
    ///
    /// # Errors
    ///
    /// It lies in the future.
    pub fn check(&self, mark: Mark) -> Result<(), PositionError> {
        if mark.0.at > self.inner.pleg.now().mono {
            return Err(PositionError::Malformed);
        }
        Ok(())
    }

    /// Lets somebody watch.
    ///
    /// # Errors
    ///
    /// If there are too many already, or they cannot begin there.
    pub fn watch(&self, start: WatchStart, client: Client) -> Result<Watcher, WatchRefused> {
        let Inner {
            pleg,
            ring,
            watchers,
            ..
        } = &*self.inner;
        let epoch = ring.epoch();
        let (position, snapshot) = match start {
            WatchStart::Snapshot => {
                let snapshot = pleg.snapshot();
                let revision = snapshot.after;
                (Position { epoch, revision }, Some(snapshot))
            }
            WatchStart::Now => {
                let revision = pleg.newest_revision();
                let nothing = FeedSnapshot {
                    events: Vec::new(),
                    after: revision,
                    told_ahead: ToldAhead::default(),
                };
                (Position { epoch, revision }, Some(nothing))
            }
            WatchStart::After(position) => (position, None),
        };
        let cursor = ring
            .after(position, pleg.newest_revision())
            .inspect_err(|why| watchers.count(*why))?;
        watchers.begin(client, pleg.now().wall, cursor, snapshot)
    }

    /// The status. Answers within a second or so, whatever the driver does.
    pub async fn status(&self) -> Status {
        let inner = &*self.inner;
        let answered = tokio::time::timeout(STATUS_DEADLINE, self.ask_driver()).await;
        let answers_now = matches!(answered, Ok(Some(())));
        let answer = self.last_answer();
        Status::new(Sources {
            answer: answer.as_ref(),
            answers_now,
            mode: inner.pleg.mode(),
            noted: &inner.notebook.noted(),
            subscribers: inner.watchers.reports(&inner.ring),
            ring: inner.ring.stats(),
            pods: inner.pleg.cache().len(),
            epoch: self.epoch(),
            started: inner.started,
            now: inner.pleg.now(),
        })
    }

    /// What the driver last answered, be it a while ago; for metrics.
    #[must_use]
    pub fn last_answer(&self) -> Option<DriverAnswer> {
        let held = self.inner.last_answer.lock();
        held.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the driver for its health and counts, and keeps the answer. `None` once it has ended.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn ask_driver(&self) -> Option<()> {
        let asking = {
            let held = self.inner.asking.lock();
            let mut held = held.unwrap_or_else(PoisonError::into_inner);
            match &*held {
                Some(asking) if asking.peek().is_none() => asking.clone(),
                _ => held.insert(self.ask_anew()).clone(),
            }
        };
        asking.await.then_some(())
    }

    /// A question of its own, in a task, so that the answer is taken when it comes.
    fn ask_anew(&self) -> Shared<BoxFuture<'static, bool>> {
        let pleg = self.inner.pleg.clone();
        // Weak: a driver that hangs must not keep all of this.
        let inner = Arc::downgrade(&self.inner);
        let task = tokio::spawn(async move {
            let (Ok(health), Ok(stats)) = (pleg.health().await, pleg.stats().await) else {
                return false;
            };
            let Some(inner) = inner.upgrade() else {
                return false;
            };
            let answer = DriverAnswer {
                health,
                stats,
                at: pleg.now().mono,
            };
            let held = inner.last_answer.lock();
            *held.unwrap_or_else(PoisonError::into_inner) = Some(answer);
            true
        });
        task.map(|answered| answered.unwrap_or(false))
            .boxed()
            .shared()
    }
}
