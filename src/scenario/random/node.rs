//! What is on the node as far as the generator has told it: enough to do only what can be done.

use super::dice::Dice;
use crate::scenario::action::{Action, AmendReason, Exit, Run, SetIps};
use crate::scenario::values::{ContainerName, PodName, SandboxName, SubjectName};

/// The names that containers have.
const NAMES: [&str; 3] = ["app", "proxy", "job"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Created,
    Running,
    Exited,
    Unknown,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SandboxState {
    Ready,
    NotReady,
    Gone,
}

#[derive(Clone, Debug)]
struct Container {
    name: &'static str,
    number: usize,
    sandbox: usize,
    state: State,
}

#[derive(Clone, Debug)]
struct Pod {
    run: Run,
    sandboxes: Vec<SandboxState>,
    containers: Vec<Container>,
    waits_for_address: bool,
}

/// The pods of one story.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pods: Vec<Pod>,
    /// Whether a failed start leaves nothing on this runtime.
    pub(super) failed_start_leaves_nothing: bool,
    /// Pods of which the runtime changed a detail in silence, which only a reinspection shows.
    pub(super) changed_in_silence: Vec<PodName>,
    /// Pods whose address came late, which the generator finds out, though at its slowest.
    pub(super) addressed_late: Vec<PodName>,
    addresses: u64,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Run,
    Exit,
    Restart,
    Create,
    Start,
    FailStart,
    Remove,
    StopSandbox,
    LoseSandbox,
    RemoveSandbox,
    RemovePod,
    SetUnknown,
    Amend,
    Address,
}

impl Node {
    /// `pods` pods that may come to be.
    pub(super) fn new(dice: &mut Dice, pods: usize) -> Self {
        let pods = (0..pods).map(|number| {
            let containers = dice.between(0, 3).max(dice.between(0, 1));
            let containers = NAMES.iter().take(usize::try_from(containers).unwrap_or(1));
            Pod {
                run: Run {
                    pod: PodName(format!("p-{number}")),
                    containers: containers.map(|name| (*name).to_owned()).collect(),
                    // Now and then two pods of a story share a uid.
                    uid: dice.percent(2).then(|| "shared".to_owned()),
                    namespace: dice.percent(10).then(|| "kube-system".to_owned()),
                    host_network: dice.percent(10),
                    by_crictl: dice.percent(8),
                },
                sandboxes: Vec::new(),
                containers: Vec::new(),
                waits_for_address: false,
            }
        });
        Self {
            pods: pods.collect(),
            failed_start_leaves_nothing: false,
            changed_in_silence: Vec::new(),
            addressed_late: Vec::new(),
            addresses: 0,
        }
    }

    /// Something that happens to some pod.
    pub(super) fn change(&mut self, dice: &mut Dice) -> Vec<Action> {
        let number = dice.index(self.pods.len());
        let leaves_nothing = self.failed_start_leaves_nothing;
        let Some(pod) = self.pods.get_mut(number) else {
            return Vec::new();
        };
        let is_there = pod
            .sandboxes
            .iter()
            .any(|state| *state != SandboxState::Gone);
        if !is_there {
            return pod.run(dice, true);
        }
        let change = dice.weighted(&[
            (3, Change::Run),
            (30, Change::Exit),
            (22, Change::Restart),
            (6, Change::Create),
            (14, Change::Start),
            (5, Change::FailStart),
            (14, Change::Remove),
            (6, Change::StopSandbox),
            (2, Change::LoseSandbox),
            (4, Change::RemoveSandbox),
            (5, Change::RemovePod),
            (2, Change::SetUnknown),
            (2, Change::Amend),
            (8, Change::Address),
        ]);
        match change {
            Some(Change::Run) => pod.run(dice, false),
            Some(Change::Exit) => pod.exit(dice),
            Some(Change::Restart) => pod.restart(dice),
            Some(Change::Create) => pod.create(dice),
            Some(Change::Start) => pod.start(dice, false, leaves_nothing),
            Some(Change::FailStart) => pod.start(dice, true, leaves_nothing),
            Some(Change::Remove) => pod.remove(dice),
            Some(Change::StopSandbox) => pod.stop_sandbox(dice),
            Some(Change::LoseSandbox) => pod.lose_sandbox(dice),
            Some(Change::RemoveSandbox) => pod.remove_sandbox(dice),
            Some(Change::RemovePod) => {
                for sandbox in 0..pod.sandboxes.len() {
                    pod.forget(sandbox);
                }
                vec![Action::RemovePod(pod.run.pod.clone())]
            }
            Some(Change::SetUnknown) => pod.set_unknown(dice),
            Some(Change::Amend) => {
                let amended = pod.amend(dice);
                if !amended.is_empty() {
                    self.changed_in_silence.push(pod.run.pod.clone());
                }
                amended
            }
            Some(Change::Address) if pod.waits_for_address => {
                self.addresses += 1;
                pod.waits_for_address = false;
                self.addressed_late.push(pod.run.pod.clone());
                vec![pod.set_ips(vec![format!("10.99.0.{}", self.addresses % 250 + 1)])]
            }
            Some(Change::Address) | None => Vec::new(),
        }
    }

