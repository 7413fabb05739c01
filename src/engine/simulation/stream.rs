//! The node of a simulation and its stream: what a change tells, and what becomes of the message.

use std::time::Duration;

use super::act::Named;
use super::node::{Change, Node, uid};
use super::play::{Due, Message, Play, unavailable};
use super::trouble::Mishap;
use crate::engine::model::{Violation, violated};
use crate::engine::{Input, SessionId, StreamEnd};
use crate::lifecycle::{EventKind, Mono, RuntimeEvent, SubjectId};

/// containerd 1.7 keeps at most so many messages for nobody.
const KEPT_MESSAGES: usize = 1_000;
/// Messages older than this when somebody comes are beyond what the laws assume.
const KEPT_FOR: Duration = Duration::from_secs(280);

impl Play {
    pub(super) fn change(&mut self, change: Change) {
        let mark = self.engine.mark(self.now);
        // Of a sandbox that is being removed, containerd 2 shows the last state; others show none.
        let shows_last = matches!(change, Change::Become { at, .. } if at % 2 == 0);
        let before = match change {
            Change::Become { at, .. } if shows_last => self.node.sandbox_status(at),
            _ => None,
        };
        let at = self.node.make_true(change, mark);
        for &kind in Node::news_of(change) {
            let mut message = self.message(at, kind);
            if kind == EventKind::Deleted && message.event.sandbox.is_none() {
                message.event.sandbox.clone_from(&before);
            }
            self.tell(message);
        }
    }

    pub(super) fn message(&self, about: usize, kind: EventKind) -> Message {
        let sandbox = self.node.sandbox_of(about);
        Message {
            about,
            event: RuntimeEvent {
                id: self.node.subjects[about].id.as_str().into(),
                kind,
                stamp: self.now.wall.0,
                sandbox: self.node.sandbox_status(sandbox),
                containers: self.node.containers_in(sandbox),
                refused: Vec::new(),
            },
            made: self.now.mono,
            is_lie: false,
        }
    }

    pub(super) fn slander(&mut self, pod: u8, name: Option<u8>) {
        let at = match name {
            Some(name) => self.node.container(Named { pod, name }),
            None => self.node.sandbox(pod),
        };
        if let Some(at) = at {
            let mut message = self.message(at, EventKind::Deleted);
            match &self.node.subjects[at].id {
                SubjectId::Sandbox(_) => message.event.sandbox = None,
                SubjectId::Container(id) => message.event.containers.retain(|one| one.id != *id),
            }
            message.is_lie = true;
            self.send(message, true);
        }
    }

    /// The runtime has a message to send.
    pub(super) fn tell(&mut self, message: Message) {
        if !self.is_up || !self.character.events {
            return;
        }
        match self.trouble.befalls_message() {
            None => self.send(message, true),
            Some(Mishap::Lost) => {}
            Some(Mishap::Twice) => {
                self.send(message.clone(), true);
                self.send(message, true);
            }
            Some(Mishap::BehindTheNext) => self.overtaken.push(message),
            Some(Mishap::Delayed { millis }) => {
                let number = self.set_off;
                self.kept_back.insert(number, message);
                self.set_off(self.later(millis), Due::Released(number));
            }
            Some(Mishap::DroppedByTheInbox) => {
                if let Some(session) = self.stream {
                    self.after_transit(|_| Due::Dropped(session, message));
                }
            }
        }
    }

    /// Puts a message on the stream, and behind it those that it overtakes.
    pub(super) fn send(&mut self, message: Message, overtakes: bool) {
        match self.stream {
            Some(session) => self.after_transit(|_| Due::Arrives(session, message)),
            None if self.keeps_another() => self.unheard.push_back(message),
            None => {}
        }
        if overtakes {
            while let Some(message) = self.overtaken.pop() {
                self.send(message, false);
            }
        }
    }

    pub(super) fn keeps_another(&self) -> bool {
        self.character.keeps_messages && self.is_up && self.unheard.len() < KEPT_MESSAGES
    }

    /// What travels on the stream arrives in order.
    pub(super) fn after_transit(&mut self, due: impl FnOnce(Mono) -> Due) {
        let transit = u32::try_from(self.dice.below(15)).unwrap_or(0);
        let at = self.later(transit).max(self.last_arrival);
        self.last_arrival = at;
        self.set_off(at, due(at));
    }

    pub(super) fn arrives(
        &mut self,
        session: SessionId,
        message: Message,
    ) -> Result<(), Violation> {
        if self.stream != Some(session) {
            return Ok(());
        }
        if message.is_lie && self.node.is_present(message.about) {
            self.witness.false_news_of(message.about);
        }
        self.take(Input::StreamMessage {
            session,
            event: message.event,
        })
    }

    pub(super) fn dropped(
        &mut self,
        session: SessionId,
        message: &Message,
    ) -> Result<(), Violation> {
        if self.stream != Some(session) {
            return Ok(());
        }
        // Whose it was cannot always be told.
        let pod = self.node.subjects[message.about].pod;
        let pods = (!message.about.is_multiple_of(3)).then(|| uid(pod));
        self.take(Input::StreamOverflow {
            session,
            pods: pods.into_iter().collect(),
            dropped: 1,
        })
    }

    pub(super) fn open_stream(&mut self, session: SessionId) -> Result<(), Violation> {
        if self.stream.replace(session).is_some() {
            return violated("Bounded", "a second stream is asked for".to_owned());
        }
        self.last_arrival = self.now.mono;
        if !self.is_up || !self.character.events {
            let end = if self.is_up {
                StreamEnd::Unimplemented
            } else {
                StreamEnd::Broken(unavailable())
            };
            self.set_off(self.later(1), Due::StreamEnds(session, end));
            return Ok(());
        }
        for message in std::mem::take(&mut self.unheard) {
            if self.now.mono.since(message.made) < KEPT_FOR {
                self.send(message, false);
            }
        }
        Ok(())
    }

    pub(super) fn stream_ends(
        &mut self,
        session: SessionId,
        end: StreamEnd,
    ) -> Result<(), Violation> {
        if self.stream != Some(session) {
            return Ok(());
        }
        self.stream = None;
        self.take(Input::StreamEnded { session, end })
    }

    pub(super) fn unmute(&mut self) {
        self.trouble.unmute();
        let late = std::mem::take(&mut self.kept_back).into_values();
        for message in late.chain(std::mem::take(&mut self.overtaken)) {
            self.send(message, false);
        }
    }

    pub(super) fn stop_runtime(&mut self) -> Result<(), Violation> {
        self.is_up = false;
        self.is_frozen = false;
        self.frozen.clear();
        self.unheard.clear();
        self.kept_back.clear();
        self.overtaken.clear();
        for request in self.calls.keys().copied().collect::<Vec<_>>() {
            self.set_off(self.now.mono, Due::Refused(request));
        }
        match self.stream {
            Some(session) => self.stream_ends(session, StreamEnd::Broken(unavailable())),
            None => Ok(()),
        }
    }

    pub(super) fn thaw(&mut self) -> Result<(), Violation> {
        self.is_frozen = false;
        for due in std::mem::take(&mut self.frozen) {
            self.happens(due)?;
        }
        Ok(())
    }
}
