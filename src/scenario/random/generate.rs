//! A scenario from a seed: a node, what happens on it, what goes wrong meanwhile, who listens; then
//! rest, and the expectation that all laws hold.

use std::collections::BTreeMap;
use std::time::Duration;

use super::dice::Dice;
use super::faults::{Faults, Trouble};
use super::node::Node;
use crate::scenario::action::{Action, Ask, Character, Events, Method, Preset, Stamps, Subscribe};
use crate::scenario::expect::{Delivered, Expect};
use crate::scenario::file::{Scenario, Settings, Step, VERSION};
use crate::scenario::values::{At, Time};

/// A scenario and where in it the runtime begins to rest.
#[derive(Clone, Debug)]
pub(super) struct Generated {
    pub(super) scenario: Scenario,
    /// The number of the first step of the rest.
    pub(super) rest: usize,
}

/// The actions so far, each with its moment.
struct Story {
    dice: Dice,
    now: Duration,
    /// How long nothing happens, at most, most of the time.
    pace: u64,
    done: BTreeMap<Duration, Vec<Action>>,
    faults: Faults,
    consumers: Consumers,
    pleg_starts: Duration,
}

#[derive(Default)]
struct Consumers {
    /// Each with whether it sleeps.
    subscribers: Vec<(String, bool)>,
    marks: u64,
    questions: u64,
    /// Until when the generator is stopped.
    stopped_until: Option<Duration>,
}

pub(super) fn generate(seed: u64) -> Generated {
    let mut dice = Dice::new(seed);
    let runtime = character(&mut dice);
    let settings = settings(&mut dice, seed);
    let pods = match dice.below(10) {
        0..=4 => dice.between(1, 4),
        5..=7 => dice.between(5, 15),
        _ => dice.between(16, 50),
    };
    let mut node = Node::new(&mut dice, usize::try_from(pods).unwrap_or(1));
    node.failed_start_leaves_nothing = leaves_nothing(runtime.is);
    let mut initial = Vec::new();
    for _ in 0..dice.below(pods + 1) {
        initial.append(&mut node.settled(&mut dice));
    }
    let pleg_starts = if dice.percent(20) {
        dice.millis(1, 4_000)
    } else {
        Duration::ZERO
    };
    let faults = Faults::new(&mut dice, &runtime);
    let pace = dice.pick(&[40, 400, 2_500, 9_000]).unwrap_or(400);
    let steps = dice.between(8, 60 + pods * 2);
    let mut story = Story {
        dice,
        now: Duration::ZERO,
        pace,
        done: BTreeMap::new(),
        faults,
        consumers: Consumers::default(),
        pleg_starts,
    };
    for _ in 0..steps {
        story.pass();
        story.happen(&mut node);
    }
    let (steps, rest) = story.rest(&node, settings);
    let scenario = Scenario {
        version: At::from(VERSION),
        name: format!("random-{seed}"),
        story: format!("Made by the random simulation from seed {seed}."),
        covers: Vec::new(),
        settings,
        runtime,
        initial: initial.into_iter().map(At::from).collect(),
        pleg_starts_at: Time(pleg_starts),
        steps,
    };
    Generated { scenario, rest }
}

/// CRI-O removes the container of a failed start.
pub(super) fn leaves_nothing(preset: Preset) -> bool {
    matches!(preset, Preset::CriO | Preset::CriOEventsOff)
}

pub(super) fn preset(dice: &mut Dice) -> Preset {
    dice.weighted(&[
        (8, Preset::Containerd16),
        (30, Preset::Containerd17),
        (40, Preset::Containerd2),
        (18, Preset::CriO),
        (4, Preset::CriOEventsOff),
    ])
    .unwrap_or_default()
}

