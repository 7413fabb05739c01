//! A subscription: one subscriber's queue as a stream.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::Stream;

use super::queue::Queue;
use super::{Hub, SubscriberStats};
use crate::lifecycle::{LifecycleEvent, PodUid, SubjectId};

/// A stream of lifecycle events. It never fails; it ends when the driver has ended and everything
/// that was delivered before has been taken. Dropping it unsubscribes.
#[derive(Debug)]
pub struct Subscription {
    id: u64,
    slot: Arc<Slot>,
    hub: Arc<Hub>,
}

/// Where the feed and the subscription meet.
#[derive(Debug)]
pub(super) struct Slot {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    queue: Queue,
    closed: bool,
    /// Set while the subscriber sleeps; taken by whoever wakes it.
    waker: Option<Waker>,
}

impl Subscription {
    pub(super) fn new(id: u64, slot: Arc<Slot>, hub: Arc<Hub>) -> Self {
        Self { id, slot, hub }
    }

    /// The next event if one waits.
    #[must_use]
    pub fn try_next(&mut self) -> Option<Arc<LifecycleEvent>> {
        self.slot.lock().queue.pop()
    }

    /// How this subscriber does.
    #[must_use]
    pub fn stats(&self) -> SubscriberStats {
        self.slot.stats(self.id)
    }

    #[cfg(test)]
    pub(super) fn fold_entries(&self) -> (usize, usize) {
        self.slot.lock().queue.fold_entries()
    }
}

impl Stream for Subscription {
    type Item = Arc<LifecycleEvent>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut inner = self.slot.lock();
        if let Some(event) = inner.queue.pop() {
            return Poll::Ready(Some(event));
        }
        if inner.closed {
            return Poll::Ready(None);
        }
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.leave(self.id);
    }
}

impl Slot {
    pub(super) fn new(queue: Queue) -> Self {
        Self {
            inner: Mutex::new(Inner {
                queue,
                closed: false,
                waker: None,
            }),
        }
    }

    /// Queues a batch. Whoever called must wake the waker that is returned.
    pub(super) fn offer(
        &self,
        batch: &[Arc<LifecycleEvent>],
        is_present: &dyn Fn(&PodUid) -> bool,
        is_shown: &dyn Fn(&PodUid, &SubjectId) -> bool,
    ) -> Option<Waker> {
        let mut inner = self.lock();
        for event in batch {
            inner.queue.offer(event, is_present);
        }
        inner.queue.forget_gone(is_shown);
        if inner.queue.len() == 0 {
            return None;
        }
        inner.waker.take()
    }

    /// Lets the stream end once the queue is empty. Whoever called must wake the waker.
    pub(super) fn close(&self) -> Option<Waker> {
        let mut inner = self.lock();
        inner.closed = true;
        inner.waker.take()
    }

    pub(super) fn stats(&self, id: u64) -> SubscriberStats {
        let inner = self.lock();
        SubscriberStats {
            id,
            lag: inner.queue.len(),
            counters: inner.queue.counters,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing that holds the lock can panic half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
