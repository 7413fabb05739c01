//! The runtime's event queue: from the operations that tell something to the streams that are open.
//!
//! Pure. It owns the order, the room and the loss; it never waits: a stream that has nothing to send
//! asks again, and a producer that would have to wait is counted as blocked. [`EventDelivery`] says
//! which runtime's queue it is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::message::{Message, Messages};
use super::{EventDelivery, Sharing, StreamEnd, WhenFull, WithoutClient};
use crate::lifecycle::Mono;

/// Names one open stream. Never used twice.
pub(super) type StreamId = u64;

/// What became of the stream messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCounts {
    /// Messages that operations made, whatever became of them.
    pub told: u64,
    /// Messages that a stream took, once for each stream.
    pub sent: u64,
    /// Dropped because the queue was full, or because nobody listened and it is not kept then.
    pub dropped: u64,
    /// Kept for a client that did not come in time.
    pub expired: u64,
    /// Given to a stream whose client had gone.
    pub swallowed: u64,
    /// Lost by a fault.
    pub withheld: u64,
    /// Kept back by a fault for a while: late, behind others, or until the fault is lifted.
    pub held: u64,
    /// Copies that a fault added.
    pub duplicated: u64,
}

/// What a stream has to send next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Message(Arc<Message>),
    Nothing,
    End(StreamEnd),
}

#[derive(Debug)]
enum StreamState {
    Open,
    /// The client has gone; the runtime notices after this many more messages.
    Abandoned(usize),
    /// Ends when what it holds is sent.
    Ending(StreamEnd),
}

#[derive(Debug)]
struct Stream {
    buffer: VecDeque<Arc<Message>>,
    state: StreamState,
}

#[derive(Debug)]
pub(super) struct EventQueue {
    delivery: EventDelivery,
    waiting: VecDeque<(Mono, Arc<Message>)>,
    streams: BTreeMap<StreamId, Stream>,
    /// Whose turn it is, for competing streams.
    turns: VecDeque<StreamId>,
    next_id: StreamId,
    had_client: bool,
    /// What the next stream begins with.
    replay: Messages,
    pub(super) counts: EventCounts,
}

impl EventQueue {
    pub(super) fn new(delivery: EventDelivery) -> Self {
        Self {
            delivery,
            waiting: VecDeque::new(),
            streams: BTreeMap::new(),
            turns: VecDeque::new(),
            next_id: 0,
            had_client: false,
            replay: Messages::new(),
            counts: EventCounts::default(),
        }
    }

    /// The process ended and another began: what was queued is gone. Counts go on.
    pub(super) fn restart(&mut self, delivery: EventDelivery) {
        *self = Self {
            next_id: self.next_id,
            replay: std::mem::take(&mut self.replay),
            counts: self.counts,
            ..Self::new(delivery)
        };
    }

    pub(super) fn open(&mut self, now: Mono) -> StreamId {
        if !self.has_listener() {
            self.expire(now);
        }
        self.next_id += 1;
        let stream = Stream {
            buffer: std::mem::take(&mut self.replay).into(),
            state: StreamState::Open,
        };
        self.streams.insert(self.next_id, stream);
        self.turns.push_back(self.next_id);
        self.had_client = true;
        self.distribute();
        self.next_id
    }

    /// The client has gone, with all that was on its way to it.
    pub(super) fn abandon(&mut self, id: StreamId) {
        let swallows = self.delivery.swallowed_by_dead_stream;
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if matches!(stream.state, StreamState::Ending(_)) || swallows == 0 {
            self.forget(id);
        } else {
            stream.buffer.clear();
            stream.state = StreamState::Abandoned(swallows);
        }
        self.distribute();
    }

    /// The runtime ends every stream that is open.
    pub(super) fn end_all(&mut self, end: &StreamEnd) {
        for (id, stream) in &mut self.streams {
            if matches!(stream.state, StreamState::Open) {
                stream.state = StreamState::Ending(end.clone());
                self.turns.retain(|turn| turn != id);
            }
        }
    }

    /// Breaks every stream that is open: what it holds is lost.
    pub(super) fn break_all(&mut self, end: &StreamEnd) {
        self.end_all(end);
        for stream in self.streams.values_mut() {
            stream.buffer.clear();
        }
    }

    /// The next stream begins with these.
    pub(super) fn replay_on_open(&mut self, messages: Messages) {
        self.replay = messages;
    }

