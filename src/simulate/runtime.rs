//! The handle on a simulated runtime: its state, and how that changes.
//!
//! It owns the world, the event queue and the faults behind one lock that is never held across a
//! wait. Every operation takes the moment from the runtime's clock, changes the world and hands what
//! that tells to the streams. Nothing here starts a task. The operations themselves are in
//! `operations.rs` and `trouble.rs`.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::events::Wakers;
use super::fault::Faults;
use super::history::History;
use super::listing::Listing;
use super::message::{Message, Messages};
use super::queue::EventQueue;
use super::stream_fault::StreamFaults;
use super::subject::StreamMessage;
use super::{
    Builder, Character, ChurnPlan, EventCounts, EventDelivery, EventSupport, FaultId, RpcCounts,
    World,
};
use crate::lifecycle::{Mono, Now, UnixNanos};

/// Reads both clocks.
pub(super) type ReadClock = Arc<dyn Fn() -> Now + Send + Sync>;

/// A CRI runtime without processes: it serves the read half of CRI, and does what it is told to.
///
/// A clone is another handle on the same runtime. Operations are at once; on a runtime that blocks
/// its producers, [`unblocked`](Self::unblocked) is what the caller of a real one would wait for.
#[derive(Clone)]
pub struct SimulatedRuntime {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    state: Mutex<State>,
    clock: ReadClock,
    pub(super) churn: ChurnPlan,
    condition: watch::Sender<Condition>,
    /// Grows whenever all connections are cut.
    pub(super) cuts: watch::Sender<u64>,
    /// What serves in-memory connections, if the runtime was built inside a tokio runtime.
    pub(super) tokio: Option<tokio::runtime::Handle>,
}

/// All that calls and operations share.
pub(super) struct State {
    pub(super) world: World,
    pub(super) character: Character,
    pub(super) queue: EventQueue,
    pub(super) wakers: Wakers,
    pub(super) faults: Faults,
    pub(super) stream_faults: StreamFaults,
    /// Faults that were ever put in.
    pub(super) faults_given: u64,
    pub(super) history: History,
    pub(super) listing: Listing,
    /// The last messages that operations told, whatever became of them.
    pub(super) recent: VecDeque<Arc<Message>>,
    pub(super) calls: RpcCounts,
    pub(super) is_up: bool,
    pub(super) is_frozen: bool,
}

/// What callers wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) is_up: bool,
    pub(super) is_frozen: bool,
    pub(super) blocked_producers: usize,
    pub(super) open_streams: usize,
    /// Grows whenever faults of calls are lifted.
    pub(super) lifts: u64,
}

/// The most messages that can be replayed: as many as containerd's queue holds.
const RECENT: usize = 1000;

impl State {
    pub(super) fn tell(&mut self, now: Now, told: impl IntoIterator<Item = Message>) {
        for message in told {
            let message = Arc::new(message);
            self.queue.counts.told += 1;
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(message.clone());
            let passage = self.stream_faults.pass(now.mono, message);
            self.queue.counts.withheld += u64::from(passage.lost);
            self.queue.counts.duplicated += u64::from(passage.duplicates);
            if passage.held {
                self.queue.counts.held += 1;
                // Streams must know when it is due.
                self.wakers.wake_all();
            }
            self.send(now.mono, passage.on);
        }
    }

    /// Hands messages to the queue.
    pub(super) fn send(&mut self, now: Mono, messages: Messages) {
        for message in messages {
            if self.is_up && matches!(self.character.events, EventSupport::Served(_)) {
                self.queue.publish(now, message);
            } else {
                self.queue.counts.dropped += 1;
            }
        }
    }

    fn send_what_is_due(&mut self, now: Mono) {
        for (due, message) in self.stream_faults.due(now) {
            self.send(due, vec![message]);
        }
    }

    /// Brings the history and the encoded lists up to date with the world.
    fn note_changes(&mut self, now: Mono) {
        let former = self.world.take_journal();
        self.listing.forget(&former);
        self.history.note(now, former);
    }
}

