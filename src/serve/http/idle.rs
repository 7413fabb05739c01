//! Which connections wait for a request, and since when: whoever waits longest gives up its place first.
//!
//! A connection is idle from its beginning, and again once an answer has been sent; a head that comes
//! slowly is none yet. It decides nothing: [`connections`](super::connections) asks for a place only when
//! there is none.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

/// All idle connections of a server. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Idle(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    /// In the order in which they became idle.
    waiting: BTreeMap<u64, Arc<Notify>>,
}

impl Idle {
    /// A new connection, idle.
    pub(super) fn sit_down(&self) -> Seat {
        let seat = Arc::new(Sitting {
            idle: self.clone(),
            dismissal: Arc::default(),
            number: Mutex::default(),
        });
        seat.wait();
        Seat(seat)
    }

    /// Has the connection that has been idle longest end. Whether there is one.
    pub(super) fn dismiss_longest(&self) -> bool {
        let longest = locked(&self.0).waiting.pop_first();
        longest.is_some_and(|(_, dismissal)| {
            dismissal.notify_one();
            true
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds one of these locks can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection's: idle or busy, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat(Arc<Sitting>);

#[derive(Debug)]
struct Sitting {
    idle: Idle,
    dismissal: Arc<Notify>,
    /// Its number among those that wait, while it does.
    number: Mutex<Option<u64>>,
}

impl Sitting {
    fn wait(&self) {
        self.stop_waiting();
        let mut queue = locked(&self.idle.0);
        let number = queue.next;
        queue.next += 1;
        queue.waiting.insert(number, Arc::clone(&self.dismissal));
        drop(queue);
        *locked(&self.number) = Some(number);
    }

    fn stop_waiting(&self) {
        if let Some(number) = locked(&self.number).take() {
            locked(&self.idle.0).waiting.remove(&number);
        }
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        self.stop_waiting();
    }
}

impl Seat {
    /// Resolves when somebody else is to have the place.
    pub(super) async fn dismissed(&self) {
        self.0.dismissal.notified().await;
    }

    /// A request has come: not idle until what is returned is dropped.
    pub(super) fn busy(&self) -> Busy {
        self.0.stop_waiting();
        Busy(Arc::downgrade(&self.0))
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Busy(Weak<Sitting>);

impl Busy {
    /// An answer's body that keeps the connection busy until all of it has been taken.
    pub(super) fn until_sent(self, body: Body) -> Answer {
        Answer { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(seat) = self.0.upgrade() {
            seat.wait();
        }
    }
}

/// The body of an answer that is being sent.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
