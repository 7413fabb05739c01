//! The operations on a running runtime: those of the world, at the runtime's own moment, told to its
//! streams.

use std::sync::Arc;

use super::subject::{ExitStatus, Pod};
use super::world::Told;
use super::{OperationError, SimulatedRuntime, World};
use crate::lifecycle::{ContainerId, PodUid, SandboxId, UnixNanos};

/// What [`SimulatedRuntime::run_pod`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningPod {
    /// The pod's uid.
    pub uid: PodUid,
    /// Its sandbox.
    pub sandbox: SandboxId,
    /// Its containers, in the order of the names given.
    pub containers: Vec<ContainerId>,
}

impl SimulatedRuntime {
    /// A uid that no pod of this runtime has had.
    #[must_use]
    pub fn new_pod_uid(&self) -> PodUid {
        self.change(|state, _| state.world.new_pod_uid())
    }

    /// A new pod with a running container for each of `names`.
    #[expect(
        clippy::must_use_candidate,
        reason = "that it runs may be all that is wanted"
    )]
    pub fn run_pod(&self, namespace: &str, name: &str, names: &[&str]) -> RunningPod {
        self.operate(|world, at| {
            let uid = world.new_pod_uid();
            let pod = Pod::new(uid.clone(), namespace, name);
            let (sandbox, mut told) = world.run_sandbox(at, Arc::new(pod));
            let mut containers = Vec::new();
            for name in names {
                // Nothing is refused: the sandbox is ready, the container is new.
                if let Ok((container, mut created)) = world.create_container(at, &sandbox, name) {
                    told.append(&mut created);
                    if let Ok(mut started) = world.start_container(at, &container) {
                        told.append(&mut started);
                    }
                    containers.push(container);
                }
            }
            let running = RunningPod {
                uid,
                sandbox,
                containers,
            };
            (running, told)
        })
    }

    /// [`World::run_sandbox`].
    pub fn run_sandbox(&self, pod: impl Into<Arc<Pod>>) -> SandboxId {
        self.operate(|world, at| world.run_sandbox(at, pod.into()))
    }

    /// [`World::stop_sandbox`].
    ///
    /// # Errors
    /// As that.
    pub fn stop_sandbox(&self, id: &SandboxId) -> Result<(), OperationError> {
        self.tell(|world, at| world.stop_sandbox(at, id))
    }

    /// [`World::lose_sandbox`].
    ///
    /// # Errors
    /// As that.
    pub fn lose_sandbox(&self, id: &SandboxId) -> Result<(), OperationError> {
        self.tell(|world, at| world.lose_sandbox(at, id))
    }

    /// [`World::remove_sandbox`].
    ///
    /// # Errors
    /// As that.
    pub fn remove_sandbox(&self, id: &SandboxId) -> Result<(), OperationError> {
        self.tell(|world, at| world.remove_sandbox(at, id))
    }

    /// [`World::create_container`].
    ///
    /// # Errors
    /// As that.
    pub fn create_container(
        &self,
        sandbox: &SandboxId,
        name: &str,
    ) -> Result<ContainerId, OperationError> {
        self.operate(
            |world, at| match world.create_container(at, sandbox, name) {
                Ok((id, told)) => (Ok(id), told),
                Err(refused) => (Err(refused), Told::new()),
            },
        )
    }

    /// [`World::start_container`].
    ///
    /// # Errors
    /// As that.
    pub fn start_container(&self, id: &ContainerId) -> Result<(), OperationError> {
        self.tell(|world, at| world.start_container(at, id))
    }

    /// Creates a container and starts it.
    ///
    /// # Errors
    /// As [`World::create_container`] and [`World::start_container`].
    pub fn run_container(
        &self,
        sandbox: &SandboxId,
        name: &str,
    ) -> Result<ContainerId, OperationError> {
        let id = self.create_container(sandbox, name)?;
        self.start_container(&id)?;
        Ok(id)
    }

    /// [`World::fail_start`].
    ///
    /// # Errors
    /// As that.
    pub fn fail_start(&self, id: &ContainerId) -> Result<(), OperationError> {
        self.tell(|world, at| world.fail_start(at, id))
    }

    /// [`World::exit_container`]: with an exit code, or all of an [`ExitStatus`].
    ///
    /// # Errors
    /// As that.
    pub fn exit_container(
        &self,
        id: &ContainerId,
        exit: impl Into<ExitStatus>,
    ) -> Result<(), OperationError> {
        self.tell(|world, at| world.exit_container(at, id, exit))
    }

    /// [`World::remove_container`].
    ///
    /// # Errors
    /// As that.
    pub fn remove_container(&self, id: &ContainerId) -> Result<(), OperationError> {
        self.tell(|world, at| world.remove_container(at, id))
    }

    /// [`World::set_unknown`].
    ///
    /// # Errors
    /// As that.
    pub fn set_unknown(&self, id: &ContainerId) -> Result<(), OperationError> {
        self.change(|state, _| state.world.set_unknown(id))
    }

    /// [`World::amend_reason`].
    ///
    /// # Errors
    /// As that.
    pub fn amend_reason(
        &self,
        id: &ContainerId,
        reason: impl Into<Arc<str>>,
    ) -> Result<(), OperationError> {
        self.change(|state, _| state.world.amend_reason(id, reason))
    }

    /// [`World::set_ips`].
    ///
    /// # Errors
    /// As that.
    pub fn set_ips(&self, id: &SandboxId, ips: &[&str]) -> Result<(), OperationError> {
        let ips = ips.iter().map(|ip| Arc::from(*ip)).collect();
        self.change(|state, _| state.world.set_ips(id, ips))
    }

    fn tell(
        &self,
        operation: impl FnOnce(&mut World, UnixNanos) -> Result<Told, OperationError>,
    ) -> Result<(), OperationError> {
        self.operate(|world, at| match operation(world, at) {
            Ok(told) => (Ok(()), told),
            Err(refused) => (Err(refused), Told::new()),
        })
    }
}
