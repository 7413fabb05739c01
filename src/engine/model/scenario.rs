//! A run of the model as a scenario file, to replay with the whole product.
//!
//! The model's steps happen at one instant unless time passes; here each has its own moment, two
//! milliseconds after the one before. A message comes when the model brought it: an honest one by
//! `delay`, any other by `emit`. A read is slow so that its parts show the moments that they showed in
//! the model, as far as one fault for each call can say that. What the language has no word for (an
//! item that cannot be read, a state that is known again) is a comment.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::offers::news_of;
use super::oracle::{Violation, as_one_line};
use super::run::{Message, Run, Snapshot};
use super::step::{Step, Told};
use super::truth::{Role, Stage, Subject, Truth};
use crate::engine::{Freshness, Question, RequestId};
use crate::lifecycle::{EventKind, Mono};

/// Milliseconds from one step to the next: timers are told apart by one.
const APART: u64 = 2;
/// When the generator starts, in milliseconds: when the model's clock does.
const STARTS: u64 = 1_000;
/// What is never answered in the model is answered so soon.
const SOON: u64 = 1;

/// Prints the run from `start` by `steps`.
pub(crate) fn scenario(name: &str, start: &Run, steps: &[Step], violation: &Violation) -> String {
    let telling = Telling::of(start, steps);
    Writer::new(start).write(name, start, &telling, violation)
}

/// A message and when it came.
struct Sent {
    message: Message,
    at: u64,
    step: usize,
    arrivals: Vec<u64>,
    is_late_stamped: Option<u64>,
}

/// A call, when it was asked, and what its answer showed when.
struct Called {
    question: Question,
    asked: u64,
    /// When each world that it saw began.
    worlds: Vec<u64>,
    answer: Option<(u64, usize, usize)>,
    failed: bool,
}

/// A run, with when everything happened.
struct Telling {
    /// The steps, each with its moment and the world before it.
    steps: Vec<(u64, Step, Truth)>,
    sent: Vec<Sent>,
    calls: BTreeMap<RequestId, Called>,
    ends: u64,
}

fn millis(moment: Mono) -> u64 {
    moment.0 / 1_000_000
}

impl Telling {
    fn of(start: &Run, steps: &[Step]) -> Self {
        let mut run = start.clone();
        let mut now = millis(run.now.mono);
        let mut telling = Self {
            steps: Vec::new(),
            sent: Vec::new(),
            calls: BTreeMap::new(),
            ends: now,
        };
        // Which message of `sent` each one in flight is.
        let mut in_flight: Vec<usize> = Vec::new();
        telling.note_calls(&run, now);
        for (number, &step) in steps.iter().enumerate() {
            let before = run.truth;
            let underway = run.calls.clone();
            now = (now + APART).max(millis(run.now.mono));
            let outcome = run.apply(step);
            now = now.max(millis(run.now.mono));
            telling.steps.push((now, step, before));
            match step {
                Step::Deliver { nth } | Step::DeliverTwice { nth } => {
                    let at = usize::from(nth);
                    if let Some(&sent) = in_flight.get(at) {
                        telling.sent[sent].arrivals.push(now);
                        if matches!(step, Step::Deliver { .. }) {
                            in_flight.remove(at);
                        }
                    }
                }
                Step::StampLate { nth } => {
                    if let Some(&sent) = in_flight.get(usize::from(nth)) {
                        telling.sent[sent].is_late_stamped = Some(now);
                    }
                }
                Step::Break { backlog: false } => in_flight.clear(),
                Step::Overflow { .. } if !in_flight.is_empty() => {
                    in_flight.remove(0);
                }
                _ => {}
            }
            while in_flight.len() < run.messages.len() {
                in_flight.push(telling.sent.len());
                telling.sent.push(Sent {
                    message: run.messages[in_flight.len() - 1],
                    at: now,
                    step: number,
                    arrivals: Vec::new(),
                    is_late_stamped: None,
                });
            }
            telling.note_answer(step, &underway, now);
            if run.truth != before {
                for call in telling
                    .calls
                    .values_mut()
                    .filter(|call| call.answer.is_none())
                {
                    call.worlds.push(now);
                }
            }
            telling.note_calls(&run, now);
            if outcome.is_err() {
                break;
            }
        }
        telling.ends = now;
        telling
    }

