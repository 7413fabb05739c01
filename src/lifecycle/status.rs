//! `PodStatus`: what the cache holds of one pod. One shape for the library, the JSON and the daemon.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ContainerId, PodIdentity, ReportedState, Revision, SandboxId, UnixNanos};

/// A pod as the node's runtime shows it. Labels, annotations, mounts and resources are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PodStatus {
    /// Uid, namespace and name.
    #[serde(flatten)]
    pub pod: PodIdentity,
    /// The addresses of the newest sandbox, primary first. Once every sandbox has ended, the last
    /// ones known stay. Never inherited by a new sandbox.
    pub ips: Vec<Arc<str>>,
    /// Why the details below may be behind: the last inspection failed. Phases are still right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// Newest first: by attempt, then creation, then id.
    pub sandboxes: Vec<PodSandbox>,
    /// Newest first: by creation, then id. See [`PodStatus::container`] for the newest of a name.
    pub containers: Vec<PodContainer>,
    /// When this status was published.
    pub revision: Revision,
}

impl PodStatus {
    /// The newest container of a name: by attempt, then creation, then id (the kubelet's issue 83050:
    /// creation times alone mislead when the clock steps).
    #[must_use]
    pub fn container(&self, name: &str) -> Option<&PodContainer> {
        self.containers
            .iter()
            .filter(|container| &*container.name == name)
            .max_by(|a, b| {
                (a.attempt, a.created_at)
                    .cmp(&(b.attempt, b.created_at))
                    .then_with(|| b.id.cmp(&a.id))
            })
    }

    /// The containers that run.
    pub fn running(&self) -> impl Iterator<Item = &PodContainer> {
        self.containers
            .iter()
            .filter(|container| container.state == ReportedState::Running)
    }

    /// Puts sandboxes and containers in the documented order.
    pub(crate) fn sort(&mut self) {
        self.sandboxes.sort_by(newest_sandbox_first);
        self.containers.sort_by(|a, b| {
            b.created_at
                .cmp(&a.created_at)
                .then_with(|| a.id.cmp(&b.id))
        });
    }
}

/// The order of a pod's sandboxes: attempt, then creation, newest first; then id, upwards.
pub(crate) fn newest_sandbox_first(a: &PodSandbox, b: &PodSandbox) -> Ordering {
    (b.attempt, b.created_at)
        .cmp(&(a.attempt, a.created_at))
        .then_with(|| a.id.cmp(&b.id))
}

/// One sandbox of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PodSandbox {
    /// Its id.
    pub id: SandboxId,
    /// Which try of the pod it is, from 0.
    pub attempt: u32,
    /// Ready is `Running`, not ready is `Exited`.
    pub state: ReportedState,
    /// When it was made, by the runtime's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<UnixNanos>,
    /// Its own addresses, as last reported while it was ready.
    pub ips: Vec<Arc<str>>,
    /// Whether it uses the node's network.
    pub host_network: bool,
}

/// One container of a pod. What only an inspection tells is absent until one did.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PodContainer {
    /// Its id.
    pub id: ContainerId,
    /// Its name in the pod.
    pub name: Arc<str>,
    /// Which try of that name it is, from 0; the kubelet's restart count.
    pub attempt: u32,
    /// The sandbox that it runs in, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<SandboxId>,
    /// Where it stands.
    pub state: ReportedState,
    /// When it was made, by the runtime's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<UnixNanos>,
    /// When it began to run; absent for a start that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixNanos>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<UnixNanos>,
    /// Its exit code, once exited and inspected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The runtime's reason for the end; empty if none.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Arc<str>,
    /// More of the reason; empty if none.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub message: Arc<str>,
    /// The image as asked for.
    pub image: Arc<str>,
    /// The image as resolved.
    pub image_ref: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(id: &str, name: &str, state: ReportedState, created_at: i64) -> PodContainer {
        PodContainer {
            id: id.into(),
            name: name.into(),
            attempt: 0,
            sandbox_id: None,
            state,
            created_at: UnixNanos::from_cri(created_at),
            started_at: None,
            finished_at: None,
            exit_code: None,
            reason: "".into(),
            message: "".into(),
            image: "".into(),
            image_ref: "".into(),
        }
    }

    fn status(containers: Vec<PodContainer>) -> PodStatus {
        let mut status = PodStatus {
            pod: PodIdentity {
                uid: "u".into(),
                namespace: "".into(),
                name: "".into(),
            },
            ips: Vec::new(),
            error: None,
            sandboxes: Vec::new(),
            containers,
            revision: Revision(1),
        };
        status.sort();
        status
    }

    fn ids<'a>(containers: impl IntoIterator<Item = &'a PodContainer>) -> Vec<&'a str> {
        containers
            .into_iter()
            .map(|item| item.id.as_str())
            .collect()
    }

    /// K-SORTC-1, 2, 4, 5 and 6
    #[test]
    fn containers_are_ordered_by_creation_newest_first_then_id() {
        let running = |id: &str, at| container(id, "app", ReportedState::Running, at);
        for (created, order) in [
            (
                vec![("c1", 10), ("c2", 40), ("c3", 30)],
                vec!["c2", "c3", "c1"],
            ),
            (
                vec![("zzz", 5), ("aaa", 5), ("mmm", 5)],
                vec!["aaa", "mmm", "zzz"],
            ),
            (vec![], vec![]),
            (vec![("only-one", 1)], vec!["only-one"]),
        ] {
            let all = created
                .into_iter()
                .map(|(id, at)| running(id, at))
                .collect();
            assert_eq!(ids(&status(all).containers), order);
        }
    }

    /// K-BYNAME-1 to 4 and K-RUNNING
    #[test]
    fn a_container_is_found_by_its_name_or_not_at_all() {
        let status = status(vec![
            container("a", "one", ReportedState::Running, 30),
            container("b", "two", ReportedState::Exited, 20),
            container("c", "one", ReportedState::Created, 10),
            container("d", "three", ReportedState::Running, 5),
        ]);
        let found = |name| status.container(name).map(|found| found.id.as_str());
        assert_eq!(found("one"), Some("a"));
        assert_eq!(found("two"), Some("b"));
        assert_eq!(found("nonexistent"), None);
        assert_eq!(found(""), None);
        assert_eq!(ids(status.running()), ["a", "d"]);
    }
}
