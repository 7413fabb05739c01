//! The node: a simulated runtime that does what actions say, and the names of what is on it.
//!
//! It knows nothing of who follows the runtime; a player in virtual time and a server on a socket
//! use it alike.

use std::sync::Arc;

use super::action::{Action, Character, Events, ExitMany, Preset, Run, RunMany, Stamps};
use super::names::Names;
use super::stage_faults;
use super::values::{ContainerName, PodName};
use crate::clock::Clock;
use crate::cri::{ReaderLimits, ReaderPlace, StreamReader};
use crate::engine::SessionId;
use crate::lifecycle::{PodUid, ReportedState};
use crate::simulate::{self, EventSupport, ExitStatus, Pod, Rpc, Sharing, SimulatedRuntime};

/// A node.
#[derive(Debug)]
pub struct Stage {
    pub(super) runtime: SimulatedRuntime,
    pub(super) names: Names,
    clock: Clock,
    /// Another client of the event stream.
    competitor: Option<Competitor>,
}

#[derive(Debug)]
struct Competitor {
    reader: StreamReader,
    drain: tokio::task::JoinHandle<()>,
}

impl Stage {
    /// An empty node whose runtime is of this character; both tell the time by `clock`.
    #[must_use]
    pub fn new(character: &Character, clock: &Clock) -> Self {
        let runtime_clock = clock.clone();
        let runtime = SimulatedRuntime::builder()
            .character(simulated(character))
            .seed(character.seed.unwrap_or(1))
            .clock(move || runtime_clock.now())
            .build();
        Self {
            runtime,
            names: Names::default(),
            clock: clock.clone(),
            competitor: None,
        }
    }

    /// The runtime.
    #[must_use]
    pub fn runtime(&self) -> &SimulatedRuntime {
        &self.runtime
    }

    /// Who is who.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Event streams that the competitor has open.
    pub(super) fn competing_streams(&self) -> usize {
        usize::from(self.competitor.is_some())
    }

    /// Does `action` if it is one of the node's; gives whether it was.
    ///
    /// # Errors
    /// If it cannot be done: what it names is not there, or the runtime refuses.
    pub async fn perform(&mut self, action: &Action) -> Result<bool, String> {
        match action {
            Action::Run(run) => self.run(run)?,
            Action::RunMany(many) => self.run_many(many)?,
            Action::Create(name) => self.create(name).map(drop)?,
            Action::Start(name) => {
                let id = self.names.container(name)?;
                refused(self.runtime.start_container(&id))?;
            }
            Action::RunContainer(name) => {
                self.create(name)?;
                let id = self.names.container(name)?;
                refused(self.runtime.start_container(&id))?;
            }
            Action::FailStart(name) => {
                let id = self.names.container(name)?;
                refused(self.runtime.fail_start(&id))?;
            }
            Action::Exit(exit) => {
                let id = self.names.container(&exit.container)?;
                let status = match &exit.reason {
                    None => ExitStatus::code(exit.code),
                    Some(reason) => ExitStatus::with_reason(exit.code, reason.as_str()),
                };
                refused(self.runtime.exit_container(&id, status))?;
            }
            Action::ExitMany(many) => self.exit_many(many)?,
            Action::Remove(name) => {
                let id = self.names.container(name)?;
                refused(self.runtime.remove_container(&id))?;
            }
            Action::StopSandbox(name) => {
                let id = self.names.sandbox(name)?;
                refused(self.runtime.stop_sandbox(&id))?;
            }
            Action::LoseSandbox(name) => {
                let id = self.names.sandbox(name)?;
                refused(self.runtime.lose_sandbox(&id))?;
            }
            Action::RemoveSandbox(name) => {
                let id = self.names.sandbox(name)?;
                refused(self.runtime.remove_sandbox(&id))?;
            }
            Action::RemovePod(name) => self.remove_pod(name)?,
            Action::SetUnknown(name) => {
                let id = self.names.container(name)?;
                refused(self.runtime.set_unknown(&id))?;
            }
            Action::AmendReason(amend) => {
                let id = self.names.container(&amend.container)?;
                refused(self.runtime.amend_reason(&id, amend.reason.as_str()))?;
            }
            Action::SetIps(set) => {
                let id = self.names.sandbox(&set.sandbox)?;
                let ips: Vec<_> = set.ips.iter().map(String::as_str).collect();
                refused(self.runtime.set_ips(&id, &ips))?;
            }
            Action::StopRuntime => self.runtime.set_up(false),
            Action::StartRuntime => self.runtime.set_up(true),
            Action::RestartRuntime => self.runtime.restart(),
            Action::FreezeRuntime => self.runtime.set_frozen(true),
            Action::ThawRuntime => self.runtime.set_frozen(false),
            Action::Upgrade(character) => self.runtime.become_character(simulated(character)),
            Action::CutConnections => self.runtime.sever(),
            Action::StepClock(step) => {
                self.clock.step(step.nanos);
            }
            Action::Compete => self.compete()?,
            Action::StopCompeting => {
                if let Some(competitor) = self.competitor.take() {
                    competitor.drain.abort();
                    competitor.reader.shutdown().await;
                }
            }
            other => return stage_faults::perform(&self.runtime, &self.names, &self.clock, other),
        }
        Ok(true)
    }