    pub(super) fn publish(&mut self, now: Mono, message: Arc<Message>) {
        let nobody = !self.has_listener();
        if nobody {
            let kept = match self.delivery.without_client {
                WithoutClient::Queue => true,
                WithoutClient::KeepFor(_) => {
                    self.expire(now);
                    self.waiting.push_back((now, message));
                    return;
                }
                WithoutClient::QueueUntilFirstClient => !self.had_client,
            };
            if !kept {
                self.counts.dropped += 1;
                return;
            }
        }
        self.waiting.push_back((now, message));
        self.distribute();
        if self.delivery.when_full == WhenFull::DropNewest
            && self.waiting.len() > self.delivery.queue
        {
            self.waiting.pop_back();
            self.counts.dropped += 1;
        }
    }

    pub(super) fn next(&mut self, id: StreamId) -> Next {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Next::End(StreamEnd::default());
        };
        if let Some(message) = stream.buffer.pop_front() {
            self.counts.sent += 1;
            self.distribute();
            return Next::Message(message);
        }
        match &stream.state {
            StreamState::Ending(end) => Next::End(end.clone()),
            StreamState::Open | StreamState::Abandoned(_) => Next::Nothing,
        }
    }

    /// Whether `next` has more to say than nothing.
    pub(super) fn has_news(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_none_or(|stream| {
            !stream.buffer.is_empty() || matches!(stream.state, StreamState::Ending(_))
        })
    }

    /// Streams whose client is there.
    pub(super) fn open_streams(&self) -> usize {
        self.streams
            .values()
            .filter(|stream| matches!(stream.state, StreamState::Open))
            .count()
    }

    /// Operations that wait until a stream reads.
    pub(super) fn blocked_producers(&self) -> usize {
        if self.delivery.when_full == WhenFull::BlockProducer && self.has_listener() {
            self.waiting.len().saturating_sub(self.delivery.queue)
        } else {
            0
        }
    }

    /// Whether the runtime believes that somebody listens: an abandoned stream counts until noticed.
    fn has_listener(&self) -> bool {
        self.streams
            .values()
            .any(|stream| !matches!(stream.state, StreamState::Ending(_)))
    }

    fn expire(&mut self, now: Mono) {
        let WithoutClient::KeepFor(age) = self.delivery.without_client else {
            return;
        };
        while let Some((since, _)) = self.waiting.front()
            && now.since(*since) > age
        {
            self.waiting.pop_front();
            self.counts.expired += 1;
        }
    }

    fn distribute(&mut self) {
        while !self.waiting.is_empty() {
            let went = match self.delivery.sharing {
                Sharing::Competing => self.give_to_next(),
                Sharing::EveryStream => self.give_to_all(),
            };
            if !went {
                break;
            }
        }
    }

    fn give_to_next(&mut self) -> bool {
        let room = self.delivery.stream_buffer;
        for _ in 0..self.turns.len() {
            let Some(id) = self.turns.pop_front() else {
                break;
            };
            self.turns.push_back(id);
            let Some(stream) = self.streams.get_mut(&id) else {
                continue;
            };
            match &mut stream.state {
                StreamState::Open if stream.buffer.len() < room => {
                    if let Some((_, message)) = self.waiting.pop_front() {
                        stream.buffer.push_back(message);
                    }
                    return true;
                }
                StreamState::Abandoned(left) => {
                    *left = left.saturating_sub(1);
                    let noticed = *left == 0;
                    self.waiting.pop_front();
                    self.counts.swallowed += 1;
                    if noticed {
                        self.forget(id);
                    }
                    return true;
                }
                StreamState::Open | StreamState::Ending(_) => {}
            }
        }
        false
    }

    fn give_to_all(&mut self) -> bool {
        let room = self.delivery.stream_buffer;
        let is_stuck = self
            .streams
            .values()
            .any(|stream| matches!(stream.state, StreamState::Open) && stream.buffer.len() >= room);
        if is_stuck || !self.has_listener() {
            return false;
        }
        let Some((_, message)) = self.waiting.pop_front() else {
            return false;
        };
        let mut noticed = Vec::new();
        let mut heard = false;
        for (id, stream) in &mut self.streams {
            match &mut stream.state {
                StreamState::Open => {
                    stream.buffer.push_back(message.clone());
                    heard = true;
                }
                StreamState::Abandoned(left) => {
                    *left = left.saturating_sub(1);
                    if *left == 0 {
                        noticed.push(*id);
                    }
                }
                StreamState::Ending(_) => {}
            }
        }
        if !heard {
            self.counts.swallowed += 1;
        }
        for id in noticed {
            self.forget(id);
        }
        true
    }

    fn forget(&mut self, id: StreamId) {
        self.streams.remove(&id);
        self.turns.retain(|turn| *turn != id);
    }
}

#[cfg(test)]
mod tests;
