//! A plan as a scenario file, to replay with the whole product.
//!
//! What the language has no word for is told as a comment: an inbox that overflows is replayed as
//! messages that are lost. Transit times are the runtime's latency.

use std::fmt::Write as _;

use super::Failure;
use super::act::{Act, BY_CRICTL, Method, Named, ON_THE_HOST_NETWORK, Plan};
use super::node::Node;
use crate::engine::model::as_one_line;
use crate::lifecycle::Mark;

impl Failure {
    /// The plan as a scenario that replays.
    pub(crate) fn scenario(&self) -> String {
        Writer::new(&self.plan).write(self)
    }
}

struct Writer {
    node: Node,
    is_streamed: bool,
    is_up: bool,
    is_shared: bool,
    has_mark: bool,
    marks: usize,
    readers: usize,
    subscribers: usize,
}

impl Writer {
    fn new(plan: &Plan) -> Self {
        Self {
            node: Node::default(),
            is_streamed: plan
                .steps
                .iter()
                .any(|step| matches!(step.act, Act::Cut { .. })),
            is_up: true,
            is_shared: false,
            has_mark: false,
            marks: 0,
            readers: 0,
            subscribers: 0,
        }
    }

    fn write(mut self, failure: &Failure) -> String {
        let Failure { plan, violation } = failure;
        let mut text = String::new();
        let shares = plan.steps.iter().any(|step| step.act == Act::Compete);
        let runtime = match (plan.character.events, plan.character.keeps_messages) {
            (false, _) => "containerd-1.6",
            (true, true) => "containerd-1.7",
            (true, false) => "containerd-2",
        };
        // A String never fails.
        let _ = write!(
            text,
            "version: 1\nname: seed-{}\nstory: >\n  Drawn at random and shortened. {}: {}\n\
             settings: {{channelCapacity: {}, seed: {}}}\n\
             runtime: {{is: {runtime}, latency: {}ms{}{}}}\n",
            plan.seed,
            violation.property,
            as_one_line(&violation.detail),
            plan.character.capacity,
            plan.seed,
            plan.character.latency,
            if shares { ", competing: true" } else { "" },
            if self.is_streamed {
                ", streamingLists: 2"
            } else {
                ""
            },
        );
        let initial: Vec<String> = plan
            .initial
            .iter()
            .filter_map(|act| self.act(*act))
            .collect();
        let _ = writeln!(text, "initial: [{}]", initial.join(", "));
        text.push_str("steps:\n  - at: 0s\n    do: [subscribe: {as: stalling}]\n");
        let mut waited = 0_u64;
        for step in &plan.steps {
            waited += u64::from(step.after);
            match (self.act(step.act), step.act) {
                (Some(action), _) => {
                    let _ = writeln!(text, "  - after: {waited}ms\n    do: [{action}]");
                    waited = 0;
                }
                (None, Act::Overflow { next }) => {
                    let _ = writeln!(
                        text,
                        "  # the inbox overflows\n  - after: {waited}ms\n    do: [lose: {{next: {next}}}]"
                    );
                    waited = 0;
                }
                (None, Act::Garble { .. }) => {
                    text.push_str("  # an item cannot be read in lists from here on\n");
                }
                (None, _) => {}
            }
        }
        let mut heals = vec!["unmute", "heal", "resumeReading: stalling"];
        if self.is_shared {
            heals.push("stopCompeting");
        }
        heals.push(if self.is_up {
            "thawRuntime"
        } else {
            "startRuntime"
        });
        let mut late = String::new();
        for number in 1..=self.subscribers {
            let _ = write!(late, ", late{number}: anything");
        }
        let _ = write!(
            text,
            "  - after: {waited}ms\n    do: [{}]\n  - after: 1000s\n    \
             expect: {{converged: true, delivered: anything, deliveredTo: {{stalling: anything{late}}}}}\n",
            heals.join(", ")
        );
        text
    }

    /// The action, if it is possible and the language has it.
    fn act(&mut self, act: Act) -> Option<String> {
        if let Some(changes) = self.node.changes(act) {
            // Names are those of before: what goes is named as long as it is there.
            let action = self.on_the_node(act);
            for change in changes {
                self.node.make_true(change, Mark::default());
            }
            return action;
        }
        self.in_the_runtime(act)
            .or_else(|| self.on_the_stream(act))
            .or_else(|| self.among_consumers(act))
    }

    fn in_the_runtime(&mut self, act: Act) -> Option<String> {
        let action = match act {
            Act::StopRuntime => {
                self.is_up = false;
                "stopRuntime".to_owned()
            }
            Act::StartRuntime if !self.is_up => {
                self.is_up = true;
                "startRuntime".to_owned()
            }
            Act::FreezeRuntime if self.is_up => "freezeRuntime".to_owned(),
            Act::ThawRuntime if self.is_up => "thawRuntime".to_owned(),
            Act::StepClock { millis } => format!("stepClock: {millis}ms"),
            Act::Fail { call, times } => {
                format!("fail: {{call: {}, times: {times}}}", self.method(call))
            }
            Act::Slow {
                call,
                times,
                millis,
                read_late,
            } => format!(
                "slow: {{call: {}, times: {times}, by: {millis}ms, readLate: {read_late}}}",
                self.method(call)
            ),
            Act::Cut { call, times } => {
                let call = self.method(call);
                format!("cut: {{call: {call}, after: 1, times: {times}}}")
            }
            Act::Heal => "heal".to_owned(),
            _ => return None,
        };
        Some(action)
    }

