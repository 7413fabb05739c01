//! The feeder: it carries events from the feed into the ring.
//!
//! It is a subscriber of the feed like any other, so the driver never waits for it; and like any other
//! it is folded for if it falls behind. It looks for that after each batch, before it publishes, and
//! then has every watcher list again: what it was not told, nobody is to believe they were.

use std::sync::Arc;

use futures::StreamExt;

use super::position::Epoch;
use super::ring::{Ring, RingLimits, RingWriter, ring};
use crate::Pleg;
use crate::feed::{Subscription, WatchError, WatchFrom};
use crate::lifecycle::LifecycleEvent;

/// How many events are carried at once.
const BATCH: usize = 512;

/// Carries events from the feed into the ring, as long as it is run.
#[derive(Debug)]
pub struct Feeder {
    pleg: Pleg,
    feed: Subscription,
    ring: RingWriter,
    folded: u64,
}

impl Feeder {
    /// Subscribes, and makes the ring.
    pub(super) fn begin(
        pleg: &Pleg,
        epoch: Epoch,
        limits: RingLimits,
    ) -> Result<(Self, Ring), WatchError> {
        let feed = pleg.watch(WatchFrom::Now)?;
        let (writer, reader) = ring(epoch, limits, pleg.told_up_to());
        let feeder = Self {
            pleg: pleg.clone(),
            feed,
            ring: writer,
            folded: 0,
        };
        Ok((feeder, reader))
    }

    /// Carries events until the driver has ended and all have been carried. Dropping the future ends
    /// the ring's watchers too.
    pub async fn run(mut self) {
        let mut batch = Vec::new();
        while let Some(first) = self.feed.next().await {
            batch.push(first);
            while batch.len() < BATCH
                && let Some(event) = self.feed.try_next()
            {
                batch.push(event);
            }
            self.carry(&mut batch);
            // A flood must not keep the runtime from anybody else.
            tokio::task::yield_now().await;
        }
    }

    fn carry(&mut self, batch: &mut Vec<Arc<LifecycleEvent>>) {
        let counters = self.feed.stats().counters;
        let folded = counters.folded + counters.folded_whole;
        if folded != self.folded {
            self.folded = folded;
            tracing::warn!("Events came faster than they could be kept; watchers list again");
            self.ring.gap(self.pleg.told_up_to());
        }
        self.ring.publish(batch.drain(..));
    }
}