    fn note_calls(&mut self, run: &Run, now: u64) {
        for call in &run.calls {
            self.calls.entry(call.request).or_insert_with(|| Called {
                question: call.question.clone(),
                asked: now,
                worlds: vec![now],
                answer: None,
                failed: false,
            });
        }
    }

    fn note_answer(&mut self, step: Step, underway: &[super::run::Call], now: u64) {
        let last = usize::MAX;
        let (call, sandboxes, containers, failed) = match step {
            Step::Answer {
                call,
                sandboxes,
                containers,
            } => (call, usize::from(sandboxes), usize::from(containers), false),
            Step::AnswerUnreadable { call, .. } => (call, last, last, false),
            Step::Fail { call } | Step::FailContainers { call } => (call, 0, last, true),
            _ => return,
        };
        let called = underway
            .get(usize::from(call))
            .and_then(|call| self.calls.get_mut(&call.request));
        if let Some(called) = called {
            called.answer = Some((now, sandboxes, containers));
            called.failed = failed;
        }
    }
}

impl Called {
    fn methods(&self) -> Option<[(&'static str, usize); 2]> {
        match &self.question {
            Question::Version => None,
            Question::FullRelist | Question::PodRelist { .. } => {
                Some([("ListPodSandbox", 1), ("ListContainers", 1)])
            }
            Question::Inspect {
                sandboxes,
                containers,
                ..
            } => Some([
                ("PodSandboxStatus", sandboxes.len()),
                ("ContainerStatus", containers.len()),
            ]),
        }
    }

    /// The faults that make its two parts show what they showed, each with when it is asked.
    fn faults(&self) -> Vec<(u64, String)> {
        let Some([(first, firsts), (second, seconds)]) = self.methods() else {
            return Vec::new();
        };
        let (ends, sandboxes, containers) = self.answer.unwrap_or((self.asked + SOON, 0, 0));
        let began = |world: usize| {
            self.worlds
                .get(world)
                .or(self.worlds.last())
                .copied()
                .unwrap_or(self.asked)
        };
        let mut faults = Vec::new();
        let slow = |method: &str, times: usize, by: u64, late: bool| {
            format!("slow: {{call: {method}, times: {times}, by: {by}ms, readLate: {late}}}")
        };
        if self.failed && firsts > 0 {
            let by = ends.saturating_sub(self.asked);
            let fail = format!(
                "fail: {{call: {first}, times: {firsts}, code: Unavailable, after: {by}ms}}"
            );
            return vec![(self.asked, fail)];
        }
        // The first part is read at once and answered when the second is asked for, or read then.
        let meeting = if firsts == 0 {
            self.asked
        } else if seconds == 0 {
            ends
        } else {
            (began(containers.max(sandboxes)) + 1).clamp(self.asked, ends)
        };
        if firsts > 0 {
            let by = meeting.saturating_sub(self.asked);
            faults.push((self.asked, slow(first, firsts, by, sandboxes > 0)));
        }
        if seconds > 0 {
            let by = ends.saturating_sub(meeting);
            let late = began(containers) > meeting;
            let fault = if self.failed {
                format!("fail: {{call: {second}, times: {seconds}, after: {by}ms}}")
            } else {
                slow(second, seconds, by, late)
            };
            faults.push((meeting, fault));
        }
        faults
    }
}

struct Writer {
    /// What each subject is called, once it is born.
    names: Vec<Option<String>>,
    is_labelled: bool,
    marks: usize,
    readers: usize,
    has_mark: bool,
    is_stalled: bool,
}

impl Writer {
    fn new(start: &Run) -> Self {
        Self {
            names: start.cast.subjects().map(|_| None).collect(),
            is_labelled: start.cast.labelled,
            marks: 0,
            readers: 0,
            has_mark: false,
            is_stalled: false,
        }
    }

