//! What the runtime's own lists and statuses say, and what a cached pod says, in one comparable form.

use std::collections::BTreeSet;

use pleg::lifecycle::{PodIdentity, PodStatus, ReportedState};

use crate::driver::Driver;
use crate::wire::{Container, ContainerState, PodSandbox, PodSandboxState};

/// One sandbox or container as it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    Sandbox {
        pod: String,
        id: String,
        attempt: u32,
        state: ReportedState,
        /// As long as it is ready.
        ips: Vec<String>,
    },
    Container {
        id: String,
        sandbox: String,
        name: String,
        attempt: u32,
        state: ReportedState,
        /// Once it has ended.
        exit: Option<(i32, String, i64)>,
    },
}

pub(crate) type Listed = BTreeSet<Entry>;

/// A pod as the cache shows it.
pub(crate) fn shown_of(status: &PodStatus) -> Listed {
    let sandboxes = status.sandboxes.iter().map(|sandbox| Entry::Sandbox {
        pod: status.pod.uid.to_string(),
        id: sandbox.id.to_string(),
        attempt: sandbox.attempt,
        state: sandbox.state,
        ips: match sandbox.state {
            ReportedState::Running => sandbox.ips.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        },
    });
    let containers = status.containers.iter().map(|container| Entry::Container {
        id: container.id.to_string(),
        sandbox: container
            .sandbox_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        name: container.name.to_string(),
        attempt: container.attempt,
        state: container.state,
        exit: container.exit_code.map(|code| {
            let finished_at = container.finished_at.map_or(0, |at| at.0);
            (code, container.reason.to_string(), finished_at)
        }),
    });
    sandboxes.chain(containers).collect()
}

/// A pod as the runtime lists it.
pub(crate) async fn listed_of_pod(driver: &Driver, pod: &PodIdentity) -> Listed {
    let (sandboxes, containers) = driver.list(pod).await.expect("the pod is listed");
    listed(driver, sandboxes, containers).await
}

/// The whole node as the runtime lists it.
pub(crate) async fn listed_of_node(driver: &Driver) -> Listed {
    let (sandboxes, containers) = driver.list_node().await.expect("the node is listed");
    listed(driver, sandboxes, containers).await
}

async fn listed(driver: &Driver, sandboxes: Vec<PodSandbox>, containers: Vec<Container>) -> Listed {
    let mut entries = Listed::new();
    for sandbox in sandboxes {
        let is_ready = sandbox.state() == PodSandboxState::SandboxReady;
        let metadata = sandbox.metadata.unwrap_or_default();
        entries.insert(Entry::Sandbox {
            ips: if is_ready {
                driver.addresses(&sandbox.id).await.expect("it is there")
            } else {
                Vec::new()
            },
            pod: metadata.uid,
            id: sandbox.id,
            attempt: metadata.attempt,
            state: if is_ready {
                ReportedState::Running
            } else {
                ReportedState::Exited
            },
        });
    }
    for container in containers {
        let state = match container.state() {
            ContainerState::ContainerCreated => ReportedState::Created,
            ContainerState::ContainerRunning => ReportedState::Running,
            ContainerState::ContainerExited => ReportedState::Exited,
            ContainerState::ContainerUnknown => ReportedState::Unknown,
        };
        let exit = match state {
            ReportedState::Exited => {
                let id = container.id.as_str().into();
                let status = driver.status(&id).await.expect("it is there");
                Some((status.exit_code, status.reason, status.finished_at))
            }
            _ => None,
        };
        let metadata = container.metadata.unwrap_or_default();
        entries.insert(Entry::Container {
            id: container.id,
            sandbox: container.pod_sandbox_id,
            name: metadata.name,
            attempt: metadata.attempt,
            state,
            exit,
        });
    }
    entries
}
