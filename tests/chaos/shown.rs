//! What the runtime showed one `pleg`: what its own lists had, and what the events that it had to accept
//! told. Whatever was shown must have been told once all is at rest.
//!
//! It reads the questions and the inputs, from a tap or from a recording, and nothing that `pleg` decided.

use std::collections::{BTreeMap, BTreeSet};

use pleg::engine::{Answer, Input, Question, RequestId};
use pleg::lifecycle::{EventKind, NodeList, Now, ReportedState, RuntimeEvent, UnixNanos};

/// By how much an event's stamp must lie past the newest list's beginning, so that no drift of the
/// wall clock makes it stale: the rule is `pleg`'s, the margin is ours.
const CLEARLY_FRESH: i64 = 50_000_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// Subjects that were shown in a state that owes an event.
    pub(crate) subjects: BTreeSet<String>,
    asked: BTreeMap<RequestId, (UnixNanos, bool)>,
    /// When the newest full list was asked for, and when the newest that was answered was.
    newest_asked: Option<UnixNanos>,
    newest_list: Option<UnixNanos>,
    pub(crate) lists: u64,
    pub(crate) events: u64,
}

impl Shown {
    pub(crate) fn asked(&mut self, now: Now, request: RequestId, question: &Question) {
        let is_full = matches!(question, Question::FullRelist);
        if is_full {
            self.newest_asked = Some(now.wall);
        }
        if is_full || matches!(question, Question::PodRelist { .. }) {
            self.asked.insert(request, (now.wall, is_full));
        }
    }

    pub(crate) fn took(&mut self, input: &Input) {
        match input {
            Input::Answered { request, answer } => {
                let Some((begun, is_full)) = self.asked.remove(request) else {
                    return;
                };
                let Answer::Listed(Ok(list)) = answer else {
                    return;
                };
                // An older answer may not bring what a newer list lacked.
                if self.newest_list.is_none_or(|newest| begun >= newest) {
                    self.lists += 1;
                    self.list(list);
                    if is_full {
                        self.newest_list = Some(begun);
                    }
                }
            }
            Input::StreamMessage { event, .. } => self.event(event),
            _ => {}
        }
    }

    fn list(&mut self, list: &NodeList) {
        for sandbox in &list.sandboxes.items {
            self.show(sandbox.id.as_str(), sandbox.state);
        }
        for container in &list.containers.items {
            self.show(container.id.as_str(), container.state);
        }
    }

    fn event(&mut self, event: &RuntimeEvent) {
        // News of the time before a list is that list's to tell, whatever becomes of it.
        let (Some(newest), Some(_)) = (self.newest_asked, self.newest_list) else {
            return;
        };
        if event.stamp < newest.0 + CLEARLY_FRESH || !event.refused.is_empty() {
            return;
        }
        let Some(sandbox) = &event.sandbox else {
            return;
        };
        let of_sandbox = (sandbox.id.as_str() == &*event.id).then_some(sandbox.state);
        let own = event.containers.iter();
        let own = own.filter(|status| status.id.as_str() == &*event.id);
        let Some(state) = of_sandbox.or_else(|| own.map(|status| status.state).next()) else {
            return;
        };
        let agrees = match event.kind {
            EventKind::Started => state == ReportedState::Running,
            EventKind::Stopped => state == ReportedState::Exited,
            _ => false,
        };
        if agrees {
            self.events += 1;
            self.show(&event.id, state);
        }
    }

    fn show(&mut self, id: &str, state: ReportedState) {
        if matches!(state, ReportedState::Running | ReportedState::Exited) {
            self.subjects.insert(id.to_owned());
        }
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.subjects.extend(other.subjects);
        self.lists += other.lists;
        self.events += other.events;
    }
}
