//! The truth that the engine is held against: what the runtime has, and what it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::{
    Answer, Failure, FailureKind, Inspection, Question, RuntimeVersion, StreamEnd,
};
use crate::lifecycle::{
    ContainerId, ContainerListing, ContainerStatus, EventKind, NodeList, PodIdentity,
    ReportedState, RuntimeEvent, SandboxId, SandboxListing, SandboxStatus, UnixNanos,
};

/// What the runtime does when it is asked for its event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    Events,
    /// A clean end after a millisecond, as CRI-O with events switched off.
    NothingAtOnce,
    Unimplemented,
}

/// A runtime with its sandboxes and containers.
pub(super) struct World {
    pub(super) sandboxes: BTreeMap<String, SandboxStatus>,
    /// Containers with the sandbox that each runs in.
    pub(super) containers: BTreeMap<String, (String, ContainerStatus)>,
    pub(super) wall: UnixNanos,
    pub(super) version: &'static str,
    pub(super) serves: Serves,
    /// Nobody answers at the socket.
    pub(super) is_down: bool,
    /// Lists fail at once.
    pub(super) lists_fail: bool,
    /// Pods whose statuses fail at once.
    pub(super) unreadable: BTreeSet<&'static str>,
    /// Ids whose status is `NotFound` although the list has them.
    pub(super) vanished: BTreeSet<&'static str>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            sandboxes: BTreeMap::new(),
            containers: BTreeMap::new(),
            wall: UnixNanos(0),
            version: "2.1.0",
            serves: Serves::Events,
            is_down: false,
            lists_fail: false,
            unreadable: BTreeSet::new(),
            vanished: BTreeSet::new(),
        }
    }

    /// Makes a ready sandbox, with the pod's next attempt number.
    pub(super) fn sandbox(&mut self, pod: &str, id: &str, ip: &str) {
        let of_pod = |known: &&SandboxStatus| known.pod.uid.as_str() == pod;
        let attempt = self.sandboxes.values().filter(of_pod).count();
        let sandbox = SandboxStatus {
            id: id.into(),
            pod: identity(pod),
            attempt: u32::try_from(attempt).unwrap(),
            state: ReportedState::Running,
            created_at: Some(self.wall),
            ips: ip.split_whitespace().map(Arc::from).collect(),
            host_network: false,
            labelled: true,
        };
        self.sandboxes.insert(id.into(), sandbox);
    }

    /// Makes a container; its name is its id.
    pub(super) fn create(&mut self, sandbox: &str, id: &str) {
        let container = ContainerStatus {
            id: id.into(),
            pod: Some(self.sandboxes[sandbox].pod.clone()),
            name: id.into(),
            attempt: 0,
            state: ReportedState::Created,
            created_at: Some(self.wall),
            started_at: None,
            finished_at: None,
            exit_code: 0,
            reason: "".into(),
            message: "".into(),
            image: "image".into(),
            image_ref: "sha256:image".into(),
        };
        self.containers
            .insert(id.into(), (sandbox.into(), container));
    }

    pub(super) fn start(&mut self, id: &str) {
        let wall = self.wall;
        let container = self.container(id);
        container.state = ReportedState::Running;
        container.started_at = Some(wall);
    }

    pub(super) fn run(&mut self, sandbox: &str, id: &str) {
        self.create(sandbox, id);
        self.start(id);
    }

    /// Ends a container with an exit code.
    pub(super) fn exit(&mut self, id: &str, code: i32) {
        let wall = self.wall;
        let container = self.container(id);
        container.state = ReportedState::Exited;
        container.finished_at = Some(wall);
        container.exit_code = code;
    }

    /// Makes a sandbox not ready, its network gone.
    pub(super) fn stop_sandbox(&mut self, id: &str) {
        let sandbox = self.sandbox_mut(id);
        sandbox.state = ReportedState::Exited;
        sandbox.ips.clear();
    }

    pub(super) fn remove(&mut self, id: &str) {
        let was_there = self.sandboxes.remove(id).is_some() | self.containers.remove(id).is_some();
        assert!(was_there, "{id} is not there");
    }

    pub(super) fn remove_all(&mut self) {
        self.sandboxes.clear();
        self.containers.clear();
    }

    pub(super) fn container(&mut self, id: &str) -> &mut ContainerStatus {
        &mut self.containers.get_mut(id).unwrap().1
    }

    pub(super) fn sandbox_mut(&mut self, id: &str) -> &mut SandboxStatus {
        self.sandboxes.get_mut(id).unwrap()
    }

    /// The message that the runtime makes now, with the statuses as they are now: of a container,
    /// those of its sandbox; of what is gone, whatever `sandbox` still has.
    pub(super) fn event(&self, kind: EventKind, id: &str, sandbox: &str) -> RuntimeEvent {
        let containers = self.containers.values();
        RuntimeEvent {
            id: id.into(),
            kind,
            stamp: self.wall.0,
            sandbox: self.sandboxes.get(sandbox).cloned(),
            containers: containers
                .filter(|(of, _)| of == sandbox)
                .map(|(_, status)| status.clone())
                .collect(),
            refused: Vec::new(),
        }
    }

    /// The sandbox that an id is or runs in.
    pub(super) fn sandbox_of(&self, id: &str) -> String {
        let by_container = self.containers.get(id).map(|(sandbox, _)| sandbox.clone());
        by_container.unwrap_or_else(|| id.into())
    }

    pub(super) fn stream_end(&self) -> Option<StreamEnd> {
        match self.serves {
            _ if self.is_down => Some(StreamEnd::Broken(unavailable())),
            Serves::Events => None,
            Serves::NothingAtOnce => Some(StreamEnd::Clean),
            Serves::Unimplemented => Some(StreamEnd::Unimplemented),
        }
    }

    pub(super) fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Version if self.is_down => Answer::Version(Err(unavailable())),
            Question::Version => Answer::Version(Ok(RuntimeVersion {
                name: "containerd".into(),
                version: self.version.into(),
                api_version: "v1".into(),
            })),
            Question::FullRelist | Question::PodRelist { .. }
                if self.is_down || self.lists_fail =>
            {
                Answer::Listed(Err(unavailable()))
            }
            Question::FullRelist => Answer::Listed(Ok(self.list(None))),
            Question::PodRelist { uid } => Answer::Listed(Ok(self.list(Some(uid.as_str())))),
            Question::Inspect {
                uid,
                sandboxes,
                containers,
            } => {
                let fails = self.is_down || self.unreadable.contains(uid.as_str());
                Answer::Inspected(self.inspect(fails, sandboxes, containers))
            }
        }
    }

    /// Both lists; filtered by a pod's label, they show only what carries it.
    pub(super) fn list(&self, pod: Option<&str>) -> NodeList {
        let is_shown = |labelled: Option<&PodIdentity>| {
            pod.is_none_or(|pod| labelled.is_some_and(|it| it.uid.as_str() == pod))
        };
        let sandboxes = self.sandboxes.values();
        let containers = self.containers.values();
        NodeList {
            sandboxes: sandboxes
                .filter(|status| is_shown(status.labelled.then_some(&status.pod)))
                .map(sandbox_listing)
                .collect::<Vec<_>>()
                .into(),
            containers: containers
                .filter(|(_, status)| is_shown(status.pod.as_ref()))
                .map(|(sandbox, status)| container_listing(sandbox, status))
                .collect::<Vec<_>>()
                .into(),
        }
    }

    fn inspect(
        &self,
        fails: bool,
        sandboxes: &[SandboxId],
        containers: &[ContainerId],
    ) -> Inspection {
        let look_up = |id: &str| match () {
            () if fails => Err(failure(FailureKind::Other, "network namespace busy")),
            () if self.vanished.contains(id) => Err(failure(FailureKind::NotFound, "not found")),
            () => Ok(()),
        };
        let gone = || failure(FailureKind::NotFound, "not found");
        let sandbox = |id: &SandboxId| {
            look_up(id.as_str())?;
            self.sandboxes.get(id.as_str()).cloned().ok_or_else(gone)
        };
        let container = |id: &ContainerId| {
            look_up(id.as_str())?;
            let known = self.containers.get(id.as_str());
            known.map(|(_, status)| status.clone()).ok_or_else(gone)
        };
        Inspection {
            sandboxes: sandboxes
                .iter()
                .map(|id| (id.clone(), sandbox(id)))
                .collect(),
            containers: containers
                .iter()
                .map(|id| (id.clone(), container(id)))
                .collect(),
        }
    }
}

pub(super) fn identity(pod: &str) -> PodIdentity {
    PodIdentity {
        uid: pod.into(),
        namespace: "default".into(),
        name: pod.into(),
    }
}

pub(super) fn failure(kind: FailureKind, message: &str) -> Failure {
    Failure {
        kind,
        message: message.into(),
    }
}

pub(super) fn unavailable() -> Failure {
    failure(FailureKind::Unavailable, "connection refused")
}

fn sandbox_listing(status: &SandboxStatus) -> SandboxListing {
    SandboxListing {
        id: status.id.clone(),
        pod: status.pod.clone(),
        attempt: status.attempt,
        state: status.state,
        created_at: status.created_at,
        labelled: status.labelled,
    }
}

fn container_listing(sandbox: &str, status: &ContainerStatus) -> ContainerListing {
    ContainerListing {
        id: status.id.clone(),
        sandbox: (!sandbox.is_empty()).then(|| sandbox.into()),
        pod: status.pod.clone(),
        name: status.name.clone(),
        attempt: status.attempt,
        state: status.state,
        created_at: status.created_at,
        image: status.image.clone(),
        image_ref: status.image_ref.clone(),
    }
}
