//! What the model's runtime really holds: one pod, up to two sandboxes and two containers, and how
//! far each has come.
//!
//! It owns the rules of what may happen next and the rendering of a state of affairs as CRI would
//! show it. It knows nothing of streams, calls or the engine.

use std::fmt;
use std::sync::Arc;

use crate::engine::{Answer, Failure, FailureKind, Inspection};
use crate::lifecycle::{
    ContainerId, ContainerListing, ContainerStatus, NodeList, Phase, PodIdentity, PodUid,
    ReportedState, SandboxId, SandboxListing, SandboxStatus, SubjectId, UnixNanos,
};

/// The most subjects that a cast can have.
pub(super) const MAX_SUBJECTS: usize = 4;

/// A subject, by its place in the cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subject(pub u8);

impl Subject {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What a subject of the cast is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// The pod's sandbox of this attempt.
    Sandbox { attempt: u32 },
    /// A container of this name and attempt, inside a sandbox.
    Container {
        name: &'static str,
        attempt: u32,
        sandbox: Subject,
    },
}

/// Who takes part. Sandboxes come before the containers in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    pub roles: &'static [Role],
    /// Whether the kubelet made the pod: what crictl makes carries no labels, and no filter by
    /// the pod's uid shows it.
    pub labelled: bool,
}

/// One sandbox and one container.
pub(crate) const ONE_CONTAINER: Cast = Cast {
    labelled: true,
    roles: &[
        Role::Sandbox { attempt: 0 },
        Role::Container {
            name: "app",
            attempt: 0,
            sandbox: Subject(0),
        },
    ],
};

/// One sandbox with two containers.
pub(crate) const TWO_CONTAINERS: Cast = Cast {
    labelled: true,
    roles: &[
        Role::Sandbox { attempt: 0 },
        Role::Container {
            name: "app",
            attempt: 0,
            sandbox: Subject(0),
        },
        Role::Container {
            name: "sidecar",
            attempt: 0,
            sandbox: Subject(0),
        },
    ],
};

/// The same, made by crictl.
pub(crate) const UNLABELLED: Cast = Cast {
    labelled: false,
    ..ONE_CONTAINER
};

/// A pod that is made anew: two sandboxes, each with its own try of the container.
pub(crate) const TWO_SANDBOXES: Cast = Cast {
    labelled: true,
    roles: &[
        Role::Sandbox { attempt: 0 },
        Role::Sandbox { attempt: 1 },
        Role::Container {
            name: "app",
            attempt: 0,
            sandbox: Subject(0),
        },
        Role::Container {
            name: "app",
            attempt: 1,
            sandbox: Subject(1),
        },
    ],
};

impl Cast {
    pub(super) fn subjects(self) -> impl Iterator<Item = Subject> {
        (0u8..).take(self.roles.len()).map(Subject)
    }

    pub(super) fn role(self, subject: Subject) -> Role {
        self.roles[subject.index()]
    }

    pub(super) fn is_sandbox(self, subject: Subject) -> bool {
        matches!(self.role(subject), Role::Sandbox { .. })
    }

    /// The sandbox itself, or the sandbox around a container.
    pub(super) fn sandbox_of(self, subject: Subject) -> Subject {
        match self.role(subject) {
            Role::Sandbox { .. } => subject,
            Role::Container { sandbox, .. } => sandbox,
        }
    }

    pub(crate) fn id(self, subject: Subject) -> SubjectId {
        match self.role(subject) {
            Role::Sandbox { .. } => SubjectId::Sandbox(sandbox_id(subject)),
            Role::Container { .. } => SubjectId::Container(container_id(subject)),
        }
    }

    pub(super) fn subject(self, id: &SubjectId) -> Option<Subject> {
        self.subjects().find(|&subject| self.id(subject) == *id)
    }
}

/// How far a subject has come. The order is the order of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Stage {
    /// Not born.
    Absent,
    /// A container, not started.
    Created,
    /// A sandbox, ready, that has no address yet.
    Addressless,
    /// Running; of a sandbox: ready.
    Running,
    /// A container that runs, but the runtime does not know that any more.
    Obscured,
    /// A container whose start failed; the runtime gives no event of it.
    StartFailed,
    /// Ended; of a sandbox: not ready.
    Exited,
    /// Gone.
    Removed,
}

impl Stage {
    pub(super) fn is_present(self) -> bool {
        !matches!(self, Self::Absent | Self::Removed)
    }

    /// The phase that a true observer reports; `None` before birth.
    pub(super) fn phase(self) -> Option<Phase> {
        match self {
            Self::Absent => None,
            Self::Created => Some(Phase::Created),
            Self::Addressless | Self::Running | Self::Obscured => Some(Phase::Running),
            Self::StartFailed | Self::Exited => Some(Phase::Exited),
            Self::Removed => Some(Phase::Removed),
        }
    }

