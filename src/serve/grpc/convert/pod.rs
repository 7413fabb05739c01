//! Pods.

use super::super::messages::{self, State};
use super::{Unreadable, arcs, identity, identity_from, nanos, texts};
use crate::lifecycle::{PodContainer, PodSandbox, PodStatus, ReportedState, Revision, UnixNanos};

/// A pod for the wire.
#[must_use]
pub fn pod(status: &PodStatus) -> messages::PodStatus {
    messages::PodStatus {
        pod: Some(identity(&status.pod)),
        ips: texts(&status.ips),
        error: status.error.as_ref().map(ToString::to_string),
        sandboxes: status.sandboxes.iter().map(sandbox).collect(),
        containers: status.containers.iter().map(container).collect(),
        revision: status.revision.0,
    }
}

fn sandbox(sandbox: &PodSandbox) -> messages::PodSandbox {
    messages::PodSandbox {
        id: sandbox.id.to_string(),
        attempt: sandbox.attempt,
        state: state(sandbox.state).into(),
        created_at: nanos(sandbox.created_at),
        ips: texts(&sandbox.ips),
        host_network: sandbox.host_network,
    }
}

fn container(container: &PodContainer) -> messages::PodContainer {
    messages::PodContainer {
        id: container.id.to_string(),
        name: container.name.to_string(),
        attempt: container.attempt,
        sandbox_id: container.sandbox_id.as_ref().map(ToString::to_string),
        state: state(container.state).into(),
        created_at: nanos(container.created_at),
        started_at: nanos(container.started_at),
        finished_at: nanos(container.finished_at),
        exit_code: container.exit_code,
        reason: container.reason.to_string(),
        message: container.message.to_string(),
        image: container.image.to_string(),
        image_ref: container.image_ref.to_string(),
    }
}

fn state(state: ReportedState) -> State {
    match state {
        ReportedState::Unknown => State::Unknown,
        ReportedState::Created => State::Created,
        ReportedState::Running => State::Running,
        ReportedState::Exited => State::Exited,
    }
}

/// A pod from the wire.
///
/// # Errors
///
/// If it has no name.
pub fn pod_from(status: messages::PodStatus) -> Result<PodStatus, Unreadable> {
    Ok(PodStatus {
        pod: identity_from(status.pod)?,
        ips: arcs(status.ips),
        error: status.error.map(Into::into),
        sandboxes: status.sandboxes.into_iter().map(sandbox_from).collect(),
        containers: status.containers.into_iter().map(container_from).collect(),
        revision: Revision(status.revision),
    })
}

fn sandbox_from(sandbox: messages::PodSandbox) -> PodSandbox {
    PodSandbox {
        state: state_from(sandbox.state()),
        id: sandbox.id.into(),
        attempt: sandbox.attempt,
        created_at: sandbox.created_at.map(UnixNanos),
        ips: arcs(sandbox.ips),
        host_network: sandbox.host_network,
    }
}

fn container_from(container: messages::PodContainer) -> PodContainer {
    PodContainer {
        state: state_from(container.state()),
        id: container.id.into(),
        name: container.name.into(),
        attempt: container.attempt,
        sandbox_id: container.sandbox_id.map(Into::into),
        created_at: container.created_at.map(UnixNanos),
        started_at: container.started_at.map(UnixNanos),
        finished_at: container.finished_at.map(UnixNanos),
        exit_code: container.exit_code,
        reason: container.reason.into(),
        message: container.message.into(),
        image: container.image.into(),
        image_ref: container.image_ref.into(),
    }
}

/// A state that this client does not know reads as `Unknown`, as with the runtime's own.
fn state_from(state: State) -> ReportedState {
    match state {
        State::Unknown => ReportedState::Unknown,
        State::Created => ReportedState::Created,
        State::Running => ReportedState::Running,
        State::Exited => ReportedState::Exited,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::PodIdentity;

    #[test]
    fn a_pod_survives_the_wire() {
        let running = PodContainer {
            id: "c".into(),
            name: "app".into(),
            attempt: 3,
            sandbox_id: Some("s".into()),
            state: ReportedState::Running,
            created_at: Some(UnixNanos(1)),
            started_at: Some(UnixNanos(2)),
            finished_at: None,
            exit_code: None,
            reason: "".into(),
            message: "".into(),
            image: "app:1".into(),
            image_ref: "sha256:1".into(),
        };
        let ended = PodContainer {
            state: ReportedState::Exited,
            sandbox_id: None,
            finished_at: Some(UnixNanos(3)),
            exit_code: Some(0),
            reason: "Completed".into(),
            message: "done".into(),
            ..running.clone()
        };
        let status = PodStatus {
            pod: PodIdentity {
                uid: "u".into(),
                namespace: "shop".into(),
                name: "web-1".into(),
            },
            ips: vec!["10.0.0.7".into(), "fd00::7".into()],
            error: Some("DeadlineExceeded".into()),
            sandboxes: vec![PodSandbox {
                id: "s".into(),
                attempt: 1,
                state: ReportedState::Unknown,
                created_at: None,
                ips: vec!["10.0.0.7".into()],
                host_network: true,
            }],
            containers: vec![running, ended],
            revision: Revision(12),
        };
        assert_eq!(pod_from(pod(&status)), Ok(status));
    }
}