    /// A pod that was there before anything else.
    pub(super) fn settled(&mut self, dice: &mut Dice) -> Vec<Action> {
        let number = dice.index(self.pods.len());
        let Some(pod) = self
            .pods
            .get_mut(number)
            .filter(|pod| pod.sandboxes.is_empty())
        else {
            return Vec::new();
        };
        let mut all = pod.run(dice, false);
        if !pod.run.host_network && dice.percent(5) {
            pod.waits_for_address = true;
            all.push(pod.set_ips(Vec::new()));
        }
        if dice.percent(25) {
            all.append(&mut pod.exit(dice));
        }
        all
    }

    /// A container or sandbox that there was at some time.
    pub(super) fn subject(&self, dice: &mut Dice) -> Option<SubjectName> {
        let known = self.pods.iter().filter(|pod| !pod.sandboxes.is_empty());
        let pod = dice.pick(&known.collect::<Vec<_>>())?;
        if dice.percent(30) || pod.containers.is_empty() {
            let number = dice.index(pod.sandboxes.len());
            return Some(SubjectName::Sandbox(pod.sandbox_name(number)));
        }
        let number = dice.index(pod.containers.len());
        pod.container_name(number).map(SubjectName::Container)
    }

    /// Whether the runtime has a container whose messages show it.
    pub(super) fn is_shown(&self, name: &ContainerName) -> bool {
        let pod = self.pods.iter().find(|pod| pod.run.pod == name.pod);
        pod.filter(|pod| !pod.run.by_crictl).is_some_and(|pod| {
            let mut indices = 0..pod.containers.len();
            indices.any(|index| {
                let container = pod.containers.get(index);
                container.is_some_and(|container| container.state != State::Gone)
                    && pod.container_name(index).as_ref() == Some(name)
            })
        })
    }

    /// A pod that there was at some time.
    pub(super) fn pod(&self, dice: &mut Dice) -> Option<PodName> {
        let known = self.pods.iter().filter(|pod| !pod.sandboxes.is_empty());
        dice.pick(&known.collect::<Vec<_>>())
            .map(|pod| pod.run.pod.clone())
    }
}

impl Pod {
    fn newest(&self) -> usize {
        self.sandboxes.len().saturating_sub(1)
    }

    fn is_newest_ready(&self) -> bool {
        self.sandboxes.last() == Some(&SandboxState::Ready)
    }

    fn sandbox_name(&self, number: usize) -> SandboxName {
        SandboxName {
            pod: self.run.pod.clone(),
            number: (number != self.newest()).then_some(number),
        }
    }

    fn container_name(&self, index: usize) -> Option<ContainerName> {
        let container = self.containers.get(index)?;
        let of_name = self
            .containers
            .iter()
            .filter(|other| other.name == container.name);
        let is_newest = container.number + 1 == of_name.count();
        Some(ContainerName {
            pod: self.run.pod.clone(),
            name: container.name.to_owned(),
            number: (!is_newest).then_some(container.number),
        })
    }

