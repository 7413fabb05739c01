//! What the simulated runtime really holds, and what became of it when.
//!
//! It owns the rules of what may happen next and the rendering of the truth as CRI shows it. It knows
//! nothing of streams, calls or the engine.

use std::sync::Arc;

use super::act::{Act, BY_CRICTL, Named, ON_THE_HOST_NETWORK};
use crate::lifecycle::{
    ContainerId, ContainerListing, ContainerStatus, EventKind, Listed, Mark, Phase, PodIdentity,
    PodUid, ReportedState, SandboxId, SandboxListing, SandboxStatus, SubjectId, SubjectKind,
    UnixNanos,
};

/// How far a subject has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Created,
    Running,
    /// Running, but the runtime does not know that any more.
    Unknown,
    FailedToStart,
    Exited(i32),
    Removed,
}

impl Stage {
    pub(super) fn phase(self) -> Phase {
        match self {
            Self::Created => Phase::Created,
            Self::Running | Self::Unknown => Phase::Running,
            Self::FailedToStart | Self::Exited(_) => Phase::Exited,
            Self::Removed => Phase::Removed,
        }
    }

    pub(super) fn reported(self) -> Option<ReportedState> {
        match self {
            Self::Created => Some(ReportedState::Created),
            Self::Running => Some(ReportedState::Running),
            Self::Unknown => Some(ReportedState::Unknown),
            Self::FailedToStart | Self::Exited(_) => Some(ReportedState::Exited),
            Self::Removed => None,
        }
    }

    pub(super) fn exit_code(self) -> Option<i32> {
        match self {
            Self::FailedToStart => Some(128),
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::FailedToStart => "StartError",
            Self::Exited(0) => "Completed",
            Self::Exited(_) => "Error",
            _ => "",
        }
    }
}

/// What a subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Sandbox,
    /// A container of this name, in the sandbox at this place.
    Container {
        name: u8,
        sandbox: usize,
    },
}

/// A sandbox or a container, from its birth on; never forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(super) id: SubjectId,
    pub(super) pod: u8,
    pub(super) role: Role,
    pub(super) attempt: u32,
    pub(super) stage: Stage,
    /// The phases, each with the mark taken just before it became so.
    past: Vec<(Mark, Phase)>,
}

impl Subject {
    /// The phase at a mark; `None` before birth.
    pub(super) fn phase_at(&self, mark: Mark) -> Option<Phase> {
        self.past
            .iter()
            .rev()
            .find(|(since, _)| *since <= mark)
            .map(|(_, phase)| *phase)
    }
}

/// One change of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Birth { pod: u8, role: Role },
    Become { at: usize, stage: Stage },
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(super) subjects: Vec<Subject>,
}

pub(crate) fn uid(pod: u8) -> PodUid {
    PodUid::from(format!("uid-p{pod}"))
}

pub(super) fn identity(pod: u8) -> PodIdentity {
    PodIdentity {
        uid: uid(pod),
        namespace: "default".into(),
        name: format!("p{pod}").into(),
    }
}

fn container_name(name: u8) -> Arc<str> {
    format!("c{name}").into()
}

fn image() -> Arc<str> {
    "web:1".into()
}

/// Creation stamps order nothing that the laws speak of.
fn born(at: usize) -> UnixNanos {
    UnixNanos(1_600_000_000_000_000_000 + i64::try_from(at).unwrap_or(0) * 1_000_000_000)
}

impl Node {
    /// What an act would change, in order; `None` if it is impossible.
    pub(crate) fn changes(&self, act: Act) -> Option<Vec<Change>> {
        match act {
            Act::Run { pod, containers } => self.run(pod, containers),
            Act::Create(named) => Some(vec![self.birth_of(named)?]),
            Act::RunContainer(named) => Some(vec![
                self.birth_of(named)?,
                Change::Become {
                    at: self.subjects.len(),
                    stage: Stage::Running,
                },
            ]),
            Act::Start(named) => self.become_if(named, Stage::Running, Self::is_startable),
            Act::FailStart(named) => {
                self.become_if(named, Stage::FailedToStart, Self::is_startable)
            }
            Act::Exit { container, code } => {
                self.become_if(container, Stage::Exited(code), Self::runs)
            }
            Act::SetUnknown(named) => self.become_if(named, Stage::Unknown, |node, at| {
                node.subjects[at].stage == Stage::Running
            }),
            Act::Remove(named) => {
                let at = self.container(named)?;
                let mut changes = self.kill(at);
                changes.push(Change::Become {
                    at,
                    stage: Stage::Removed,
                });
                Some(changes)
            }
            Act::StopSandbox { pod } => {
                let at = self.sandbox(pod)?;
                (self.subjects[at].stage == Stage::Running).then(|| self.stop(at))
            }
            Act::LoseSandbox { pod } => {
                let at = self.sandbox(pod)?;
                let stage = Stage::Exited(0);
                (self.subjects[at].stage == Stage::Running)
                    .then(|| vec![Change::Become { at, stage }])
            }
            Act::RemoveSandbox { pod } => self.remove_sandbox(pod),
            _ => None,
        }
    }

