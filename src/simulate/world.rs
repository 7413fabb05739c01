//! What a runtime holds and what it tells when that changes.
//!
//! Pure: no clock (each operation is given the moment), no I/O, no randomness but ids from a seed.
//! Each operation returns the stream messages that a runtime of these habits makes, in order, each
//! with the snapshot of the moment it was made. Who hears them is the event queue's business.

mod message;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::character::nanos;
use super::seed::Seeded;
use super::subject::{Container, ExitStatus, Pod, Sandbox, StreamMessage};
use super::{EventHabits, FailedStart, SandboxRemoval, Stamps};
use crate::lifecycle::{ContainerId, EventKind, PodUid, ReportedState, SandboxId, UnixNanos};

pub(super) use records::Former;

/// Why an operation on the world was refused. Nothing was changed and nothing was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// There is no such sandbox.
    #[error("there is no sandbox {0}")]
    NoSandbox(SandboxId),
    /// There is no such container.
    #[error("there is no container {0}")]
    NoContainer(ContainerId),
    /// The container's state does not allow the operation.
    #[error("container {id} is {state}, so it cannot {operation}")]
    WrongState {
        /// The container.
        id: ContainerId,
        /// Its state.
        state: ReportedState,
        /// What was asked of it.
        operation: &'static str,
    },
    /// A container cannot start in a sandbox that is not ready.
    #[error("sandbox {0} is not ready, so nothing can start in it")]
    SandboxNotReady(SandboxId),
}

/// The messages that an operation made.
pub type Told = Vec<StreamMessage>;

/// The sandboxes and containers of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    ids: Seeded,
    habits: EventHabits,
    sandboxes: BTreeMap<SandboxId, Sandbox>,
    containers: BTreeMap<ContainerId, Container>,
    containers_of: BTreeMap<SandboxId, BTreeSet<ContainerId>>,
    sandboxes_of: BTreeMap<PodUid, BTreeSet<SandboxId>>,
    addresses_given: u32,
    /// What was before each change since it was last asked for; `None`: nobody asks.
    journal: Option<Vec<Former>>,
}

impl World {
    /// An empty node. The same seed gives the same ids.
    #[must_use]
    pub fn new(seed: u64, habits: EventHabits) -> Self {
        Self {
            ids: Seeded::new(seed),
            habits,
            sandboxes: BTreeMap::new(),
            containers: BTreeMap::new(),
            containers_of: BTreeMap::new(),
            sandboxes_of: BTreeMap::new(),
            addresses_given: 0,
            journal: None,
        }
    }

    /// From now on tells as `habits` say: the runtime was upgraded.
    pub fn set_habits(&mut self, habits: EventHabits) {
        self.habits = habits;
    }

    /// From now on stamps messages so.
    pub fn set_stamps(&mut self, stamps: Stamps) {
        self.habits.stamps = stamps;
    }

    /// A uid that no pod has had.
    pub fn new_pod_uid(&mut self) -> PodUid {
        self.ids.pod_uid().into()
    }

    /// `RunPodSandbox`: a ready sandbox, the next attempt of its pod, with an address unless the pod
    /// is on the node's network.
    pub fn run_sandbox(&mut self, at: UnixNanos, pod: Arc<Pod>) -> (SandboxId, Told) {
        let id = SandboxId::from(self.ids.runtime_id());
        let attempt = self
            .sandboxes_of_pod(&pod.uid)
            .map(|sibling| sibling.attempt.saturating_add(1))
            .max()
            .unwrap_or(0);
        let ips = if pod.host_network {
            Vec::new()
        } else {
            vec![self.new_address()]
        };
        let sandbox = Sandbox {
            id: id.clone(),
            pod,
            attempt,
            ready: true,
            created_at: self.dated(at),
            ips,
        };
        self.put_sandbox(sandbox);

        let mut told = Told::new();
        if self.habits.sandbox_created {
            told.push(self.sandbox_message(at, EventKind::Created, &id));
        }
        told.push(self.sandbox_message(at, EventKind::Started, &id));
        (id, told)
    }

    /// `StopPodSandbox`: what runs in it is killed, then it is not ready. Its addresses go last, and
    /// untold. Stopping it again changes and tells nothing.
    ///
    /// # Errors
    /// If there is no such sandbox.
    pub fn stop_sandbox(&mut self, at: UnixNanos, id: &SandboxId) -> Result<Told, OperationError> {
        let mut told = Told::new();
        for container in self.running_in(self.sandbox_or_refuse(id)?) {
            told.append(&mut self.exit_container(at, &container, ExitStatus::killed())?);
        }
        told.append(&mut self.end_sandbox(at, id));
        Ok(told)
    }

    /// The sandbox's own process dies; its containers live on.
    ///
    /// # Errors
    /// If there is no such sandbox.
    pub fn lose_sandbox(&mut self, at: UnixNanos, id: &SandboxId) -> Result<Told, OperationError> {
        self.sandbox_or_refuse(id)?;
        Ok(self.end_sandbox(at, id))
    }