    /// One of the containers in one of these states.
    fn any(&self, dice: &mut Dice, states: &[State]) -> Option<usize> {
        let fit = (0..self.containers.len()).filter(|index| {
            let container = self.containers.get(*index);
            container.is_some_and(|container| states.contains(&container.state))
        });
        dice.pick(&fit.collect::<Vec<_>>())
    }

    fn any_sandbox(&self, dice: &mut Dice, states: &[SandboxState]) -> Option<usize> {
        let all = self.sandboxes.iter().enumerate();
        let fit = all.filter(|(_, state)| states.contains(state));
        dice.pick(&fit.map(|(number, _)| number).collect::<Vec<_>>())
    }

    fn become_state(&mut self, index: usize, state: State) {
        if let Some(container) = self.containers.get_mut(index) {
            container.state = state;
        }
    }

    fn add(&mut self, name: &'static str, state: State) {
        let number = self
            .containers
            .iter()
            .filter(|other| other.name == name)
            .count();
        let sandbox = self.newest();
        self.containers.push(Container {
            name,
            number,
            sandbox,
            state,
        });
    }

    fn run(&mut self, dice: &mut Dice, may_lack_address: bool) -> Vec<Action> {
        let mut all = Vec::new();
        if self.is_newest_ready() && dice.percent(70) {
            all.append(&mut self.stop_sandbox(dice));
        }
        let wanted = self.run.containers.clone();
        self.sandboxes.push(SandboxState::Ready);
        for name in NAMES
            .iter()
            .filter(|name| wanted.iter().any(|wanted| wanted == *name))
        {
            self.add(name, State::Running);
        }
        let run = Action::Run(self.run.clone());
        // An address that comes late: the messages that would have shown another are lost.
        if may_lack_address && !self.run.host_network && dice.percent(6) {
            self.waits_for_address = true;
            let none = self.set_ips(Vec::new());
            all.extend([Action::Mute, run, none, Action::Unmute]);
        } else {
            self.waits_for_address = false;
            all.push(run);
        }
        all
    }

    fn set_ips(&self, ips: Vec<String>) -> Action {
        Action::SetIps(SetIps {
            sandbox: self.sandbox_name(self.newest()),
            ips,
        })
    }

    fn exit(&mut self, dice: &mut Dice) -> Vec<Action> {
        let Some(index) = self.any(dice, &[State::Running, State::Unknown]) else {
            return Vec::new();
        };
        let Some(container) = self.container_name(index) else {
            return Vec::new();
        };
        self.become_state(index, State::Exited);
        let (code, reason) = dice
            .pick(&[
                (0, None),
                (1, None),
                (137, None),
                (137, Some("OOMKilled")),
                (143, None),
            ])
            .unwrap_or((0, None));
        vec![Action::Exit(Exit {
            container,
            code,
            reason: reason.map(str::to_owned),
        })]
    }

    /// The next container of a name, as the kubelet starts it after the one before has ended.
    fn restart(&mut self, dice: &mut Dice) -> Vec<Action> {
        let Some(name) = dice.pick(&NAMES).filter(|name| self.is_idle(name)) else {
            return Vec::new();
        };
        self.add(name, State::Running);
        let newest = self.containers.len().saturating_sub(1);
        let name = self.container_name(newest);
        name.map(Action::RunContainer).into_iter().collect()
    }

    fn create(&mut self, dice: &mut Dice) -> Vec<Action> {
        let Some(name) = dice.pick(&NAMES).filter(|name| self.is_idle(name)) else {
            return Vec::new();
        };
        self.add(name, State::Created);
        let newest = self.containers.len().saturating_sub(1);
        let name = self.container_name(newest);
        name.map(Action::Create).into_iter().collect()
    }