    /// A container of the pod exits with 1, is removed and replaced: one turn of the churn.
    pub(super) fn replace_container(&mut self, pod: &PodName, turn: u64) -> Result<(), String> {
        let containers = self.names.containers_of(pod);
        let Some(name) =
            containers.get(usize::try_from(turn).unwrap_or(0) % containers.len().max(1))
        else {
            return Err(format!("{pod} has no container to replace"));
        };
        let name = ContainerName {
            pod: pod.clone(),
            name: name.clone(),
            number: None,
        };
        let id = self.names.container(&name)?;
        refused(self.runtime.exit_container(&id, 1))?;
        refused(self.runtime.remove_container(&id))?;
        self.create(&name)?;
        let id = self.names.container(&name)?;
        refused(self.runtime.start_container(&id))
    }

    fn run(&mut self, run: &Run) -> Result<(), String> {
        if !self.names.has_pod(&run.pod) {
            let uid = match &run.uid {
                Some(uid) => PodUid::from(uid.as_str()),
                None => self.runtime.new_pod_uid(),
            };
            let mut pod = Pod::new(
                uid,
                run.namespace.as_deref().unwrap_or("default"),
                run.pod.0.as_str(),
            );
            pod.host_network = run.host_network;
            pod.by_kubelet = !run.by_crictl;
            self.names.add_pod(&run.pod, Arc::new(pod));
        }
        let pod = self.names.pod(&run.pod)?;
        let sandbox = self.runtime.run_sandbox(pod);
        self.names.add_sandbox(&run.pod, &sandbox);
        for name in &run.containers {
            let id = refused(self.runtime.create_container(&sandbox, name))?;
            self.names.add_container(&run.pod, name, &id);
            refused(self.runtime.start_container(&id))?;
        }
        Ok(())
    }

    fn run_many(&mut self, many: &RunMany) -> Result<(), String> {
        for number in 0..many.pods {
            let pod = PodName(format!("{}-{number}", many.named));
            self.run(&Run {
                pod: pod.clone(),
                containers: many.containers.clone(),
                uid: None,
                namespace: None,
                host_network: false,
                by_crictl: false,
            })?;
            for exited in 0..many.exited {
                let name = ContainerName {
                    pod: pod.clone(),
                    name: format!("old-{exited}"),
                    number: None,
                };
                self.create(&name)?;
                let id = self.names.container(&name)?;
                refused(self.runtime.start_container(&id))?;
                refused(self.runtime.exit_container(&id, 0))?;
            }
        }
        Ok(())
    }

    fn exit_many(&mut self, many: &ExitMany) -> Result<(), String> {
        for pod in self.names.pods_named(&many.pods.0) {
            let uid = self.names.uid(&pod)?;
            let running: Vec<_> = self.runtime.world(|world| {
                world
                    .containers_of_pod(&uid)
                    .filter(|container| container.state == ReportedState::Running)
                    .map(|container| container.id.clone())
                    .collect()
            });
            for id in running {
                refused(self.runtime.exit_container(&id, many.code))?;
            }
        }
        Ok(())
    }

