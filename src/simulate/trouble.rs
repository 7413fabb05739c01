//! What goes wrong with a running runtime: faults of its calls and of its event stream, ends of
//! streams, connections and of the process itself.

use std::sync::Arc;

use bytes::Bytes;

use super::message::Message;
use super::raw::RawEvent;
use super::runtime::delivery;
use super::subject::StreamMessage;
use super::{Character, Fault, FaultId, Rpc, SimulatedRuntime, Stamps, StreamEnd, StreamFault};
use crate::lifecycle::EventKind;

/// Calls.
impl SimulatedRuntime {
    /// From now on `fault` happens to the calls that it fits. Of several that fit the oldest does.
    #[expect(
        clippy::must_use_candidate,
        reason = "most faults are lifted together, or end by themselves"
    )]
    pub fn inject(&self, fault: Fault) -> FaultId {
        self.change(|state, _| {
            state.faults_given += 1;
            let id = FaultId(state.faults_given);
            state.faults.add(id, fault);
            id
        })
    }

    /// Takes one fault out, of calls or of the stream. Calls that hang by it are answered, messages
    /// that it keeps back are sent.
    pub fn lift(&self, id: FaultId) {
        self.change(|state, now| {
            state.faults.lift(id);
            let freed = state.stream_faults.lift(id);
            state.send(now.mono, freed);
        });
    }

    /// Takes out the faults that were put in for this method; without one, all faults of calls.
    pub fn lift_faults(&self, rpc: impl Into<Option<Rpc>>) {
        let rpc = rpc.into();
        self.change(|state, _| state.faults.lift_all(rpc));
    }

    /// Takes every fault out, of calls and of the stream, and ends a [mute](Self::set_muted).
    pub fn clear_faults(&self) {
        self.lift_faults(None);
        self.lift_stream_faults();
    }

    /// Keeps the present state under this name, for [answers from it](super::AsOf::Remembered).
    pub fn remember(&self, name: impl Into<Arc<str>>) {
        let name = name.into();
        self.change(|state, _| {
            let world = state.world.clone();
            state.history.remember(name, world);
        });
    }
}

/// The event stream.
impl SimulatedRuntime {
    /// From now on `fault` happens to the messages that it fits. Of several that fit the oldest does.
    #[expect(clippy::must_use_candidate, reason = "as `inject`")]
    pub fn inject_stream(&self, fault: StreamFault) -> FaultId {
        self.change(|state, _| {
            state.faults_given += 1;
            let id = FaultId(state.faults_given);
            state.stream_faults.add(id, fault);
            id
        })
    }

    /// Takes out all faults of the stream and ends a mute. What was kept back is sent.
    pub fn lift_stream_faults(&self) {
        self.change(|state, now| {
            let freed = state.stream_faults.lift_all();
            state.send(now.mono, freed);
        });
    }

    /// Loses every message, whatever other faults there are, or no longer.
    pub fn set_muted(&self, muted: bool) {
        self.change(|state, _| state.stream_faults.is_muted = muted);
    }

    /// The next `messages` of the event stream are lost without trace.
    pub fn withhold_events(&self, messages: u32) {
        self.inject_stream(StreamFault::lose().times(messages));
    }

    /// The message that the runtime would make now about this sandbox or container, to be bent and
    /// [emitted](Self::emit).
    #[must_use]
    pub fn message_about(&self, kind: EventKind, id: &str) -> Option<StreamMessage> {
        let at = self.now();
        self.world(|world| world.message_about(at, kind, id))
    }

    /// Puts a message on the event stream, as if an operation had told it.
    pub fn emit(&self, message: StreamMessage) {
        self.change(|state, now| state.tell(now, [Message::from(message)]));
    }

    /// Puts a message of any content on the event stream, as if an operation had told it.
    pub fn emit_raw(&self, event: RawEvent) {
        self.change(|state, now| state.tell(now, [Message::from(event)]));
    }

    /// Puts these bytes on the event stream, a message or none. To faults they have neither type nor
    /// subject.
    pub fn emit_bytes(&self, bytes: impl Into<Bytes>) {
        let message = Message::bytes(bytes.into());
        self.change(|state, now| state.tell(now, [message]));
    }

    /// The next stream that is opened begins with the last `messages` that were told until now, as
    /// they were told: at most 1000.
    pub fn replay_on_connect(&self, messages: usize) {
        self.change(|state, _| {
            let skipped = state.recent.len().saturating_sub(messages);
            let replay = state.recent.iter().skip(skipped).cloned().collect();
            state.queue.replay_on_open(replay);
        });
    }

    /// Ends every open event stream, after what it still has to send.
    pub fn end_streams(&self, end: &StreamEnd) {
        self.change(|state, _| {
            state.queue.end_all(end);
            state.wakers.wake_all();
        });
    }

    /// Breaks every open event stream: what it still had to send is lost. Connections stay.
    pub fn break_streams(&self, end: &StreamEnd) {
        self.change(|state, _| {
            state.queue.break_all(end);
            state.wakers.wake_all();
        });
    }

    /// From now on messages are stamped so.
    pub fn set_stamps(&self, stamps: Stamps) {
        self.change(|state, _| {
            state.character.habits.stamps = stamps;
            state.world.set_stamps(stamps);
        });
    }
}

/// Connections and the process.
impl SimulatedRuntime {
    /// Cuts every connection, as a proxy or a crash would. New ones can be made at once.
    pub fn sever(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Stops the runtime's process, or starts another. While it is down connections are refused,
    /// what happens is told to nobody, and what was queued or kept back is gone.
    pub fn set_up(&self, up: bool) {
        self.change(|state, _| {
            if state.is_up && !up {
                let delivery = delivery(&state.character);
                state.queue.restart(delivery);
                state.stream_faults.forget_held();
            }
            state.is_up = up;
        });
        if !up {
            self.sever();
        }
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
}