    fn is_idle(&self, name: &str) -> bool {
        let busy = [State::Running, State::Created, State::Unknown];
        self.is_newest_ready()
            && !self
                .containers
                .iter()
                .any(|container| container.name == name && busy.contains(&container.state))
    }

    fn start(&mut self, dice: &mut Dice, fails: bool, leaves_nothing: bool) -> Vec<Action> {
        let Some(index) = self.any(dice, &[State::Created]) else {
            return Vec::new();
        };
        let sandbox = self
            .containers
            .get(index)
            .map(|container| container.sandbox);
        let is_ready =
            sandbox.and_then(|sandbox| self.sandboxes.get(sandbox)) == Some(&SandboxState::Ready);
        let Some(name) = self.container_name(index).filter(|_| is_ready) else {
            return Vec::new();
        };
        let (state, action) = match (fails, leaves_nothing) {
            (false, _) => (State::Running, Action::Start(name)),
            (true, false) => (State::Exited, Action::FailStart(name)),
            (true, true) => (State::Gone, Action::FailStart(name)),
        };
        self.become_state(index, state);
        vec![action]
    }

    fn remove(&mut self, dice: &mut Dice) -> Vec<Action> {
        let all = [
            State::Exited,
            State::Created,
            State::Running,
            State::Unknown,
        ];
        let states = if dice.percent(80) {
            &all[..1]
        } else {
            &all[..]
        };
        let Some(index) = self.any(dice, states) else {
            return Vec::new();
        };
        let name = self.container_name(index);
        self.become_state(index, State::Gone);
        name.map(Action::Remove).into_iter().collect()
    }

    fn stop_sandbox(&mut self, dice: &mut Dice) -> Vec<Action> {
        let Some(number) = self.any_sandbox(dice, &[SandboxState::Ready]) else {
            return Vec::new();
        };
        for container in &mut self.containers {
            if container.sandbox == number
                && matches!(container.state, State::Running | State::Unknown)
            {
                container.state = State::Exited;
            }
        }
        self.end(number);
        vec![Action::StopSandbox(self.sandbox_name(number))]
    }

    fn lose_sandbox(&mut self, dice: &mut Dice) -> Vec<Action> {
        let Some(number) = self.any_sandbox(dice, &[SandboxState::Ready]) else {
            return Vec::new();
        };
        self.end(number);
        vec![Action::LoseSandbox(self.sandbox_name(number))]
    }

    fn end(&mut self, number: usize) {
        if let Some(state) = self.sandboxes.get_mut(number) {
            *state = SandboxState::NotReady;
        }
        self.waits_for_address &= number != self.newest();
    }

    fn remove_sandbox(&mut self, dice: &mut Dice) -> Vec<Action> {
        let all = [SandboxState::NotReady, SandboxState::Ready];
        let states = if dice.percent(75) {
            &all[..1]
        } else {
            &all[..]
        };
        let Some(number) = self.any_sandbox(dice, states) else {
            return Vec::new();
        };
        self.forget(number);
        vec![Action::RemoveSandbox(self.sandbox_name(number))]
    }

    fn forget(&mut self, number: usize) {
        self.end(number);
        if let Some(state) = self.sandboxes.get_mut(number) {
            *state = SandboxState::Gone;
        }
        for container in &mut self.containers {
            if container.sandbox == number {
                container.state = State::Gone;
            }
        }
    }

    fn set_unknown(&mut self, dice: &mut Dice) -> Vec<Action> {
        let Some(index) = self.any(dice, &[State::Running]) else {
            return Vec::new();
        };
        let name = self.container_name(index);
        self.become_state(index, State::Unknown);
        name.map(Action::SetUnknown).into_iter().collect()
    }

    fn amend(&mut self, dice: &mut Dice) -> Vec<Action> {
        let Some(container) = self
            .any(dice, &[State::Exited])
            .and_then(|index| self.container_name(index))
        else {
            return Vec::new();
        };
        vec![Action::AmendReason(AmendReason {
            container,
            reason: "OOMKilled".to_owned(),
        })]
    }
}