fn character(dice: &mut Dice) -> Character {
    let mut runtime = Character {
        is: preset(dice),
        seed: Some(dice.between(1, 1_000_000)),
        backlog: dice.percent(15),
        ..Character::default()
    };
    if dice.percent(25) {
        runtime.streaming_lists = Some(usize::try_from(dice.between(1, 20)).unwrap_or(1));
    }
    if dice.percent(20) {
        runtime.status_carries_containers = Some(dice.percent(70));
    }
    if dice.percent(30) {
        runtime.latency = Some(Time(dice.millis(1, 300)));
    }
    if dice.percent(20) {
        let method = dice.pick(&[
            Method::ListPodSandbox,
            Method::ListContainers,
            Method::PodSandboxStatus,
            Method::ContainerStatus,
        ]);
        let latency = Time(dice.millis(1, 2_500));
        runtime.latency_of = method.map(|method| (method, latency)).into_iter().collect();
    }
    if dice.percent(8) {
        let by = Time(dice.millis(1, 3_600_000));
        runtime.stamps = dice.pick(&[
            Stamps::Seconds,
            Stamps::Milliseconds,
            Stamps::Zero,
            Stamps::Negative,
            Stamps::Ahead(by),
            Stamps::Behind(by),
        ]);
    }
    if dice.percent(4) {
        runtime.events = dice.pick(&[Events::Unimplemented, Events::EndsAtOnce]);
    }
    if dice.percent(5) {
        runtime.sandbox_created = Some(dice.percent(50));
    }
    if dice.percent(4) {
        runtime.competing = Some(dice.percent(50));
    }
    if dice.percent(5) {
        runtime.version = Some("9.9.9".to_owned());
    }
    runtime
}

fn settings(dice: &mut Dice, seed: u64) -> Settings {
    let mut settings = Settings {
        seed,
        ..Settings::default()
    };
    if dice.percent(4) {
        settings.evented = Some(false);
    }
    if dice.percent(15) {
        settings.relist_period = Some(Time(dice.millis(200, 5_000)));
    }
    if dice.percent(30) {
        settings.evented_relist_period = Some(Time(dice.millis(10_000, 300_000)));
    }
    if dice.percent(30) {
        settings.channel_capacity = Some(usize::try_from(dice.between(1, 40)).unwrap_or(1));
    }
    if dice.percent(8) {
        settings.stream_inbox_bytes =
            Some(usize::try_from(dice.between(2_000, 40_000)).unwrap_or(2_000));
    }
    settings
}

impl Story {
    /// Lets some time pass: none, a little, or much.
    fn pass(&mut self) {
        let passed = match self.dice.below(10) {
            0..=1 => Duration::ZERO,
            2..=3 => self.dice.millis(1, 20),
            4..=8 => self.dice.millis(1, self.pace),
            _ => self.dice.millis(self.pace, self.pace * 6),
        };
        self.now += passed;
    }

    fn happen(&mut self, node: &mut Node) {
        match self.dice.below(100) {
            0..=69 => {
                let actions = node.change(&mut self.dice);
                self.do_all(self.now, actions);
            }
            70..=86 => {
                let Some(trouble) = self.faults.strike(&mut self.dice, node, self.now) else {
                    return;
                };
                self.suffer(node, trouble);
            }
            _ => self.consume(node),
        }
    }

    fn suffer(&mut self, node: &mut Node, trouble: Trouble) {
        if let [Action::Upgrade(character), ..] = trouble.begins.as_slice() {
            node.failed_start_leaves_nothing = leaves_nothing(character.is);
        }
        self.do_all(self.now, trouble.begins);
        if let Some((after, end)) = trouble.ends {
            self.do_all(self.now + after, vec![end]);
        }
    }

    fn do_all(&mut self, at: Duration, actions: Vec<Action>) {
        if !actions.is_empty() {
            self.done.entry(at).or_default().extend(actions);
        }
    }

    fn consume(&mut self, node: &Node) {
        let now = self.now;
        // What consumers do needs a generator that runs by then.
        let is_stopped = |until: Option<Duration>| until.is_some_and(|until| now <= until);
        if now <= self.pleg_starts || is_stopped(self.consumers.stopped_until) {
            return;
        }
        let dice = &mut self.dice;
        let action = match dice.below(100) {
            0..=9 if self.consumers.stopped_until.is_none() => {
                // Whoever reads a lie late reads it beside a cache that knows better by then.
                let asleep = !self.faults.lies && dice.percent(30);
                let name = format!("s{}", self.consumers.subscribers.len());
                self.consumers.subscribers.push((name.clone(), asleep));
                Some(Action::Subscribe(Subscribe {
                    name,
                    with_snapshot: dice.percent(50),
                    asleep,
                }))
            }
            10..=24 if !self.faults.lies => {
                let index = dice.index(self.consumers.subscribers.len());
                let subscriber = self.consumers.subscribers.get_mut(index);
                subscriber.map(|(name, asleep)| {
                    *asleep = !*asleep;
                    if *asleep {
                        Action::StopReading(name.clone())
                    } else {
                        Action::ResumeReading(name.clone())
                    }
                })
            }
            25..=34 => {
                self.consumers.marks += 1;
                Some(Action::Mark(format!("m{}", self.consumers.marks)))
            }
            35..=74 => node.pod(dice).map(|pod| {
                self.consumers.questions += 1;
                let mark = dice.between(1, self.consumers.marks.max(1));
                let is_marked = self.consumers.marks > 0 && dice.percent(40);
                Action::Ask(Ask {
                    name: format!("q{}", self.consumers.questions),
                    pod,
                    newer_than: is_marked.then(|| format!("m{mark}")),
                    phases_only: dice.percent(40),
                })
            }),
            75..=78 if self.consumers.questions > 0 => {
                let question = dice.between(1, self.consumers.questions);
                Some(Action::GiveUp(format!("q{question}")))
            }
            79..=86 => node.pod(dice).map(Action::Relist),
            87..=91 => Some(Action::RelistAll),
            92..=97 => node.pod(dice).map(Action::Reinspect),
            98..=99 if self.consumers.stopped_until.is_none() && dice.percent(50) => {
                let until = now + dice.millis(1, 20_000);
                self.consumers.stopped_until = Some(until);
                // Whoever subscribed before is told no more.
                self.consumers.subscribers.clear();
                self.do_all(until, vec![Action::StartPleg]);
                Some(Action::StopPleg)
            }
            _ => None,
        };
        self.do_all(now, action.into_iter().collect());
    }

