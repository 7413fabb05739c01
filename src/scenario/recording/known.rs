//! What a recording has told so far, subject by subject: where answers come from that were not recorded.
//!
//! An engine that asks otherwise than the recorded one did (a newer version, other settings, a recording
//! that begins in the middle) gets the newest that the recording has of each id. It must not be
//! the newest *list*, word for word: a list of a minute ago, told as if it were of now, would take
//! back every container that a message has told since. So lists are put together from the newest of
//! each subject, messages included. This decides nothing that a live engine would; it only remembers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::{Answer, Failure, FailureKind, RuntimeVersion, SessionId, StreamEnd};
use crate::lifecycle::{
    ContainerId, ContainerListing, ContainerStatus, EventKind, Listed, Mono, NodeList, PodUid,
    ReportedState, RuntimeEvent, SandboxId, SandboxListing, SandboxStatus,
};

/// What a recording has told up to some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Known {
    /// The runtime, once it answered `Version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<RuntimeVersion>,
    /// The event stream: open, or how the last one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<StreamState>,
    /// When the newest full list that is part of this was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listed: Option<Mono>,
    #[serde(default)]
    sandboxes: BTreeMap<SandboxId, Seen<SandboxListing, SandboxStatus>>,
    #[serde(default)]
    containers: BTreeMap<ContainerId, Seen<ContainerListing, ContainerStatus>>,
    /// Ids that are gone, and since when: a read that was sent before does not bring them back.
    #[serde(skip)]
    gone: BTreeMap<Arc<str>, Mono>,
}

/// The event stream, as the recorded engine had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum StreamState {
    Open(SessionId),
    Ended(StreamEnd),
}

/// What is known of one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Seen<L, S> {
    /// When it was first told.
    first: Mono,
    /// When the newest that is known of it was told.
    last: Mono,
    listing: Arc<L>,
    /// Its newest status; absent once a list has overtaken it.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    status: Option<S>,
}

/// How far a state is along a subject's life; what nobody can place is before all.
fn rank(state: ReportedState) -> u8 {
    match state {
        ReportedState::Unknown => 0,
        ReportedState::Created => 1,
        ReportedState::Running => 2,
        ReportedState::Exited => 3,
    }
}

/// When something was true: for a read from when it was sent, for a message at the moment it came.
#[derive(Clone, Copy)]
struct Window {
    begun: Mono,
    seen: Mono,
}

impl Window {
    /// Whether news of this window in `state` replaces what was told at `last` in `known`.
    fn replaces(self, state: ReportedState, last: Mono, known: ReportedState) -> bool {
        self.begun >= last || rank(state) >= rank(known)
    }
}

impl Known {
    /// The runtime.
    pub(super) fn version(&self) -> Option<&RuntimeVersion> {
        self.version.as_ref()
    }

    pub(super) fn set_version(&mut self, version: RuntimeVersion) {
        self.version = Some(version);
    }

    pub(super) fn stream(&self) -> Option<&StreamState> {
        self.stream.as_ref()
    }

    pub(super) fn set_stream(&mut self, stream: StreamState) {
        self.stream = Some(stream);
    }

    /// Whether a full list was told.
    pub(super) fn is_listed(&self) -> bool {
        self.listed.is_some()
    }

    /// Takes an answer to a question that was sent at `begun`.
    pub(super) fn take_answer(&mut self, answer: &Answer, begun: Mono, seen: Mono, full: bool) {
        let window = Window { begun, seen };
        match answer {
            Answer::Version(Ok(version)) => self.version = Some(version.clone()),
            Answer::Listed(Ok(list)) => {
                for listing in &list.sandboxes.items {
                    self.list_sandbox(listing, window);
                }
                for listing in &list.containers.items {
                    self.list_container(listing, window);
                }
                if full {
                    self.take_absences(list, begun);
                }
            }
            Answer::Inspected(inspection) => {
                for status in inspection
                    .sandboxes
                    .iter()
                    .filter_map(|(_, s)| s.as_ref().ok())
                {
                    self.tell_sandbox(status, window);
                }
                for status in inspection
                    .containers
                    .iter()
                    .filter_map(|(_, s)| s.as_ref().ok())
                {
                    self.tell_container(status, None, window);
                }
            }
            Answer::Version(Err(_)) | Answer::Listed(Err(_)) => {}
        }
    }