    /// Makes a change true from this mark on; gives the place of whom it is about.
    pub(crate) fn make_true(&mut self, change: Change, mark: Mark) -> usize {
        match change {
            Change::Birth { pod, role } => {
                let at = self.subjects.len();
                let (id, stage) = match role {
                    Role::Sandbox => (
                        SubjectId::Sandbox(format!("s{at}").as_str().into()),
                        Stage::Running,
                    ),
                    Role::Container { .. } => (
                        SubjectId::Container(format!("c{at}").as_str().into()),
                        Stage::Created,
                    ),
                };
                let attempt = self.siblings(pod, role);
                self.subjects.push(Subject {
                    id,
                    pod,
                    role,
                    attempt,
                    stage,
                    past: vec![(mark, stage.phase())],
                });
                at
            }
            Change::Become { at, stage } => {
                let subject = &mut self.subjects[at];
                subject.stage = stage;
                subject.past.push((mark, stage.phase()));
                at
            }
        }
    }

    /// The messages that a change makes.
    pub(super) fn news_of(change: Change) -> &'static [EventKind] {
        match change {
            Change::Birth {
                role: Role::Sandbox,
                ..
            } => &[EventKind::Created, EventKind::Started],
            Change::Birth { .. } => &[EventKind::Created],
            Change::Become { stage, .. } => match stage {
                Stage::Running => &[EventKind::Started],
                Stage::Exited(_) => &[EventKind::Stopped],
                Stage::Removed => &[EventKind::Deleted],
                Stage::Created | Stage::Unknown | Stage::FailedToStart => &[],
            },
        }
    }

    pub(super) fn place(&self, id: &SubjectId) -> Option<usize> {
        let place: usize = id.as_str().get(1..)?.parse().ok()?;
        self.subjects
            .get(place)
            .is_some_and(|subject| subject.id == *id)
            .then_some(place)
    }

    /// The places of a pod's subjects, the removed ones too.
    pub(super) fn of_pod(&self, pod: u8) -> impl Iterator<Item = usize> {
        (0..self.subjects.len()).filter(move |&at| self.subjects[at].pod == pod)
    }

    pub(super) fn is_present(&self, at: usize) -> bool {
        self.subjects[at].stage != Stage::Removed
    }

    /// The newest container of a name that is there.
    pub(super) fn container(&self, named: Named) -> Option<usize> {
        self.of_pod(named.pod)
            .filter(|&at| self.is_present(at))
            .filter(|&at| matches!(self.subjects[at].role, Role::Container { name, .. } if name == named.name))
            .last()
    }

    /// The newest sandbox of a pod that is there.
    pub(super) fn sandbox(&self, pod: u8) -> Option<usize> {
        self.of_pod(pod)
            .filter(|&at| self.is_present(at) && self.subjects[at].role == Role::Sandbox)
            .last()
    }

    /// The containers that are there in a sandbox.
    fn housed(&self, sandbox: usize) -> impl Iterator<Item = usize> {
        (0..self.subjects.len()).filter(move |&at| {
            self.is_present(at)
                && matches!(self.subjects[at].role, Role::Container { sandbox: house, .. } if house == sandbox)
        })
    }

    fn siblings(&self, pod: u8, role: Role) -> u32 {
        let same = |other: Role| match (role, other) {
            (Role::Sandbox, Role::Sandbox) => true,
            (Role::Container { name, .. }, Role::Container { name: other, .. }) => name == other,
            _ => false,
        };
        let count = self
            .of_pod(pod)
            .filter(|&at| same(self.subjects[at].role))
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn run(&self, pod: u8, containers: u8) -> Option<Vec<Change>> {
        let is_ready = |at: usize| self.subjects[at].stage == Stage::Running;
        if self.sandbox(pod).is_some_and(is_ready) {
            return None;
        }
        let sandbox = self.subjects.len();
        let mut changes = vec![Change::Birth {
            pod,
            role: Role::Sandbox,
        }];
        for name in 0..containers {
            let at = sandbox + changes.len() - usize::from(name);
            let role = Role::Container { name, sandbox };
            changes.push(Change::Birth { pod, role });
            changes.push(Change::Become {
                at,
                stage: Stage::Running,
            });
        }
        Some(changes)
    }

    fn birth_of(&self, named: Named) -> Option<Change> {
        let sandbox = self.sandbox(named.pod)?;
        (self.subjects[sandbox].stage == Stage::Running).then_some(Change::Birth {
            pod: named.pod,
            role: Role::Container {
                name: named.name,
                sandbox,
            },
        })
    }

    fn become_if(
        &self,
        named: Named,
        stage: Stage,
        may: fn(&Self, usize) -> bool,
    ) -> Option<Vec<Change>> {
        let at = self.container(named)?;
        may(self, at).then(|| vec![Change::Become { at, stage }])
    }

    fn is_startable(&self, at: usize) -> bool {
        let subject = &self.subjects[at];
        let Role::Container { sandbox, .. } = subject.role else {
            return false;
        };
        subject.stage == Stage::Created && self.subjects[sandbox].stage == Stage::Running
    }

    fn runs(&self, at: usize) -> bool {
        matches!(self.subjects[at].stage, Stage::Running | Stage::Unknown)
    }

    fn kill(&self, at: usize) -> Vec<Change> {
        let stage = Stage::Exited(137);
        self.runs(at)
            .then_some(Change::Become { at, stage })
            .into_iter()
            .collect()
    }

    fn stop(&self, sandbox: usize) -> Vec<Change> {
        let mut changes: Vec<Change> = self.housed(sandbox).flat_map(|at| self.kill(at)).collect();
        if self.subjects[sandbox].stage == Stage::Running {
            changes.push(Change::Become {
                at: sandbox,
                stage: Stage::Exited(0),
            });
        }
        changes
    }

    fn remove_sandbox(&self, pod: u8) -> Option<Vec<Change>> {
        let sandbox = self.sandbox(pod)?;
        let mut changes = self.stop(sandbox);
        changes.extend(
            self.housed(sandbox)
                .chain([sandbox])
                .map(|at| Change::Become {
                    at,
                    stage: Stage::Removed,
                }),
        );
        Some(changes)
    }
}