impl SimulatedRuntime {
    /// Starts to describe a runtime.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn new(
        mut world: World,
        character: Character,
        clock: ReadClock,
        churn: ChurnPlan,
        history: Duration,
    ) -> Self {
        world.keep_journal();
        let state = State {
            world,
            queue: EventQueue::new(delivery(&character)),
            character,
            wakers: Wakers::default(),
            faults: Faults::default(),
            stream_faults: StreamFaults::default(),
            faults_given: 0,
            history: History::new(history),
            listing: Listing::default(),
            recent: VecDeque::new(),
            calls: RpcCounts::default(),
            is_up: true,
            is_frozen: false,
        };
        let condition = Condition {
            is_up: true,
            is_frozen: false,
            blocked_producers: 0,
            open_streams: 0,
            lifts: 0,
        };
        Self {
            shared: Arc::new(Shared {
                condition: watch::Sender::new(condition),
                state: Mutex::new(state),
                clock,
                churn,
                cuts: watch::Sender::new(0),
                tokio: tokio::runtime::Handle::try_current().ok(),
            }),
        }
    }

    /// The moment by the runtime's wall clock.
    #[must_use]
    pub fn now(&self) -> UnixNanos {
        (self.shared.clock)().wall
    }

    pub(super) fn mono(&self) -> Mono {
        (self.shared.clock)().mono
    }

    /// Reads the world as it is. `read` runs under the runtime's lock: it must not use the handle.
    pub fn world<T>(&self, read: impl FnOnce(&World) -> T) -> T {
        read(&self.lock().world)
    }

    /// Reads the character, as [`world`](Self::world) does the world.
    pub fn character<T>(&self, read: impl FnOnce(&Character) -> T) -> T {
        read(&self.lock().character)
    }

    /// Calls so far, by method.
    #[must_use]
    pub fn rpc_counts(&self) -> RpcCounts {
        self.lock().calls.clone()
    }

    /// What became of the stream messages so far.
    #[must_use]
    pub fn event_counts(&self) -> EventCounts {
        self.lock().queue.counts
    }

    /// Event streams whose client is there.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.lock().queue.open_streams()
    }

    /// Operations that a stream which does not read keeps waiting. Always 0 but on runtimes that
    /// block their producers.
    #[must_use]
    pub fn blocked_producers(&self) -> usize {
        self.lock().queue.blocked_producers()
    }

    /// Waits until no operation is kept waiting by a stream which does not read.
    pub async fn unblocked(&self) {
        self.until(|condition| condition.blocked_producers == 0)
            .await;
    }

    /// Waits until at least `streams` event streams are open.
    pub async fn streams_opened(&self, streams: usize) {
        self.until(|condition| condition.open_streams >= streams)
            .await;
    }

    /// Whether the runtime's process runs.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.lock().is_up
    }

    /// Changes the world and tells what `operation` returns: for what has no method here, or for
    /// several operations at one moment. It runs under the runtime's lock: it must not use the handle.
    pub fn operate<T>(
        &self,
        operation: impl FnOnce(&mut World, UnixNanos) -> (T, Vec<StreamMessage>),
    ) -> T {
        self.change(|state, now| {
            let (outcome, told) = operation(&mut state.world, now.wall);
            state.tell(now, told.into_iter().map(Message::from));
            outcome
        })
    }

    /// Changes the state, then wakes whoever waits for what the change brought.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State, Now) -> T) -> T {
        let now = (self.shared.clock)();
        let mut state = self.lock();
        state.send_what_is_due(now.mono);
        let outcome = change(&mut state, now);
        state.note_changes(now.mono);
        let State {
            queue,
            wakers,
            is_frozen,
            ..
        } = &mut *state;
        if !*is_frozen {
            wakers.wake(|stream| queue.has_news(stream));
        }
        // Sent under the lock, so that conditions are published in the order in which they arose.
        self.shared.condition.send_if_modified(|published| {
            let condition = Condition {
                is_up: state.is_up,
                is_frozen: state.is_frozen,
                blocked_producers: state.queue.blocked_producers(),
                open_streams: state.queue.open_streams(),
                lifts: state.faults.lifts,
            };
            let is_new = *published != condition;
            *published = condition;
            is_new
        });
        outcome
    }

    /// Waits until the fault by which a call hangs is lifted.
    pub(super) async fn lifted(&self, fault: FaultId) {
        let mut conditions = self.shared.condition.subscribe();
        while self.lock().faults.hangs(fault) {
            // The sender lives as long as `self`, so the wait cannot fail.
            let _ = conditions.changed().await;
        }
    }

    pub(super) async fn thawed(&self) {
        self.until(|condition| !condition.is_frozen).await;
    }

    pub(super) async fn until_up(&self, up: bool) {
        self.until(|condition| condition.is_up == up).await;
    }

    pub(super) async fn until(&self, holds: impl FnMut(&Condition) -> bool) {
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = self.shared.condition.subscribe().wait_for(holds).await;
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a caller's `world` closure leaves nothing half changed.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SimulatedRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedRuntime").finish_non_exhaustive()
    }
}

/// A runtime without events needs no queue; one that keeps nothing is as good.
pub(super) fn delivery(character: &Character) -> EventDelivery {
    match &character.events {
        EventSupport::Served(delivery) => delivery.clone(),
        EventSupport::Unimplemented | EventSupport::EndsAtOnce => EventDelivery::none(),
    }
}