    /// Everything is well again and nothing happens any more; then all laws must hold.
    fn rest(mut self, node: &Node, settings: Settings) -> (Vec<At<Step>>, usize) {
        let last = self.done.keys().next_back().copied().unwrap_or_default();
        let begins = last.max(self.pleg_starts) + self.dice.millis(1, 3_000);
        let mut well = vec![
            Action::StartRuntime,
            Action::ThawRuntime,
            Action::Heal,
            Action::Unmute,
            Action::StopCompeting,
        ];
        // Some sleep for ever.
        let (dice, subscribers) = (&mut self.dice, &self.consumers.subscribers);
        let sleepers = subscribers.iter().filter(|(_, asleep)| *asleep);
        for (name, _) in sleepers.filter(|_| dice.percent(75)) {
            well.push(Action::ResumeReading(name.clone()));
        }
        let mut steps: Vec<_> = std::mem::take(&mut self.done)
            .into_iter()
            .map(|(at, actions)| step(at, actions))
            .collect();
        let rest = steps.len();
        steps.push(step(begins, well));
        let seconds = Duration::from_secs;
        let is_hurried = self.dice.percent(70);
        let mut changed = node.changed_in_silence.clone();
        if is_hurried {
            changed.extend(node.addressed_late.iter().cloned());
        }
        changed.sort();
        changed.dedup();
        let reinspect = changed.into_iter().map(Action::Reinspect);
        let judged = if is_hurried {
            // Three relists, further apart than `settle`, which a step back needs.
            let first = reinspect.chain([Action::RelistAll]).collect();
            steps.push(step(begins + seconds(20), first));
            steps.push(step(begins + seconds(25), vec![Action::RelistAll]));
            steps.push(step(begins + seconds(30), vec![Action::RelistAll]));
            begins + seconds(60)
        } else {
            // The generator finds out by itself, at its slowest.
            steps.push(step(begins + seconds(20), reinspect.collect()));
            let period = settings
                .evented_relist_period
                .map_or(seconds(300), |period| period.0);
            begins + seconds(100) + period * 2 + period / 2
        };
        let mut last = step(judged, Vec::new());
        last.value.expect = Some(At::from(Expect {
            lawful: Some(At::from(true)),
            ..Expect::default()
        }));
        steps.push(last);
        expect_anything(&mut steps);
        (steps, rest)
    }
}

fn step(at: Duration, actions: Vec<Action>) -> At<Step> {
    At::from(Step {
        at: Some(Time(at)),
        after: None,
        actions: actions.into_iter().map(At::from).collect(),
        expect: None,
    })
}

/// What subscribers are told is the judge's affair: the last step takes it as it is.
pub(super) fn expect_anything(steps: &mut [At<Step>]) {
    let actions = steps.iter().flat_map(|step| &step.value.actions);
    let subscribers: BTreeMap<_, _> = actions
        .filter_map(|action| match &action.value {
            Action::Subscribe(subscribe) => Some(subscribe.name.clone()),
            _ => None,
        })
        .map(|name| (name, At::from(Delivered::Anything)))
        .collect();
    if let Some(expect) = steps.last_mut().and_then(|step| step.value.expect.as_mut()) {
        expect.value.delivered = Some(At::from(Delivered::Anything));
        expect.value.delivered_to = subscribers;
    }
}