/// As CRI shows it.
impl Node {
    pub(super) fn sandbox_of(&self, at: usize) -> usize {
        match self.subjects[at].role {
            Role::Sandbox => at,
            Role::Container { sandbox, .. } => sandbox,
        }
    }

    pub(super) fn ips(&self, at: usize) -> Vec<Arc<str>> {
        let subject = &self.subjects[at];
        let has_address = subject.stage == Stage::Running && subject.pod != ON_THE_HOST_NETWORK;
        has_address
            .then(|| format!("10.0.{}.{}", at / 250, at % 250 + 1).into())
            .into_iter()
            .collect()
    }

    fn shown(&self, of_pod: Option<u8>) -> impl Iterator<Item = usize> {
        (0..self.subjects.len())
            .filter(|&at| self.is_present(at))
            .filter(move |&at| {
                of_pod.is_none_or(|pod| pod != BY_CRICTL && self.subjects[at].pod == pod)
            })
    }

    /// The list of sandboxes: of the node, or filtered by a pod's uid.
    pub(super) fn list_sandboxes(
        &self,
        of_pod: Option<u8>,
        garbled: &[usize],
    ) -> Listed<SandboxListing> {
        let items: Vec<_> = self
            .shown(of_pod)
            .filter(|at| !garbled.contains(at))
            .filter_map(|at| {
                let subject = &self.subjects[at];
                let SubjectId::Sandbox(id) = &subject.id else {
                    return None;
                };
                Some(SandboxListing {
                    id: id.clone(),
                    pod: identity(subject.pod),
                    attempt: subject.attempt,
                    state: subject.stage.reported()?,
                    created_at: Some(born(at)),
                    labelled: subject.pod != BY_CRICTL,
                })
            })
            .collect();
        let mut list = Listed::from(items);
        list.unreadable = self.unreadable(of_pod, garbled, SubjectKind::Sandbox);
        list
    }