    /// `RemovePodSandbox`: stopped if it has to be, its containers removed, then itself.
    ///
    /// # Errors
    /// If there is no such sandbox.
    pub fn remove_sandbox(
        &mut self,
        at: UnixNanos,
        id: &SandboxId,
    ) -> Result<Told, OperationError> {
        let mut told = self.stop_sandbox(at, id)?;
        let containers = self.containers_of.get(id).cloned().unwrap_or_default();
        for container in &containers {
            self.forget_container(container);
            told.push(self.container_message(at, EventKind::Deleted, container, id));
        }
        let mut last = self.sandbox_message(at, EventKind::Deleted, id);
        if self.habits.sandbox_removal == SandboxRemoval::WithoutStatus {
            last.sandbox = None;
        }
        told.push(last);

        self.forget_sandbox(id);
        if self.habits.sandbox_removal == SandboxRemoval::Untold {
            told.clear();
        }
        Ok(told)
    }

    /// `CreateContainer`: the next attempt of its name in the pod.
    ///
    /// # Errors
    /// If there is no such sandbox.
    pub fn create_container(
        &mut self,
        at: UnixNanos,
        sandbox: &SandboxId,
        name: &str,
    ) -> Result<(ContainerId, Told), OperationError> {
        let pod = self.sandbox_or_refuse(sandbox)?.pod.clone();
        let attempt = self
            .containers_of_pod(&pod.uid)
            .filter(|container| &*container.name == name)
            .map(|container| container.attempt.saturating_add(1))
            .max()
            .unwrap_or(0);
        let id = ContainerId::from(self.ids.runtime_id());
        let container = Container {
            id: id.clone(),
            sandbox: sandbox.clone(),
            pod,
            name: name.into(),
            attempt,
            state: ReportedState::Created,
            created_at: self.dated(at),
            started_at: None,
            finished_at: None,
            exit: ExitStatus::default(),
            image: format!("registry.example/{name}:1").into(),
            image_ref: image_ref(name),
        };
        self.put_container(container);
        let told = self.container_message(at, EventKind::Created, &id, sandbox);
        Ok((id, vec![told]))
    }

    /// `StartContainer`.
    ///
    /// # Errors
    /// If there is no such container, it is not in state Created, or its sandbox is not ready.
    pub fn start_container(
        &mut self,
        at: UnixNanos,
        id: &ContainerId,
    ) -> Result<Told, OperationError> {
        let container = self.startable(id, "start")?;
        let sandbox = container.sandbox.clone();
        let dated = self.dated(at);
        self.change_container(id, |container| {
            container.state = ReportedState::Running;
            container.started_at = Some(dated.max(container.created_at));
        });
        Ok(vec![self.container_message(
            at,
            EventKind::Started,
            id,
            &sandbox,
        )])
    }

    /// `StartContainer` that fails: exited with 128 and `StartError`, or gone, by the runtime's
    /// habit. Never told.
    ///
    /// # Errors
    /// If there is no such container or it is not in state Created.
    pub fn fail_start(&mut self, at: UnixNanos, id: &ContainerId) -> Result<Told, OperationError> {
        self.startable(id, "start")?;
        match self.habits.failed_start {
            FailedStart::Nothing => self.forget_container(id),
            FailedStart::ExitedContainer => {
                let dated = self.dated(at);
                self.change_container(id, |container| {
                    container.state = ReportedState::Exited;
                    container.finished_at = Some(dated.max(container.created_at));
                    container.exit = ExitStatus::start_error();
                });
            }
        }
        Ok(Told::new())
    }

    /// The container ends.
    ///
    /// # Errors
    /// If there is no such container or it does not run (one in state Unknown may).
    pub fn exit_container(
        &mut self,
        at: UnixNanos,
        id: &ContainerId,
        exit: impl Into<ExitStatus>,
    ) -> Result<Told, OperationError> {
        let container = self.container_or_refuse(id)?;
        if !matches!(
            container.state,
            ReportedState::Running | ReportedState::Unknown
        ) {
            return Err(wrong_state(container, "exit"));
        }
        let sandbox = container.sandbox.clone();
        self.end_container(at, id, exit.into());
        Ok(vec![self.container_message(
            at,
            EventKind::Stopped,
            id,
            &sandbox,
        )])
    }

