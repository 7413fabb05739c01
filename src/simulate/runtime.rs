//! The handle on a simulated runtime: what can be done to it and read of it.
//!
//! It owns the world, the event queue and the faults behind one lock that is never held across a
//! wait. Every operation takes the moment from the runtime's clock, changes the world and hands what
//! that tells to the streams. Nothing here starts a task.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::events::Wakers;
use super::fault::Faults;
use super::queue::EventQueue;
use super::subject::StreamMessage;
use super::{
    Builder, Character, ChurnPlan, EventCounts, EventDelivery, EventSupport, Fault, Outcome, Rpc,
    RpcCounts, StreamEnd, World,
};
use crate::lifecycle::{Now, UnixNanos};

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
    character: Character,
    pub(super) queue: EventQueue,
    pub(super) wakers: Wakers,
    faults: Faults,
    calls: RpcCounts,
    is_up: bool,
    pub(super) is_frozen: bool,
    /// How many of the next messages are withheld.
    withhold: u64,
}

/// What callers wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Condition {
    is_up: bool,
    is_frozen: bool,
    blocked_producers: usize,
    open_streams: usize,
}

impl State {
    fn condition(&self) -> Condition {
        Condition {
            is_up: self.is_up,
            is_frozen: self.is_frozen,
            blocked_producers: self.queue.blocked_producers(),
            open_streams: self.queue.open_streams(),
        }
    }

    fn tell(&mut self, now: Now, told: Vec<StreamMessage>) {
        for message in told {
            self.queue.counts.told += 1;
            if self.withhold > 0 {
                self.withhold -= 1;
                self.queue.counts.withheld += 1;
            } else if self.is_up && matches!(self.character.events, EventSupport::Served(_)) {
                self.queue.publish(now.mono, Arc::new(message));
            } else {
                self.queue.counts.dropped += 1;
            }
        }
    }
}

impl SimulatedRuntime {
    /// Starts to describe a runtime.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn new(
        world: World,
        character: Character,
        clock: ReadClock,
        churn: ChurnPlan,
    ) -> Self {
        let state = State {
            world,
            queue: EventQueue::new(delivery(&character)),
            character,
            wakers: Wakers::default(),
            faults: Faults::default(),
            calls: RpcCounts::default(),
            is_up: true,
            is_frozen: false,
            withhold: 0,
        };
        Self {
            shared: Arc::new(Shared {
                condition: watch::Sender::new(state.condition()),
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

    /// From now on `fault` happens to the calls that it fits. Of several that fit the oldest does.
    pub fn inject(&self, fault: Fault) {
        self.change(|state, _| state.faults.add(fault));
    }

    /// Takes every fault out. Calls that already hang go on hanging.
    pub fn clear_faults(&self) {
        self.change(|state, _| state.faults.clear());
    }

    /// The next `messages` of the event stream are lost without trace.
    pub fn withhold_events(&self, messages: u64) {
        self.change(|state, _| state.withhold = messages);
    }

    /// Puts a message of any content on the event stream, as if an operation had told it.
    pub fn emit(&self, message: StreamMessage) {
        self.change(|state, now| state.tell(now, vec![message]));
    }

    /// Ends every open event stream, after what it still has to send.
    pub fn end_streams(&self, end: &StreamEnd) {
        self.change(|state, _| {
            state.queue.end_all(end);
            state.wakers.wake_all();
        });
    }

    /// Cuts every connection, as a proxy or a crash would. New ones can be made at once.
    pub fn sever(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Stops the runtime's process, or starts another. While it is down connections are refused,
    /// what happens is told to nobody, and what was queued is gone.
    pub fn set_up(&self, up: bool) {
        self.change(|state, _| {
            if state.is_up && !up {
                let delivery = delivery(&state.character);
                state.queue.restart(delivery);
            }
            state.is_up = up;
        });
        if !up {
            self.sever();
        }
    }

    /// Whether the runtime's process runs.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.lock().is_up
    }

    /// Stops the process and starts it again, at once.
    pub fn restart(&self) {
        self.set_up(false);
        self.set_up(true);
    }

    /// Halts the process as SIGSTOP does, or lets it go on. While it is frozen no call is answered
    /// and no stream speaks, but nothing is cut.
    pub fn set_frozen(&self, frozen: bool) {
        self.change(|state, _| {
            state.is_frozen = frozen;
            if !frozen {
                state.wakers.wake_all();
            }
        });
    }

    /// Restarts as another runtime on the same containers: an upgrade.
    pub fn become_character(&self, character: Character) {
        self.set_up(false);
        self.change(|state, _| {
            state.world.set_habits(character.habits.clone());
            state.queue.restart(delivery(&character));
            state.character = character;
        });
        self.set_up(true);
    }

    /// Changes the world and tells what `operation` returns: for what has no method here, or for
    /// several operations at one moment. It runs under the runtime's lock: it must not use the handle.
    pub fn operate<T>(
        &self,
        operation: impl FnOnce(&mut World, UnixNanos) -> (T, Vec<StreamMessage>),
    ) -> T {
        self.change(|state, now| {
            let (outcome, told) = operation(&mut state.world, now.wall);
            state.tell(now, told);
            outcome
        })
    }

    /// Changes the state, then wakes whoever waits for what the change brought.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State, Now) -> T) -> T {
        let now = (self.shared.clock)();
        let mut state = self.lock();
        let outcome = change(&mut state, now);
        let State {
            queue,
            wakers,
            is_frozen,
            ..
        } = &mut *state;
        if !*is_frozen {
            wakers.wake(|stream| queue.has_news(stream));
        }
        let condition = state.condition();
        // Sent under the lock, so that conditions are published in the order in which they arose.
        self.shared.condition.send_if_modified(|published| {
            let is_new = *published != condition;
            *published = condition;
            is_new
        });
        outcome
    }

    pub(super) fn note_call(&self, rpc: Rpc, id: Option<&str>) -> Option<(Duration, Outcome)> {
        let mut state = self.lock();
        state.calls.count(rpc);
        state.faults.take(rpc, id)
    }

    pub(super) fn latency(&self, rpc: Rpc) -> Duration {
        self.character(|character| character.latency.get(&rpc).copied())
            .unwrap_or_default()
    }

    pub(super) async fn thawed(&self) {
        self.until(|condition| !condition.is_frozen).await;
    }

    pub(super) async fn until_up(&self, up: bool) {
        self.until(|condition| condition.is_up == up).await;
    }

    async fn until(&self, holds: impl FnMut(&Condition) -> bool) {
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = self.shared.condition.subscribe().wait_for(holds).await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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
fn delivery(character: &Character) -> EventDelivery {
    match &character.events {
        EventSupport::Served(delivery) => delivery.clone(),
        EventSupport::Unimplemented | EventSupport::EndsAtOnce => EventDelivery::none(),
    }
}