    /// Takes a message of the event stream.
    pub(super) fn take_event(&mut self, event: &RuntimeEvent, at: Mono) {
        let window = Window {
            begun: at,
            seen: at,
        };
        let deleted = (event.kind == EventKind::Deleted).then_some(&*event.id);
        if let Some(sandbox) = &event.sandbox
            && Some(sandbox.id.as_str()) != deleted
        {
            self.tell_sandbox_forwards(sandbox, window);
        }
        for status in &event.containers {
            if Some(status.id.as_str()) == deleted {
                continue;
            }
            self.tell_container_forwards(status, event.sandbox.as_ref(), window);
        }
        if let Some(id) = deleted {
            let was_sandbox = self.sandboxes.remove(id).is_some();
            let was_container = self.containers.remove(id).is_some();
            if was_sandbox || was_container {
                self.gone.insert(id.into(), at);
            }
        }
    }

    /// The node, put together.
    pub(super) fn node_list(&self) -> NodeList {
        let sandboxes: Vec<_> = self.sandboxes.values().map(|s| s.listing.clone()).collect();
        let containers: Vec<_> = self
            .containers
            .values()
            .map(|c| c.listing.clone())
            .collect();
        NodeList {
            sandboxes: all_read(sandboxes),
            containers: all_read(containers),
        }
    }

    /// One pod, as a list filtered by its uid's label shows it.
    pub(super) fn pod_list(&self, uid: &PodUid) -> NodeList {
        let sandboxes = self.sandboxes.values().map(|seen| &seen.listing);
        let sandboxes: Vec<_> = sandboxes
            .filter(|sandbox| sandbox.labelled && sandbox.pod.uid == *uid)
            .cloned()
            .collect();
        let containers = self.containers.values().map(|seen| &seen.listing);
        let containers: Vec<_> = containers
            .filter(|container| container.pod.as_ref().is_some_and(|pod| pod.uid == *uid))
            .cloned()
            .collect();
        NodeList {
            sandboxes: all_read(sandboxes),
            containers: all_read(containers),
        }
    }

    /// A sandbox's newest status, or that it is gone; `None` if it has none yet.
    pub(super) fn sandbox(&self, id: &SandboxId) -> Option<Result<SandboxStatus, Failure>> {
        match self.sandboxes.get(id) {
            Some(seen) => seen.status.clone().map(Ok),
            None => self.is_listed().then(|| Err(not_found(id.as_str()))),
        }
    }

    /// A container's newest status, or that it is gone; `None` if it has none yet.
    pub(super) fn container(&self, id: &ContainerId) -> Option<Result<ContainerStatus, Failure>> {
        match self.containers.get(id) {
            Some(seen) => seen.status.clone().map(Ok),
            None => self.is_listed().then(|| Err(not_found(id.as_str()))),
        }
    }

    fn is_gone(&self, id: &str, begun: Mono) -> bool {
        self.gone.get(id).is_some_and(|gone| begun <= *gone)
    }

    fn list_sandbox(&mut self, listing: &Arc<SandboxListing>, window: Window) {
        if self.is_gone(listing.id.as_str(), window.begun) {
            return;
        }
        match self.sandboxes.get_mut(&listing.id) {
            None => {
                let seen = first_listed(listing, window);
                self.sandboxes.insert(listing.id.clone(), seen);
            }
            Some(seen) if Arc::ptr_eq(&seen.listing, listing) => {
                seen.last = seen.last.max(window.seen);
            }
            Some(seen) if window.replaces(listing.state, seen.last, seen.listing.state) => {
                let outdated = |status: &SandboxStatus| rank(status.state) < rank(listing.state);
                seen.last = seen.last.max(window.seen);
                seen.status = seen.status.take().filter(|status| !outdated(status));
                seen.listing = listing.clone();
            }
            Some(_) => {}
        }
    }

    fn list_container(&mut self, listing: &Arc<ContainerListing>, window: Window) {
        if self.is_gone(listing.id.as_str(), window.begun) {
            return;
        }
        match self.containers.get_mut(&listing.id) {
            None => {
                let seen = first_listed(listing, window);
                self.containers.insert(listing.id.clone(), seen);
            }
            Some(seen) if Arc::ptr_eq(&seen.listing, listing) => {
                seen.last = seen.last.max(window.seen);
            }
            Some(seen) if window.replaces(listing.state, seen.last, seen.listing.state) => {
                let outdated = |status: &ContainerStatus| rank(status.state) < rank(listing.state);
                seen.last = seen.last.max(window.seen);
                seen.status = seen.status.take().filter(|status| !outdated(status));
                seen.listing = listing.clone();
            }
            Some(_) => {}
        }
    }

