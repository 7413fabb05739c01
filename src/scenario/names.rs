//! Who is who: the scenario's short names and the runtime's ids, both ways.
//!
//! Everything that a scenario makes is entered here and stays, so that what is gone can still be
//! named. What the scenario did not make is shown by the beginning of its id.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::values::{ContainerName, PodName, SandboxName, SubjectName};
use crate::lifecycle::{
    ContainerId, EventSubject, LifecycleEvent, LifecycleKind, PodUid, SandboxId, SubjectId,
};
use crate::simulate::Pod;

/// The names of one run.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pods: BTreeMap<PodName, PodEntry>,
    places: BTreeMap<Arc<str>, Place>,
    uids: BTreeMap<PodUid, PodName>,
}

#[derive(Clone, Debug)]
struct PodEntry {
    pod: Arc<Pod>,
    sandboxes: Vec<SandboxId>,
    containers: BTreeMap<String, Vec<ContainerId>>,
}

#[derive(Clone, Debug)]
struct Place {
    pod: PodName,
    container: Option<String>,
    number: usize,
}

impl Names {
    pub(super) fn add_pod(&mut self, name: &PodName, pod: Arc<Pod>) {
        self.uids
            .entry(pod.uid.clone())
            .or_insert_with(|| name.clone());
        self.pods.entry(name.clone()).or_insert(PodEntry {
            pod,
            sandboxes: Vec::new(),
            containers: BTreeMap::new(),
        });
    }

    pub(super) fn add_sandbox(&mut self, pod: &PodName, id: &SandboxId) {
        if let Some(entry) = self.pods.get_mut(pod) {
            let place = Place {
                pod: pod.clone(),
                container: None,
                number: entry.sandboxes.len(),
            };
            self.places.insert(id.as_str().into(), place);
            entry.sandboxes.push(id.clone());
        }
    }

    pub(super) fn add_container(&mut self, pod: &PodName, name: &str, id: &ContainerId) {
        if let Some(entry) = self.pods.get_mut(pod) {
            let of_name = entry.containers.entry(name.to_owned()).or_default();
            let place = Place {
                pod: pod.clone(),
                container: Some(name.to_owned()),
                number: of_name.len(),
            };
            self.places.insert(id.as_str().into(), place);
            of_name.push(id.clone());
        }
    }

    /// The pods whose names begin so, in order of name.
    pub(super) fn pods_named(&self, prefix: &str) -> Vec<PodName> {
        self.pods
            .keys()
            .filter(|name| name.0.starts_with(prefix))
            .cloned()
            .collect()
    }

    /// The names of a pod's containers.
    pub(super) fn containers_of(&self, pod: &PodName) -> Vec<String> {
        self.pods
            .get(pod)
            .map(|entry| entry.containers.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// The sandboxes that a pod ever had, oldest first.
    pub(super) fn sandboxes_of(&self, pod: &PodName) -> Result<Vec<SandboxId>, String> {
        self.entry(pod).map(|entry| entry.sandboxes.clone())
    }

    /// The pod as the runtime was given it.
    pub(super) fn pod(&self, name: &PodName) -> Result<Arc<Pod>, String> {
        self.entry(name).map(|entry| Arc::clone(&entry.pod))
    }

    pub(super) fn has_pod(&self, name: &PodName) -> bool {
        self.pods.contains_key(name)
    }

    pub(super) fn uid(&self, name: &PodName) -> Result<PodUid, String> {
        self.entry(name).map(|entry| entry.pod.uid.clone())
    }

    pub(super) fn sandbox(&self, name: &SandboxName) -> Result<SandboxId, String> {
        let sandboxes = &self.entry(&name.pod)?.sandboxes;
        pick(sandboxes, name.number).ok_or_else(|| {
            format!(
                "there is no sandbox {name} yet: {} has had {}",
                name.pod,
                sandboxes.len()
            )
        })
    }

    pub(super) fn container(&self, name: &ContainerName) -> Result<ContainerId, String> {
        let entry = self.entry(&name.pod)?;
        entry
            .containers
            .get(&name.name)
            .and_then(|of_name| pick(of_name, name.number))
            .ok_or_else(|| {
                let known: Vec<_> = entry.containers.keys().map(String::as_str).collect();
                let known = if known.is_empty() {
                    "no containers".to_owned()
                } else {
                    known.join(", ")
                };
                format!(
                    "there is no container {name} yet: {} has had {known}",
                    name.pod
                )
            })
    }

    pub(super) fn subject(&self, name: &SubjectName) -> Result<SubjectId, String> {
        match name {
            SubjectName::Sandbox(name) => self.sandbox(name).map(SubjectId::Sandbox),
            SubjectName::Container(name) => self.container(name).map(SubjectId::Container),
        }
    }

    /// The short name of a container or sandbox.
    #[must_use]
    pub fn of(&self, id: &str) -> String {
        let Some(place) = self.places.get(id) else {
            return if id.is_empty() {
                "(no id)".to_owned()
            } else {
                id.chars().take(12).collect()
            };
        };
        let mut name = place.pod.0.clone();
        let siblings = self
            .pods
            .get(&place.pod)
            .map_or(0, |entry| match &place.container {
                None => entry.sandboxes.len(),
                Some(container) => entry.containers.get(container).map_or(0, Vec::len),
            });
        if let Some(container) = &place.container {
            name.push('/');
            name.push_str(container);
        }
        if siblings > 1 {
            // A String never fails.
            let _ = write!(name, "#{}", place.number);
        }
        name
    }

    /// The short name of a pod.
    #[must_use]
    pub fn of_pod(&self, uid: &PodUid) -> String {
        self.uids
            .get(uid)
            .map_or_else(|| uid.as_str().to_owned(), |name| name.0.clone())
    }

    /// An event in words, as expectations have it.
    #[must_use]
    pub fn event(&self, event: &LifecycleEvent) -> String {
        let mut words = kind_in_words(event.kind).to_owned();
        words.push(' ');
        words.push_str(&match (&event.subject, event.kind) {
            (None, _) | (_, LifecycleKind::PodSync) => self.of_pod(&event.pod.uid),
            (Some(EventSubject::Sandbox { id, .. }), _) => self.of(id.as_str()),
            (Some(EventSubject::Container { id, .. }), _) => self.of(id.as_str()),
        });
        if let Some(exit) = &event.exit {
            let _ = write!(words, " {}", exit.exit_code);
            if !exit.reason.is_empty() {
                let _ = write!(words, " {}", exit.reason);
            }
        }
        let _ = write!(words, " by {}", event.source);
        words
    }

    fn entry(&self, name: &PodName) -> Result<&PodEntry, String> {
        self.pods.get(name).ok_or_else(|| {
            let known: Vec<_> = self.pods.keys().take(5).map(|name| &*name.0).collect();
            if known.is_empty() {
                format!("there is no pod {name} yet: nothing has been run")
            } else {
                format!("there is no pod {name} yet, but {}", known.join(", "))
            }
        })
    }
}

pub(super) fn kind_in_words(kind: LifecycleKind) -> &'static str {
    match kind {
        LifecycleKind::ContainerStarted => "Started",
        LifecycleKind::ContainerDied => "Died",
        LifecycleKind::ContainerRemoved => "Removed",
        LifecycleKind::PodSync => "PodSync",
    }
}

fn pick<T: Clone>(all: &[T], number: Option<usize>) -> Option<T> {
    match number {
        None => all.last().cloned(),
        Some(number) => all.get(number).cloned(),
    }
}