    fn state(self) -> ReportedState {
        match self.phase().filter(|_| self != Self::Obscured) {
            Some(Phase::Created) => ReportedState::Created,
            Some(Phase::Running) => ReportedState::Running,
            Some(Phase::Exited) => ReportedState::Exited,
            Some(Phase::Removed) | None => ReportedState::Unknown,
        }
    }

    /// The exit code that a status shows.
    pub(super) fn exit_code(self) -> Option<i32> {
        match self {
            Self::StartFailed => Some(128),
            Self::Exited => Some(7),
            _ => None,
        }
    }
}

/// The state of affairs in the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Truth([Stage; MAX_SUBJECTS]);

impl fmt::Debug for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter()).finish()
    }
}

impl Truth {
    pub(crate) const NOTHING: Self = Self([Stage::Absent; MAX_SUBJECTS]);

    pub(crate) fn stage(&self, subject: Subject) -> Stage {
        self.0[subject.index()]
    }

    pub(crate) fn with(mut self, subject: Subject, stage: Stage) -> Self {
        self.0[subject.index()] = stage;
        self
    }

    /// What may become of a subject next.
    pub(super) fn nexts(&self, cast: Cast, subject: Subject, addresses_late: bool) -> Vec<Stage> {
        let stage = self.stage(subject);
        let mut housed = cast
            .subjects()
            .filter(|&other| other != subject && cast.sandbox_of(other) == subject)
            .map(|other| self.stage(other));
        match (cast.role(subject), stage) {
            (Role::Sandbox { attempt }, Stage::Absent) => {
                let predecessor_lives = cast.subjects().any(|other| {
                    matches!(cast.role(other), Role::Sandbox { attempt: a } if a < attempt)
                        && !matches!(self.stage(other), Stage::Exited | Stage::Removed)
                });
                match (predecessor_lives, addresses_late) {
                    (true, _) => vec![],
                    (false, false) => vec![Stage::Running],
                    (false, true) => vec![Stage::Running, Stage::Addressless],
                }
            }
            (Role::Sandbox { .. }, Stage::Addressless) => vec![Stage::Running],
            (Role::Sandbox { .. }, Stage::Running) => match housed.max_by_key(Self::hold) {
                Some(Stage::Running | Stage::Obscured) => vec![],
                Some(other) if other.is_present() => vec![Stage::Exited],
                _ => vec![Stage::Exited, Stage::Removed],
            },
            (Role::Sandbox { .. }, Stage::Exited) => {
                if housed.any(Stage::is_present) {
                    vec![]
                } else {
                    vec![Stage::Removed]
                }
            }
            (Role::Container { sandbox, .. }, Stage::Absent) => {
                if self.stage(sandbox) == Stage::Running {
                    vec![Stage::Created]
                } else {
                    vec![]
                }
            }
            (Role::Container { sandbox, .. }, Stage::Created) => {
                if self.stage(sandbox) == Stage::Running {
                    vec![Stage::Running, Stage::StartFailed, Stage::Removed]
                } else {
                    vec![Stage::Removed]
                }
            }
            (Role::Container { .. }, Stage::Running | Stage::Obscured) => {
                vec![Stage::Exited, Stage::Removed]
            }
            (Role::Container { .. }, Stage::StartFailed | Stage::Exited) => vec![Stage::Removed],
            _ => vec![],
        }
    }

    /// How firmly a container keeps its sandbox: a running one forbids that it ends, one that is
    /// there forbids that it goes.
    fn hold(stage: &Stage) -> u8 {
        match stage {
            Stage::Running | Stage::Obscured => 2,
            other if other.is_present() => 1,
            _ => 0,
        }
    }

    /// The two lists filtered by the pod's uid, each of its own moment.
    pub(super) fn pod_lists(cast: Cast, sandboxes: &Self, containers: &Self) -> NodeList {
        if cast.labelled {
            Self::lists(cast, sandboxes, containers)
        } else {
            NodeList::default()
        }
    }

    /// The two lists, each of its own moment.
    pub(super) fn lists(cast: Cast, sandboxes: &Self, containers: &Self) -> NodeList {
        let mut list = NodeList::default();
        for subject in cast.subjects() {
            match cast.role(subject) {
                Role::Sandbox { attempt } => {
                    let stage = sandboxes.stage(subject);
                    if stage.is_present() {
                        list.sandboxes.items.push(Arc::new(SandboxListing {
                            id: sandbox_id(subject),
                            pod: pod(),
                            attempt,
                            state: stage.state(),
                            created_at: Some(born(subject)),
                            labelled: cast.labelled,
                        }));
                    }
                }
                Role::Container {
                    name,
                    attempt,
                    sandbox,
                } => {
                    let stage = containers.stage(subject);
                    if stage.is_present() {
                        list.containers.items.push(Arc::new(ContainerListing {
                            id: container_id(subject),
                            sandbox: Some(sandbox_id(sandbox)),
                            pod: cast.labelled.then(pod),
                            name: name.into(),
                            attempt,
                            state: stage.state(),
                            created_at: Some(born(subject)),
                            image: image(),
                            image_ref: image(),
                        }));
                    }
                }
            }
        }
        list
    }