    fn write(
        mut self,
        name: &str,
        start: &Run,
        telling: &Telling,
        violation: &Violation,
    ) -> String {
        let title: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let mut text = format!(
            "version: 1\nname: {title}\nstory: >\n  Found by the model check. {}: {}\n\
             settings: {{channelCapacity: 1}}\nruntime: {{is: containerd-2, sandboxCreated: true}}\n",
            violation.property,
            as_one_line(&violation.detail)
        );
        let initial: Vec<String> = start
            .cast
            .subjects()
            .flat_map(|subject| self.bring_to(start, subject, start.prelude.initial.stage(subject)))
            .collect();
        // A String never fails.
        let _ = writeln!(text, "initial: [{}]", initial.join(", "));
        text.push_str("plegStartsAt: 1s\nsteps:\n");
        let mut written = Steps::new(text);
        let begins = millis(start.now.mono);
        let mut stage = start.prelude.initial;
        for &(at, subject, to) in &start.prelude.changes {
            let actions = self.change(start, subject, stage.stage(subject), to);
            stage = stage.with(subject, to);
            written.add(millis(at) + 1, actions);
        }
        let mut faults: Vec<_> = telling.calls.values().flat_map(Called::faults).collect();
        faults.sort_by_key(|(asked, _)| *asked);
        let faults = faults.into_iter().map(|(_, fault)| fault).collect();
        // The first calls of an engine that has just begun are as slow as the others.
        let is_cold = start.prelude.changes.is_empty();
        written.add(if is_cold { STARTS / 2 } else { begins }, faults);
        let subscribe = "subscribe: {as: stalling}".to_owned();
        written.add(begins.max(STARTS), vec![subscribe]);
        let mut emitted: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (number, &(at, step, before)) in telling.steps.iter().enumerate() {
            let sent: Vec<&Sent> = telling
                .sent
                .iter()
                .filter(|sent| sent.step == number)
                .collect();
            let actions = self.step(start, step, before, &sent, &mut emitted);
            written.add(at, actions);
            if let Some(actions) = emitted.remove(&at) {
                written.add(at, actions);
            }
            if let Some(comment) = unspeakable(step, before) {
                written.comment(comment);
            }
        }
        let end = if self.is_stalled {
            "[unmute, heal, resumeReading: stalling]"
        } else {
            "[unmute, heal]"
        };
        let mut text = written.text;
        let _ = write!(
            text,
            "  - at: {}ms\n    do: {end}\n  - after: 1000s\n    \
             expect: {{converged: true, delivered: anything, deliveredTo: {{stalling: anything}}}}\n",
            telling.ends + APART
        );
        text
    }

    fn step(
        &mut self,
        start: &Run,
        step: Step,
        before: Truth,
        sent: &[&Sent],
        emitted: &mut BTreeMap<u64, Vec<String>>,
    ) -> Vec<String> {
        let exists = self.names.iter().any(Option::is_some);
        match step {
            Step::Change { subject, to, told } => {
                let from = before.stage(subject);
                let action = self.change(start, subject, from, to);
                let mut actions = self.fates(start, subject, from, to, told, sent, emitted);
                actions.extend(action);
                actions
            }
            Step::TellLate { .. } | Step::TellFalseDeleted { .. } => {
                for sent in sent {
                    self.emit_each(start, sent, 0, emitted);
                }
                Vec::new()
            }
            Step::Break { .. } => vec!["breakStream: Unavailable".to_owned()],
            Step::ClockBack { seconds } => vec![format!("stepClock: -{seconds}s")],
            Step::ClockForward { seconds } => vec![format!("stepClock: {seconds}s")],
            Step::BeDeaf { deaf: true } => vec!["fail: {call: Version, times: 1000}".to_owned()],
            Step::Stall { stalled } => {
                self.is_stalled = stalled;
                let verb = if stalled {
                    "stopReading"
                } else {
                    "resumeReading"
                };
                vec![format!("{verb}: stalling")]
            }
            Step::TakeMark => {
                self.marks += 1;
                self.has_mark = true;
                vec![format!("mark: m{}", self.marks)]
            }
            Step::Read { freshness } if exists => {
                self.readers += 1;
                let newer = if std::mem::take(&mut self.has_mark) {
                    format!(", newerThan: m{}", self.marks)
                } else {
                    String::new()
                };
                vec![format!(
                    "ask: {{as: r{}, pod: web{newer}, phasesOnly: {}}}",
                    self.readers,
                    freshness == Freshness::Phases
                )]
            }
            Step::GiveUp if self.readers > 0 => vec![format!("giveUp: r{}", self.readers)],
            Step::RequestRelist { of_pod: false } => vec!["relistAll".to_owned()],
            Step::RequestRelist { of_pod: true } if exists => vec!["relist: web".to_owned()],
            Step::RequestReinspect if exists => vec!["reinspect: web".to_owned()],
            _ => Vec::new(),
        }
    }

