//! One open event stream: the async face of the event queue.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::{FutureExt as _, Stream};
use tokio::time::Sleep;
use tonic::Status;

use super::SimulatedRuntime;
use super::message::Message;
use super::queue::{Next, StreamId};

/// Who waits for each stream's next message.
#[derive(Debug, Default)]
pub(super) struct Wakers(BTreeMap<StreamId, Waker>);

impl Wakers {
    /// Wakes the streams that `has_news` names.
    pub(super) fn wake(&mut self, has_news: impl Fn(StreamId) -> bool) {
        for (_, waker) in self.0.extract_if(.., |stream, _| has_news(*stream)) {
            waker.wake();
        }
    }

    pub(super) fn wake_all(&mut self) {
        self.wake(|_| true);
    }
}

/// An open event stream. Dropping it is what a cancelled call looks like to the runtime.
pub(super) struct EventStream {
    runtime: SimulatedRuntime,
    id: StreamId,
    has_ended: bool,
    /// Until a late message is due.
    nap: Option<Pin<Box<Sleep>>>,
}

/// tokio's timers know no finer step.
const FINEST: Duration = Duration::from_millis(1);

impl SimulatedRuntime {
    pub(super) fn open_stream(&self) -> EventStream {
        EventStream {
            runtime: self.clone(),
            id: self.change(|state, now| state.queue.open(now.mono)),
            has_ended: false,
            nap: None,
        }
    }
}

impl Stream for EventStream {
    type Item = Result<Arc<Message>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let id = self.id;
        loop {
            let (next, nap) = self.runtime.change(|state, now| {
                let next = if state.is_frozen {
                    Next::Nothing
                } else {
                    state.queue.next(id)
                };
                if next == Next::Nothing {
                    state.wakers.0.insert(id, cx.waker().clone());
                }
                let due = state.stream_faults.next_due();
                (next, due.map(|due| due.since(now.mono)))
            });
            match next {
                Next::Message(message) => return Poll::Ready(Some(Ok(message))),
                Next::End(end) => {
                    self.has_ended = true;
                    return Poll::Ready(end.status().map(Err));
                }
                Next::Nothing => {}
            }
            self.nap = nap.map(|nap| Box::pin(tokio::time::sleep(nap.max(FINEST))));
            let nap_is_over = |nap: &mut Pin<Box<Sleep>>| nap.poll_unpin(cx).is_ready();
            if !self.nap.as_mut().is_some_and(nap_is_over) {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let id = self.id;
        self.runtime.change(|state, _| {
            state.wakers.0.remove(&id);
            state.queue.abandon(id);
        });
    }
}