    /// `RemoveContainer`: killed first if it runs.
    ///
    /// # Errors
    /// If there is no such container.
    pub fn remove_container(
        &mut self,
        at: UnixNanos,
        id: &ContainerId,
    ) -> Result<Told, OperationError> {
        let container = self.container_or_refuse(id)?;
        let (state, sandbox) = (container.state, container.sandbox.clone());
        let mut told = Told::new();
        match state {
            ReportedState::Running | ReportedState::Unknown => {
                told.append(&mut self.exit_container(at, id, ExitStatus::killed())?);
            }
            ReportedState::Created if self.habits.unstarted_removal_stops => {
                self.end_container(at, id, ExitStatus::code(2));
                told.push(self.container_message(at, EventKind::Stopped, id, &sandbox));
            }
            ReportedState::Created | ReportedState::Exited => {}
        }
        self.forget_container(id);
        told.push(self.container_message(at, EventKind::Deleted, id, &sandbox));
        Ok(told)
    }

    /// The runtime no longer knows the container's state. Never told.
    ///
    /// # Errors
    /// If there is no such container.
    pub fn set_unknown(&mut self, id: &ContainerId) -> Result<(), OperationError> {
        self.container_or_refuse(id)?;
        self.change_container(id, |container| container.state = ReportedState::Unknown);
        Ok(())
    }

    /// The reason of an end becomes another, as when an OOM kill is noticed late. Never told.
    ///
    /// # Errors
    /// If there is no such container or it has not ended.
    pub fn amend_reason(
        &mut self,
        id: &ContainerId,
        reason: impl Into<Arc<str>>,
    ) -> Result<(), OperationError> {
        let container = self.container_or_refuse(id)?;
        if !container.is_exited() {
            return Err(wrong_state(container, "have its end explained"));
        }
        let reason = reason.into();
        self.change_container(id, |container| container.exit.reason = reason);
        Ok(())
    }

    /// The sandbox's addresses become others. Never told.
    ///
    /// # Errors
    /// If there is no such sandbox.
    pub fn set_ips(&mut self, id: &SandboxId, ips: Vec<Arc<str>>) -> Result<(), OperationError> {
        self.sandbox_or_refuse(id)?;
        self.change_sandbox(id, |sandbox| sandbox.ips = ips);
        Ok(())
    }

    fn sandbox_or_refuse(&self, id: &SandboxId) -> Result<&Sandbox, OperationError> {
        self.sandboxes
            .get(id)
            .ok_or_else(|| OperationError::NoSandbox(id.clone()))
    }

    fn container_or_refuse(&self, id: &ContainerId) -> Result<&Container, OperationError> {
        self.containers
            .get(id)
            .ok_or_else(|| OperationError::NoContainer(id.clone()))
    }

    fn startable(
        &self,
        id: &ContainerId,
        operation: &'static str,
    ) -> Result<&Container, OperationError> {
        let container = self.container_or_refuse(id)?;
        if container.state != ReportedState::Created {
            return Err(wrong_state(container, operation));
        }
        if !self.sandbox_or_refuse(&container.sandbox)?.ready {
            return Err(OperationError::SandboxNotReady(container.sandbox.clone()));
        }
        Ok(container)
    }

    fn running_in(&self, sandbox: &Sandbox) -> Vec<ContainerId> {
        self.containers_in(&sandbox.id)
            .filter(|container| {
                matches!(
                    container.state,
                    ReportedState::Running | ReportedState::Unknown
                )
            })
            .map(|container| container.id.clone())
            .collect()
    }

    fn end_container(&mut self, at: UnixNanos, id: &ContainerId, exit: ExitStatus) {
        let dated = self.dated(at);
        self.change_container(id, |container| {
            let earliest = container.started_at.unwrap_or(container.created_at);
            container.state = ReportedState::Exited;
            container.finished_at = Some(dated.max(earliest));
            container.exit = exit;
        });
    }

    fn end_sandbox(&mut self, at: UnixNanos, id: &SandboxId) -> Told {
        if !self.sandboxes.get(id).is_some_and(|sandbox| sandbox.ready) {
            return Told::new();
        }
        self.change_sandbox(id, |sandbox| sandbox.ready = false);
        let told = vec![self.sandbox_message(at, EventKind::Stopped, id)];
        self.change_sandbox(id, |sandbox| sandbox.ips.clear());
        told
    }

    /// When a change told at `at` happened by the runtime's account.
    fn dated(&self, at: UnixNanos) -> UnixNanos {
        UnixNanos(at.0.saturating_sub(nanos(self.habits.lag)))
    }

    /// 10.244.0.2 and on.
    fn new_address(&mut self) -> Arc<str> {
        self.addresses_given = self.addresses_given.wrapping_add(1);
        let host = self.addresses_given.wrapping_add(1);
        format!("10.244.{}.{}", (host >> 8) & 0xff, host & 0xff).into()
    }
}

fn wrong_state(container: &Container, operation: &'static str) -> OperationError {
    OperationError::WrongState {
        id: container.id.clone(),
        state: container.state,
        operation,
    }
}

/// The same name gives the same digest, as a pulled image would.
fn image_ref(name: &str) -> Arc<str> {
    let seed = name.bytes().fold(0_u64, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    format!("sha256:{}", Seeded::new(seed).runtime_id()).into()
}

#[cfg(test)]
mod tests;