    /// What becomes of the messages about a change, said before it is made.
    #[expect(clippy::too_many_arguments, reason = "one change, from all sides")]
    fn fates(
        &self,
        start: &Run,
        subject: Subject,
        from: Stage,
        to: Stage,
        told: Told,
        sent: &[&Sent],
        emitted: &mut BTreeMap<u64, Vec<String>>,
    ) -> Vec<String> {
        let mut fates = Vec::new();
        let lose = |kind| format!("lose: {{next: 1, type: {}}}", spelled(kind));
        let is_birth = start.cast.is_sandbox(subject) && from == Stage::Absent;
        if is_birth
            && !sent
                .iter()
                .any(|sent| sent.message.kind == EventKind::Created)
        {
            fates.push(lose(EventKind::Created));
        }
        let ran = matches!(from, Stage::Running | Stage::Addressless | Stage::Obscured);
        if ran && to == Stage::Removed {
            // The runtime tells of the end that comes before, the model does not.
            fates.push(lose(EventKind::Stopped));
        }
        if sent.is_empty() {
            fates.extend(news_of(from, to).map(lose));
        }
        for sent in sent {
            let kind = sent.message.kind;
            let is_honest = told == Told::Truly && sent.is_late_stamped.is_none();
            match sent.arrivals.first() {
                Some(&arrives) if is_honest => {
                    let by = arrives.saturating_sub(sent.at);
                    fates.push(format!(
                        "delay: {{messages: {{next: 1, type: {}}}, by: {by}ms}}",
                        spelled(kind)
                    ));
                    self.emit_each(start, sent, 1, emitted);
                }
                _ => {
                    fates.push(lose(kind));
                    self.emit_each(start, sent, 0, emitted);
                }
            }
        }
        fates
    }

    /// Has a message put on the stream at each of its arrivals but the first `skipped`.
    fn emit_each(
        &self,
        start: &Run,
        sent: &Sent,
        skipped: usize,
        emitted: &mut BTreeMap<u64, Vec<String>>,
    ) {
        for &at in sent.arrivals.iter().skip(skipped) {
            if let Some(emit) = self.emit(start, sent) {
                emitted.entry(at).or_default().push(emit);
            }
        }
    }

    fn emit(&self, start: &Run, sent: &Sent) -> Option<String> {
        let Message {
            about,
            kind,
            snapshot,
            ..
        } = sent.message;
        let name = self.names[about.index()].as_ref()?;
        let stamp = sent.is_late_stamped.unwrap_or(sent.at);
        let shown = match snapshot {
            Snapshot::Missing => ", sandbox: missing, containers: {}".to_owned(),
            Snapshot::Of(truth) => match (start.cast.is_sandbox(about), truth.stage(about)) {
                (true, Stage::Absent | Stage::Removed) => ", sandbox: missing".to_owned(),
                (true, Stage::Exited) => ", sandbox: notReady".to_owned(),
                (true, _) => ", sandbox: ready".to_owned(),
                (false, Stage::Absent | Stage::Removed) => ", containers: {}".to_owned(),
                (false, Stage::Created) => format!(", containers: {{{name}: created}}"),
                (false, Stage::Obscured) => format!(", containers: {{{name}: unknown}}"),
                (false, Stage::Exited) => format!(", containers: {{{name}: {{exited: 7}}}}"),
                (false, Stage::StartFailed) => {
                    format!(", containers: {{{name}: {{exited: 128}}}}")
                }
                (false, _) => format!(", containers: {{{name}: running}}"),
            },
        };
        let kind = spelled(kind);
        Some(format!(
            "emit: {{type: {kind}, about: {name}, stamp: {stamp}ms{shown}}}"
        ))
    }

    /// Brings a subject from nothing to a stage.
    fn bring_to(&mut self, start: &Run, subject: Subject, to: Stage) -> Vec<String> {
        let way: &[Stage] = match (start.cast.is_sandbox(subject), to) {
            (_, Stage::Absent) => &[],
            (true, Stage::Addressless) => &[Stage::Addressless],
            (true, Stage::Exited) => &[Stage::Running, Stage::Exited],
            (true, _) => &[Stage::Running],
            (false, Stage::Created) => &[Stage::Created],
            (false, Stage::StartFailed) => &[Stage::Created, Stage::StartFailed],
            (false, Stage::Obscured) => &[Stage::Created, Stage::Running, Stage::Obscured],
            (false, Stage::Exited) => &[Stage::Created, Stage::Running, Stage::Exited],
            (false, _) => &[Stage::Created, Stage::Running],
        };
        let mut from = Stage::Absent;
        let mut actions = Vec::new();
        for &next in way {
            actions.extend(self.change(start, subject, from, next));
            from = next;
        }
        actions
    }