    pub(super) fn sandbox_status(&self, cast: Cast, subject: Subject) -> Option<SandboxStatus> {
        let Role::Sandbox { attempt } = cast.role(subject) else {
            return None;
        };
        let stage = self.stage(subject);
        stage.is_present().then(|| SandboxStatus {
            id: sandbox_id(subject),
            pod: pod(),
            attempt,
            state: stage.state(),
            created_at: Some(born(subject)),
            ips: match stage {
                Stage::Running => vec![address(subject)],
                _ => vec![],
            },
            host_network: false,
            labelled: cast.labelled,
        })
    }

    pub(super) fn container_status(&self, cast: Cast, subject: Subject) -> Option<ContainerStatus> {
        let Role::Container { name, attempt, .. } = cast.role(subject) else {
            return None;
        };
        let stage = self.stage(subject);
        stage.is_present().then(|| ContainerStatus {
            id: container_id(subject),
            pod: cast.labelled.then(pod),
            name: name.into(),
            attempt,
            state: stage.state(),
            created_at: Some(born(subject)),
            started_at: matches!(stage, Stage::Running | Stage::Obscured | Stage::Exited)
                .then(|| UnixNanos(born(subject).0 + 1_000_000)),
            finished_at: stage
                .exit_code()
                .map(|_| UnixNanos(born(subject).0 + 2_000_000)),
            exit_code: stage.exit_code().unwrap_or(0),
            reason: match stage {
                Stage::StartFailed => "StartError".into(),
                Stage::Exited => "Error".into(),
                _ => "".into(),
            },
            message: "".into(),
            image: image(),
            image_ref: image(),
        })
    }

    /// The statuses of a sandbox's containers, as an event carries them.
    pub(super) fn containers_in(&self, cast: Cast, sandbox: Subject) -> Vec<ContainerStatus> {
        cast.subjects()
            .filter(|&subject| cast.sandbox_of(subject) == sandbox)
            .filter_map(|subject| self.container_status(cast, subject))
            .collect()
    }

    /// The answer to an inspection whose sandboxes and containers are of their own moments.
    pub(super) fn inspection(
        cast: Cast,
        (sandbox_ids, of_sandboxes): (&[SandboxId], &Self),
        (container_ids, of_containers): (&[ContainerId], &Self),
    ) -> Inspection {
        Inspection {
            sandboxes: sandbox_ids
                .iter()
                .map(|id| {
                    let status = cast
                        .subject(&SubjectId::Sandbox(id.clone()))
                        .and_then(|subject| of_sandboxes.sandbox_status(cast, subject));
                    (id.clone(), status.ok_or_else(not_found))
                })
                .collect(),
            containers: container_ids
                .iter()
                .map(|id| {
                    let status = cast
                        .subject(&SubjectId::Container(id.clone()))
                        .and_then(|subject| of_containers.container_status(cast, subject));
                    (id.clone(), status.ok_or_else(not_found))
                })
                .collect(),
        }
    }
}

/// The same answer with nothing in it: the call failed.
pub(super) fn failed(answer: Answer) -> Answer {
    match answer {
        Answer::Version(_) => Answer::Version(Err(unavailable())),
        Answer::Listed(_) => Answer::Listed(Err(unavailable())),
        Answer::Inspected(inspection) => Answer::Inspected(Inspection {
            sandboxes: inspection
                .sandboxes
                .into_iter()
                .map(|(id, _)| (id, Err(unavailable())))
                .collect(),
            containers: inspection
                .containers
                .into_iter()
                .map(|(id, _)| (id, Err(unavailable())))
                .collect(),
        }),
    }
}

pub(crate) fn unavailable() -> Failure {
    Failure {
        kind: FailureKind::Unavailable,
        message: "connection refused".into(),
    }
}

fn not_found() -> Failure {
    Failure {
        kind: FailureKind::NotFound,
        message: "not found".into(),
    }
}

pub(crate) fn pod() -> PodIdentity {
    PodIdentity {
        uid: PodUid::from("pod"),
        namespace: "default".into(),
        name: "web".into(),
    }
}

pub(super) fn address(sandbox: Subject) -> Arc<str> {
    format!("10.0.0.{}", sandbox.0 + 1).into()
}

fn sandbox_id(subject: Subject) -> SandboxId {
    SandboxId::from(format!("s{}", subject.0))
}

fn container_id(subject: Subject) -> ContainerId {
    ContainerId::from(format!("c{}", subject.0))
}

fn image() -> Arc<str> {
    "web:1".into()
}

/// Creation stamps are constants: they order nothing, and a clock's would only multiply states.
fn born(subject: Subject) -> UnixNanos {
    UnixNanos(1_600_000_000_000_000_000 + i64::from(subject.0) * 1_000_000_000)
}