    fn create(&mut self, name: &ContainerName) -> Result<(), String> {
        let sandbox = self.names.sandbox(&super::values::SandboxName {
            pod: name.pod.clone(),
            number: None,
        })?;
        let id = refused(self.runtime.create_container(&sandbox, &name.name))?;
        self.names.add_container(&name.pod, &name.name, &id);
        Ok(())
    }

    fn remove_pod(&mut self, pod: &PodName) -> Result<(), String> {
        for sandbox in self.names.sandboxes_of(pod)? {
            if self
                .runtime
                .world(|world| world.sandbox(sandbox.as_str()).is_some())
            {
                refused(self.runtime.remove_sandbox(&sandbox))?;
            }
        }
        Ok(())
    }

    fn compete(&mut self) -> Result<(), String> {
        let source = self.runtime.stream_source();
        let place = ReaderPlace::CurrentRuntime;
        let (reader, mut inbox) = StreamReader::start(source, place, ReaderLimits::default())
            .map_err(|error| error.to_string())?;
        reader.open(SessionId(1));
        let drain = tokio::spawn(async move {
            let mut items = Vec::new();
            while inbox.recv_batch(&mut items).await > 0 {
                items.clear();
            }
        });
        self.competitor = Some(Competitor { reader, drain });
        Ok(())
    }
}

fn refused<T>(outcome: Result<T, simulate::OperationError>) -> Result<T, String> {
    outcome.map_err(|error| error.to_string())
}

/// The simulated runtime's character for the file's.
#[must_use]
pub fn simulated(character: &Character) -> simulate::Character {
    let mut simulated = match character.is {
        Preset::Containerd16 => simulate::Character::containerd_1_6(),
        Preset::Containerd17 => simulate::Character::containerd_1_7(),
        Preset::Containerd2 => simulate::Character::containerd_2(),
        Preset::CriO => simulate::Character::cri_o(),
        Preset::CriOEventsOff => simulate::Character::cri_o_events_off(),
    };
    if let Some(version) = &character.version {
        simulated.runtime_version.clone_from(version);
    }
    match character.events {
        None => {}
        Some(Events::Unimplemented) => simulated.events = EventSupport::Unimplemented,
        Some(Events::EndsAtOnce) => simulated.events = EventSupport::EndsAtOnce,
    }
    if let (Some(competing), EventSupport::Served(delivery)) =
        (character.competing, &mut simulated.events)
    {
        delivery.sharing = if competing {
            Sharing::Competing
        } else {
            Sharing::EveryStream
        };
    }
    if let Some(stamps) = character.stamps {
        simulated.habits.stamps = stamps_of(stamps);
    }
    if let Some(items) = character.streaming_lists {
        simulated.streaming_lists = Some(items);
    }
    if let Some(carries) = character.status_carries_containers {
        simulated.status_carries_containers = carries;
    }
    if let Some(created) = character.sandbox_created {
        simulated.habits.sandbox_created = created;
    }
    if let Some(latency) = character.latency {
        simulated = simulated.with_latency(latency.0);
    }
    for (method, latency) in &character.latency_of {
        simulated.latency.insert(rpc(*method), latency.0);
    }
    simulated
}

fn stamps_of(stamps: Stamps) -> simulate::Stamps {
    match stamps {
        Stamps::Seconds => simulate::Stamps::Seconds,
        Stamps::Milliseconds => simulate::Stamps::Milliseconds,
        Stamps::Zero => simulate::Stamps::Zero,
        Stamps::Negative => simulate::Stamps::Negative,
        Stamps::Ahead(by) => simulate::Stamps::Ahead(by.0),
        Stamps::Behind(by) => simulate::Stamps::Behind(by.0),
    }
}

/// The simulated runtime's name for a method.
#[must_use]
pub(super) fn rpc(method: super::action::Method) -> Rpc {
    use super::action::Method;
    match method {
        Method::Version => Rpc::Version,
        Method::ListPodSandbox => Rpc::ListPodSandbox,
        Method::StreamPodSandboxes => Rpc::StreamPodSandboxes,
        Method::PodSandboxStatus => Rpc::PodSandboxStatus,
        Method::ListContainers => Rpc::ListContainers,
        Method::StreamContainers => Rpc::StreamContainers,
        Method::ContainerStatus => Rpc::ContainerStatus,
        Method::GetContainerEvents => Rpc::GetContainerEvents,
    }
}