    /// The action that makes a change, and, from birth on, the subject's name.
    fn change(&mut self, start: &Run, subject: Subject, from: Stage, to: Stage) -> Vec<String> {
        if self.names[subject.index()].is_none() {
            let name = self.name(start, subject);
            self.names[subject.index()] = Some(name);
        }
        let name = self.names[subject.index()].clone().unwrap_or_default();
        let action = match (start.cast.role(subject), to) {
            (Role::Sandbox { .. }, Stage::Running) if from == Stage::Addressless => {
                format!("setIps: {{sandbox: {name}, ips: [10.0.0.9]}}")
            }
            (Role::Sandbox { .. }, Stage::Running | Stage::Addressless) => {
                let kind = if self.is_labelled {
                    ""
                } else {
                    ", byCrictl: true"
                };
                let mut actions = vec![format!("run: {{pod: web{kind}}}")];
                if to == Stage::Addressless {
                    actions.push(format!("setIps: {{sandbox: {name}, ips: []}}"));
                }
                return actions;
            }
            (Role::Sandbox { .. }, Stage::Exited) => format!("stopSandbox: {name}"),
            (Role::Sandbox { .. }, _) => format!("removeSandbox: {name}"),
            (Role::Container { name: app, .. }, Stage::Created) => format!("create: web/{app}"),
            (Role::Container { .. }, Stage::Running) if from == Stage::Obscured => {
                return Vec::new();
            }
            (Role::Container { .. }, Stage::Running) => format!("start: {name}"),
            (Role::Container { .. }, Stage::Obscured) => format!("setUnknown: {name}"),
            (Role::Container { .. }, Stage::StartFailed) => format!("failStart: {name}"),
            (Role::Container { .. }, Stage::Exited) => {
                format!("exit: {{container: {name}, code: 7}}")
            }
            (Role::Container { .. }, _) => format!("remove: {name}"),
        };
        vec![action]
    }

    /// Subjects are numbered in the order in which they are made.
    fn name(&self, start: &Run, subject: Subject) -> String {
        let is_same = |other: Subject| match (start.cast.role(subject), start.cast.role(other)) {
            (Role::Sandbox { .. }, Role::Sandbox { .. }) => true,
            (Role::Container { name, .. }, Role::Container { name: other, .. }) => name == other,
            _ => false,
        };
        let number = start
            .cast
            .subjects()
            .filter(|&other| is_same(other) && self.names[other.index()].is_some())
            .count();
        match start.cast.role(subject) {
            Role::Sandbox { .. } => format!("web#{number}"),
            Role::Container { name, .. } => format!("web/{name}#{number}"),
        }
    }
}

/// Steps as they are written, one moment after the other.
struct Steps {
    text: String,
}

impl Steps {
    fn new(text: String) -> Self {
        Self { text }
    }

    fn add(&mut self, at: u64, actions: Vec<String>) {
        if actions.is_empty() {
            return;
        }
        let _ = writeln!(self.text, "  - at: {at}ms\n    do:");
        for action in actions {
            let _ = writeln!(self.text, "      - {action}");
        }
    }

    fn comment(&mut self, text: &str) {
        let _ = writeln!(self.text, "  # {text}");
    }
}

fn unspeakable(step: Step, before: Truth) -> Option<&'static str> {
    match step {
        Step::AnswerUnreadable { .. } => Some("an item of this list could not be read"),
        Step::Overflow { .. } => Some("the inbox had no room for the message lost"),
        Step::Change {
            subject,
            to: Stage::Running,
            ..
        } if before.stage(subject) == Stage::Obscured => {
            Some("the runtime knew the container again")
        }
        _ => None,
    }
}

fn spelled(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Created => "CREATED",
        EventKind::Started => "STARTED",
        EventKind::Stopped => "STOPPED",
        EventKind::Deleted | EventKind::Other(_) => "DELETED",
    }
}