    /// What a full list lacks is gone, if it had been told before the list was asked for.
    fn take_absences(&mut self, list: &NodeList, begun: Mono) {
        self.gone.retain(|_, gone| *gone >= begun);
        self.listed = self.listed.max(Some(begun));
        if self.is_all(list) {
            return;
        }
        let listed = |id: &str| {
            let unreadable = list.sandboxes.unreadable.iter();
            unreadable
                .chain(&list.containers.unreadable)
                .any(|unreadable| &**unreadable == id)
        };
        let sandboxes: std::collections::BTreeSet<&SandboxId> =
            list.sandboxes.items.iter().map(|item| &item.id).collect();
        let containers: std::collections::BTreeSet<&ContainerId> =
            list.containers.items.iter().map(|item| &item.id).collect();
        self.sandboxes.retain(|id, seen| {
            seen.first >= begun || sandboxes.contains(id) || listed(id.as_str())
        });
        self.containers.retain(|id, seen| {
            seen.first >= begun || containers.contains(id) || listed(id.as_str())
        });
    }

    /// Whether a list has just what is known, item by item: most do.
    fn is_all(&self, list: &NodeList) -> bool {
        let NodeList {
            sandboxes,
            containers,
        } = list;
        sandboxes.items.len() == self.sandboxes.len()
            && containers.items.len() == self.containers.len()
            && sandboxes
                .items
                .iter()
                .zip(self.sandboxes.keys())
                .all(|(item, id)| item.id == *id)
            && containers
                .items
                .iter()
                .zip(self.containers.keys())
                .all(|(item, id)| item.id == *id)
    }

    /// A snapshot may be older than its message: it only moves a known subject forwards.
    fn tell_sandbox_forwards(&mut self, status: &SandboxStatus, window: Window) {
        let known = self.sandboxes.get(&status.id);
        if known.is_none_or(|seen| rank(status.state) >= rank(seen.listing.state)) {
            self.tell_sandbox(status, window);
        }
    }

    fn tell_container_forwards(
        &mut self,
        status: &ContainerStatus,
        sandbox: Option<&SandboxStatus>,
        window: Window,
    ) {
        let known = self.containers.get(&status.id);
        if known.is_none_or(|seen| rank(status.state) >= rank(seen.listing.state)) {
            self.tell_container(status, sandbox, window);
        }
    }

    fn tell_sandbox(&mut self, status: &SandboxStatus, window: Window) {
        if self.is_gone(status.id.as_str(), window.begun) {
            return;
        }
        let listing = Arc::new(SandboxListing {
            id: status.id.clone(),
            pod: status.pod.clone(),
            attempt: status.attempt,
            state: status.state,
            created_at: status.created_at,
            labelled: status.labelled,
        });
        let known = self
            .sandboxes
            .entry(status.id.clone())
            .or_insert_with(|| first_listed(&listing, window));
        if window.replaces(status.state, known.last, known.listing.state) {
            known.last = known.last.max(window.seen);
            known.listing = listing;
            known.status = Some(status.clone());
        }
    }

    fn tell_container(
        &mut self,
        status: &ContainerStatus,
        sandbox: Option<&SandboxStatus>,
        window: Window,
    ) {
        if self.is_gone(status.id.as_str(), window.begun) {
            return;
        }
        let known = self.containers.get(&status.id);
        let its_sandbox = match known {
            Some(seen) => seen.listing.sandbox.clone(),
            None => sandbox.map(|sandbox| sandbox.id.clone()),
        };
        let listing = Arc::new(ContainerListing {
            id: status.id.clone(),
            sandbox: its_sandbox,
            pod: status.pod.clone(),
            name: status.name.clone(),
            attempt: status.attempt,
            state: status.state,
            created_at: status.created_at,
            image: status.image.clone(),
            image_ref: status.image_ref.clone(),
        });
        let known = self
            .containers
            .entry(status.id.clone())
            .or_insert_with(|| first_listed(&listing, window));
        if window.replaces(status.state, known.last, known.listing.state) {
            known.last = known.last.max(window.seen);
            known.listing = listing;
            known.status = Some(status.clone());
        }
    }
}

fn all_read<T>(items: Vec<Arc<T>>) -> Listed<T> {
    Listed {
        items,
        ..Listed::default()
    }
}

fn first_listed<L, S>(listing: &Arc<L>, window: Window) -> Seen<L, S> {
    Seen {
        first: window.seen,
        last: window.seen,
        listing: listing.clone(),
        status: None,
    }
}

fn not_found(id: &str) -> Failure {
    Failure {
        kind: FailureKind::NotFound,
        message: format!("the recording has no {id} at this moment").into(),
    }
}