    fn unreadable(
        &self,
        of_pod: Option<u8>,
        garbled: &[usize],
        kind: SubjectKind,
    ) -> Vec<Arc<str>> {
        self.shown(of_pod)
            .filter(|at| garbled.contains(at))
            .map(|at| &self.subjects[at].id)
            .filter(|id| id.kind() == kind)
            .map(|id| id.as_str().into())
            .collect()
    }

    /// The list of containers: of the node, or filtered by a pod's uid.
    pub(super) fn list_containers(
        &self,
        of_pod: Option<u8>,
        garbled: &[usize],
    ) -> Listed<ContainerListing> {
        let items: Vec<_> = self
            .shown(of_pod)
            .filter(|at| !garbled.contains(at))
            .filter_map(|at| {
                let subject = &self.subjects[at];
                let (SubjectId::Container(id), Role::Container { name, sandbox }) =
                    (&subject.id, subject.role)
                else {
                    return None;
                };
                Some(ContainerListing {
                    id: id.clone(),
                    sandbox: Some(self.subjects[sandbox].id.as_str().into()),
                    pod: (subject.pod != BY_CRICTL).then(|| identity(subject.pod)),
                    name: container_name(name),
                    attempt: subject.attempt,
                    state: subject.stage.reported()?,
                    created_at: Some(born(at)),
                    image: image(),
                    image_ref: image(),
                })
            })
            .collect();
        let mut list = Listed::from(items);
        list.unreadable = self.unreadable(of_pod, garbled, SubjectKind::Container);
        list
    }

    pub(super) fn sandbox_status(&self, at: usize) -> Option<SandboxStatus> {
        let subject = &self.subjects[at];
        let SubjectId::Sandbox(id) = &subject.id else {
            return None;
        };
        Some(SandboxStatus {
            id: id.clone(),
            pod: identity(subject.pod),
            attempt: subject.attempt,
            state: subject.stage.reported()?,
            created_at: Some(born(at)),
            ips: self.ips(at),
            host_network: subject.pod == ON_THE_HOST_NETWORK,
            labelled: subject.pod != BY_CRICTL,
        })
    }

    pub(super) fn container_status(&self, at: usize) -> Option<ContainerStatus> {
        let subject = &self.subjects[at];
        let (SubjectId::Container(id), Role::Container { name, .. }) = (&subject.id, subject.role)
        else {
            return None;
        };
        let has_run = matches!(
            subject.stage,
            Stage::Running | Stage::Unknown | Stage::Exited(_)
        );
        let exit = subject.stage.exit_code();
        Some(ContainerStatus {
            id: id.clone(),
            pod: (subject.pod != BY_CRICTL).then(|| identity(subject.pod)),
            name: container_name(name),
            attempt: subject.attempt,
            state: subject.stage.reported()?,
            created_at: Some(born(at)),
            started_at: has_run.then(|| UnixNanos(born(at).0 + 1_000_000)),
            finished_at: exit.map(|_| UnixNanos(born(at).0 + 2_000_000)),
            exit_code: exit.unwrap_or(0),
            reason: subject.stage.reason().into(),
            message: "".into(),
            image: image(),
            image_ref: image(),
        })
    }

    /// The statuses of a sandbox's containers, as an event carries them.
    pub(super) fn containers_in(&self, sandbox: usize) -> Vec<ContainerStatus> {
        self.housed(sandbox)
            .filter_map(|at| self.container_status(at))
            .collect()
    }

    pub(super) fn status_of_sandbox(&self, id: &SandboxId) -> Option<SandboxStatus> {
        self.sandbox_status(self.place(&SubjectId::Sandbox(id.clone()))?)
    }

    pub(super) fn status_of_container(&self, id: &ContainerId) -> Option<ContainerStatus> {
        self.container_status(self.place(&SubjectId::Container(id.clone()))?)
    }
}
