//! What really happened on the node: the life of each container and sandbox, taken down after each
//! thing that was done to the runtime, and of which pods false things were said.
//!
//! It is taken from the runtime's own state and never from what the generator under test was told.

use std::collections::{BTreeMap, BTreeSet};

use crate::lifecycle::{Mono, Phase, PodUid, ReportedState, SubjectId};
use crate::scenario::action::Action;
use crate::scenario::names::Names;
use crate::simulate::World;

/// The lives of all subjects that there ever were.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct Truth {
    lives: BTreeMap<SubjectId, Life>,
    lied_about: BTreeSet<PodUid>,
    lied_about_all: bool,
}

/// One subject's.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct Life {
    pub(in crate::scenario) uid: PodUid,
    /// Each state and since when, in order.
    states: Vec<(Mono, ReportedState)>,
    removed: Option<Mono>,
    /// How it ended, if it was seen ended.
    pub(in crate::scenario) exit_code: Option<i32>,
}

impl Life {
    /// How far it had come before `moment`; `None`: there was no such subject.
    pub(super) fn before(&self, moment: Mono) -> Option<Phase> {
        self.reached(|at| at < moment)
    }

    /// How far it had come by `moment`, with what happened at that very moment.
    pub(super) fn by(&self, moment: Mono) -> Option<Phase> {
        self.reached(|at| at <= moment)
    }

    /// How far it has come by now.
    pub(super) fn now(&self) -> Option<Phase> {
        self.reached(|_| true)
    }

    /// When it changed last.
    pub(super) fn last_change(&self) -> Mono {
        let last = self.states.last().map(|(at, _)| *at);
        self.removed.max(last).unwrap_or_default()
    }

    /// Whether the runtime does not know its state now.
    pub(super) fn is_unknown(&self) -> bool {
        let last = self.states.last();
        self.removed.is_none() && last.is_some_and(|(_, state)| *state == ReportedState::Unknown)
    }

    fn reached(&self, counts: impl Fn(Mono) -> bool) -> Option<Phase> {
        if self.removed.is_some_and(&counts) {
            return Some(Phase::Removed);
        }
        let states = self.states.iter().take_while(|(at, _)| counts(*at));
        // A state that the runtime does not know is no phase: as far as it was, if it was anywhere.
        states
            .map(|(_, state)| state.phase().unwrap_or(Phase::Created))
            .max()
    }
}

impl Truth {
    /// Takes down what has changed.
    pub(in crate::scenario) fn note(&mut self, at: Mono, world: &World) {
        for sandbox in world.sandboxes() {
            let state = if sandbox.ready {
                ReportedState::Running
            } else {
                ReportedState::Exited
            };
            let id = SubjectId::Sandbox(sandbox.id.clone());
            self.saw(at, id, &sandbox.pod.uid, state, None);
        }
        for container in world.containers() {
            let code = container.is_exited().then_some(container.exit.code);
            let id = SubjectId::Container(container.id.clone());
            self.saw(at, id, &container.pod.uid, container.state, code);
        }
        for (id, life) in &mut self.lives {
            let is_there = match id {
                SubjectId::Sandbox(id) => world.sandbox(id.as_str()).is_some(),
                SubjectId::Container(id) => world.container(id.as_str()).is_some(),
            };
            if !is_there && life.removed.is_none() {
                life.removed = Some(at);
            }
        }
    }

    pub(super) fn saw(
        &mut self,
        at: Mono,
        id: SubjectId,
        uid: &PodUid,
        state: ReportedState,
        exit_code: Option<i32>,
    ) {
        let life = self.lives.entry(id).or_insert_with(|| Life {
            uid: uid.clone(),
            states: Vec::new(),
            removed: None,
            exit_code: None,
        });
        if life.states.last().is_none_or(|(_, last)| *last != state) {
            life.states.push((at, state));
        }
        life.exit_code = exit_code.or(life.exit_code);
    }

    #[cfg(test)]
    pub(super) fn gone(&mut self, at: Mono, id: &SubjectId) {
        self.lives.get_mut(id).unwrap().removed = Some(at);
    }

    #[cfg(test)]
    pub(super) fn lie(&mut self, uid: &PodUid) {
        self.lied_about.insert(uid.clone());
    }

    /// Takes down whether `action` makes the runtime say what is not so.
    pub(in crate::scenario) fn note_lies(&mut self, action: &Action, names: &Names) {
        let pod = match action {
            Action::Emit(emit) if emit.id.is_none() && emit.uid.is_none() => emit
                .about
                .as_ref()
                .map(super::super::values::SubjectName::pod),
            Action::Deny(subject) => Some(subject.pod()),
            Action::Emit(_) | Action::AnswerFrom(_) => None,
            _ => return,
        };
        match pod.and_then(|pod| names.uid(pod).ok()) {
            Some(uid) => {
                self.lied_about.insert(uid);
            }
            None => self.lied_about_all = true,
        }
    }

    /// Whether the runtime ever said of this pod what was not so.
    pub(super) fn is_lied_about(&self, uid: &PodUid) -> bool {
        self.lied_about_all || self.lied_about.contains(uid)
    }

    pub(super) fn lives(&self) -> impl Iterator<Item = (&SubjectId, &Life)> {
        self.lives.iter()
    }

    pub(super) fn life(&self, id: &SubjectId) -> Option<&Life> {
        self.lives.get(id)
    }
}