    fn on_the_stream(&mut self, act: Act) -> Option<String> {
        let action = match act {
            Act::Lose { next } => format!("lose: {{next: {next}}}"),
            Act::Delay { next, millis } => {
                format!("delay: {{messages: {{next: {next}}}, by: {millis}ms}}")
            }
            Act::Duplicate { next } => {
                format!("duplicate: {{messages: {{next: {next}}}, times: 1}}")
            }
            Act::Reorder { next } => format!("reorder: {{next: {next}}}"),
            Act::Mute => "mute".to_owned(),
            Act::Unmute => "unmute".to_owned(),
            Act::Compete if !self.is_shared => {
                self.is_shared = true;
                "compete".to_owned()
            }
            Act::StopCompeting if self.is_shared => {
                self.is_shared = false;
                "stopCompeting".to_owned()
            }
            Act::FalseDeleted {
                pod,
                name: Some(name),
            } => {
                let named = Named { pod, name };
                let about = self.container(named)?;
                format!("emit: {{type: DELETED, about: {about}, containers: {{}}}}")
            }
            Act::FalseDeleted { pod, name: None } => {
                let about = self.sandbox(pod)?;
                format!("emit: {{type: DELETED, about: {about}, sandbox: missing}}")
            }
            Act::Garbage => "emitBytes: \"ff\"".to_owned(),
            Act::EndStream => "endStream".to_owned(),
            Act::BreakStream => "breakStream: Unavailable".to_owned(),
            _ => return None,
        };
        Some(action)
    }

    fn among_consumers(&mut self, act: Act) -> Option<String> {
        let is_known = |pod| self.node.of_pod(pod).next().is_some();
        let action = match act {
            Act::StopReading => "stopReading: stalling".to_owned(),
            Act::ResumeReading => "resumeReading: stalling".to_owned(),
            Act::Mark => {
                self.has_mark = true;
                self.marks += 1;
                format!("mark: m{}", self.marks)
            }
            Act::Ask { pod, phases_only } if is_known(pod) => {
                self.readers += 1;
                let newer = if std::mem::take(&mut self.has_mark) {
                    format!(", newerThan: m{}", self.marks)
                } else {
                    String::new()
                };
                let reader = self.readers;
                format!("ask: {{as: r{reader}, pod: p{pod}{newer}, phasesOnly: {phases_only}}}")
            }
            Act::Subscribe => {
                self.subscribers += 1;
                format!(
                    "subscribe: {{as: late{}, withSnapshot: true}}",
                    self.subscribers
                )
            }
            Act::GiveUp if self.readers > 0 => format!("giveUp: r{}", self.readers),
            Act::Relist { pod } if is_known(pod) => format!("relist: p{pod}"),
            Act::RelistAll => "relistAll".to_owned(),
            Act::Reinspect { pod } if is_known(pod) => format!("reinspect: p{pod}"),
            _ => return None,
        };
        Some(action)
    }

    fn method(&self, method: Method) -> &'static str {
        match (method, self.is_streamed) {
            (Method::Version, _) => "Version",
            (Method::ListSandboxes, false) => "ListPodSandbox",
            (Method::ListSandboxes, true) => "StreamPodSandboxes",
            (Method::ListContainers, false) => "ListContainers",
            (Method::ListContainers, true) => "StreamContainers",
            (Method::SandboxStatus, _) => "PodSandboxStatus",
            (Method::ContainerStatus, _) => "ContainerStatus",
        }
    }

    /// The newest container of a name that is there, by its number among all that ever were.
    fn container(&self, named: Named) -> Option<String> {
        let number = self.node.subjects[self.node.container(named)?].attempt;
        Some(format!("p{}/c{}#{number}", named.pod, named.name))
    }

    fn sandbox(&self, pod: u8) -> Option<String> {
        let number = self.node.subjects[self.node.sandbox(pod)?].attempt;
        Some(format!("p{pod}#{number}"))
    }

    fn on_the_node(&self, act: Act) -> Option<String> {
        let action = match act {
            Act::Run { pod, containers } => {
                let names: Vec<_> = (0..containers).map(|name| format!("c{name}")).collect();
                let kind = match pod {
                    ON_THE_HOST_NETWORK => ", hostNetwork: true",
                    BY_CRICTL => ", byCrictl: true",
                    _ => "",
                };
                format!(
                    "run: {{pod: p{pod}, containers: [{}]{kind}}}",
                    names.join(", ")
                )
            }
            Act::Create(named) => format!("create: p{}/c{}", named.pod, named.name),
            Act::Start(named) => format!("start: {}", self.container(named)?),
            Act::RunContainer(named) => format!("runContainer: p{}/c{}", named.pod, named.name),
            Act::FailStart(named) => format!("failStart: {}", self.container(named)?),
            Act::Exit {
                container: named,
                code,
            } => format!(
                "exit: {{container: {}, code: {code}}}",
                self.container(named)?
            ),
            Act::Remove(named) => format!("remove: {}", self.container(named)?),
            Act::SetUnknown(named) => format!("setUnknown: {}", self.container(named)?),
            Act::StopSandbox { pod } => format!("stopSandbox: {}", self.sandbox(pod)?),
            Act::LoseSandbox { pod } => format!("loseSandbox: {}", self.sandbox(pod)?),
            Act::RemoveSandbox { pod } => format!("removeSandbox: {}", self.sandbox(pod)?),
            _ => return None,
        };
        Some(action)
    }
}
