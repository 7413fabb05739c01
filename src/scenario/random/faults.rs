//! What goes wrong in a random story: troubles of the stream, the answers and the process, each with
//! its end. Most stories are honest; in some the runtime also says what is not so.

use std::collections::BTreeMap;
use std::time::Duration;

use super::dice::Dice;
use super::generate::preset;
use super::node::Node;
use crate::engine::KEEP;
use crate::scenario::action::{
    Action, AnswerFrom, Calls, Character, Code, CutList, Delayed, Duplicated, Emit, Failing,
    MessageType, Messages, Method, SandboxShown, ShownState, Slow,
};
use crate::scenario::values::{ClockStep, SubjectName, Time};

/// What begins, and what ends it after how long.
pub(super) struct Trouble {
    pub(super) begins: Vec<Action>,
    pub(super) ends: Option<(Duration, Action)>,
}

/// Which troubles a story may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    /// In so many of a hundred stories the runtime also lies.
    pub(super) lies: bool,
    streams_lists: bool,
    /// How grave and long the troubles are.
    is_harsh: bool,
    is_remembered: bool,
    /// By when answers must be honest again, and stay so: set by the first that lie.
    honest_by: Option<Duration>,
}

/// Answers lie within one such stretch of a story. The design promises no more: it forgets what lists
/// proved gone once a full relist that began a tombstone's minute later lacks it too, and if that one
/// lies as well, what comes back is news. Stretches apart would come to the same unless what was denied
/// had stepped back in between, and other troubles may keep it from that.
const ANSWERS_LIE_FOR: Duration = KEEP;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Lose,
    Delay,
    Duplicate,
    Reorder,
    Mute,
    End,
    Break,
    Bytes,
    Sever,
    Compete,
    Restart,
    Stop,
    Freeze,
    Upgrade,
    Clock,
    Fail,
    Hang,
    Slow,
    Cut,
    Lie,
}

impl Faults {
    pub(super) fn new(dice: &mut Dice, runtime: &Character) -> Self {
        Self {
            lies: dice.percent(15),
            streams_lists: runtime.streaming_lists.is_some(),
            is_harsh: dice.percent(40),
            is_remembered: false,
            honest_by: None,
        }
    }

    /// Something goes wrong, at this time of the story.
    #[expect(clippy::too_many_lines, reason = "a table: each kind of trouble once")]
    pub(super) fn strike(
        &mut self,
        dice: &mut Dice,
        node: &Node,
        now: Duration,
    ) -> Option<Trouble> {
        let kind = dice.weighted(&[
            (16, Kind::Lose),
            (12, Kind::Delay),
            (6, Kind::Duplicate),
            (6, Kind::Reorder),
            (5, Kind::Mute),
            (3, Kind::End),
            (4, Kind::Break),
            (2, Kind::Bytes),
            (3, Kind::Sever),
            (4, Kind::Compete),
            (5, Kind::Restart),
            (5, Kind::Stop),
            (5, Kind::Freeze),
            (2, Kind::Upgrade),
            (4, Kind::Clock),
            (9, Kind::Fail),
            (5, Kind::Hang),
            (9, Kind::Slow),
            (if self.streams_lists { 5 } else { 0 }, Kind::Cut),
            (if self.lies { 40 } else { 0 }, Kind::Lie),
        ])?;
        let longest = if self.is_harsh { 90_000 } else { 8_000 };
        let lasting = dice.millis(1, longest);
        let once = |action| {
            Some(Trouble {
                begins: vec![action],
                ends: None,
            })
        };
        let until = |begin, end| {
            Some(Trouble {
                begins: vec![begin],
                ends: Some((lasting, end)),
            })
        };
        match kind {
            Kind::Lose => once(Action::Lose(messages(dice, node))),
            Kind::Delay => once(Action::Delay(Delayed {
                messages: messages(dice, node),
                by: Time(dice.millis(1, longest)),
            })),
            Kind::Duplicate => once(Action::Duplicate(Duplicated {
                messages: messages(dice, node),
                times: u32::try_from(dice.between(1, 3)).unwrap_or(1),
            })),
            Kind::Reorder => once(Action::Reorder(messages(dice, node))),
            Kind::Mute => until(Action::Mute, Action::Unmute),
            Kind::End => once(Action::EndStream),
            Kind::Break => once(Action::BreakStream(stream_code(dice))),
            Kind::Bytes => once(Action::EmitBytes("0affffff".to_owned())),
            Kind::Sever => once(Action::CutConnections),
            Kind::Compete => until(Action::Compete, Action::StopCompeting),
            Kind::Restart => once(Action::RestartRuntime),
            Kind::Stop => until(Action::StopRuntime, Action::StartRuntime),
            Kind::Freeze => until(Action::FreezeRuntime, Action::ThawRuntime),
            Kind::Upgrade => once(Action::Upgrade(Character {
                is: preset(dice),
                ..Character::default()
            })),
            Kind::Clock => {
                let by = i64::try_from(dice.between(1, 900)).unwrap_or(1) * 1_000_000_000;
                let nanos = if dice.percent(60) { -by } else { by };
                once(Action::StepClock(ClockStep { nanos }))
            }
            Kind::Fail => {
                let calls = calls(dice, node);
                until(
                    Action::Fail(Failing {
                        call: calls.call,
                        of: calls.of,
                        times: calls.times,
                        code: code(dice),
                        after: Time(if dice.percent(30) {
                            dice.millis(1, 3_000)
                        } else {
                            Duration::ZERO
                        }),
                    }),
                    Action::Heal,
                )
            }
            Kind::Hang => until(Action::Hang(calls(dice, node)), Action::Heal),
            Kind::Slow => {
                let calls = calls(dice, node);
                until(
                    Action::Slow(Slow {
                        call: calls.call,
                        of: calls.of,
                        times: calls.times,
                        by: Time(dice.millis(1, 6_000)),
                        read_late: dice.percent(40),
                    }),
                    Action::Heal,
                )
            }
            Kind::Cut => until(
                Action::Cut(CutList {
                    call: if dice.percent(50) {
                        Method::StreamPodSandboxes
                    } else {
                        Method::StreamContainers
                    },
                    after: dice.index(10),
                    times: times(dice),
                }),
                Action::Heal,
            ),
            Kind::Lie => self.lie(dice, node, now, lasting),
        }
    }

    /// For how long answers may lie from now on, if they may at all.
    fn lies_for(&mut self, now: Duration, lasting: Duration) -> Option<Duration> {
        let honest_by = *self.honest_by.get_or_insert(now + ANSWERS_LIE_FOR);
        let left = honest_by.checked_sub(now).filter(|left| !left.is_zero())?;
        Some(lasting.min(left))
    }

    fn lie(
        &mut self,
        dice: &mut Dice,
        node: &Node,
        now: Duration,
        lasting: Duration,
    ) -> Option<Trouble> {
        let subject = node.subject(dice)?;
        let (begin, end) = match dice.below(10) {
            0..=5 => (Action::Emit(emit(dice, node, subject)), None),
            6..=7 => (
                Action::Deny(subject),
                Some((self.lies_for(now, lasting)?, Action::Heal)),
            ),
            _ if self.is_remembered => {
                let from = AnswerFrom {
                    remembered: "past".to_owned(),
                    calls: calls(dice, node),
                };
                let lasting = self.lies_for(now, lasting)?;
                (Action::AnswerFrom(from), Some((lasting, Action::Heal)))
            }
            _ => {
                self.is_remembered = true;
                (Action::Remember("past".to_owned()), None)
            }
        };
        Some(Trouble {
            begins: vec![begin],
            ends: end,
        })
    }
}

fn messages(dice: &mut Dice, node: &Node) -> Messages {
    let few = u32::try_from(dice.between(1, 6)).unwrap_or(1);
    let mut messages = Messages::default();
    if dice.percent(75) {
        messages.next = Some(few);
    } else {
        messages.one_in = Some(few);
    }
    match dice.below(10) {
        0..=1 => messages.about = node.subject(dice),
        2..=3 => messages.pod = node.pod(dice),
        _ => {}
    }
    if dice.percent(35) {
        messages.kind = dice.pick(&[
            MessageType::Created,
            MessageType::Started,
            MessageType::Stopped,
            MessageType::Deleted,
        ]);
    }
    messages
}

fn times(dice: &mut Dice) -> Option<u32> {
    let few = u32::try_from(dice.between(1, 6)).ok();
    few.filter(|_| dice.percent(70))
}

fn calls(dice: &mut Dice, node: &Node) -> Calls {
    let call = dice.pick(&[
        None,
        Some(Method::Version),
        Some(Method::ListPodSandbox),
        Some(Method::StreamPodSandboxes),
        Some(Method::PodSandboxStatus),
        Some(Method::ListContainers),
        Some(Method::StreamContainers),
        Some(Method::ContainerStatus),
        Some(Method::GetContainerEvents),
    ]);
    Calls {
        call: call.flatten(),
        of: if dice.percent(15) {
            node.subject(dice)
        } else {
            None
        },
        times: times(dice),
    }
}

/// Never `NotFound`, which would be a lie, nor `Unimplemented`, which a runtime says for good.
fn code(dice: &mut Dice) -> Code {
    dice.pick(&[
        Code::Unavailable,
        Code::Unknown,
        Code::DeadlineExceeded,
        Code::Internal,
        Code::ResourceExhausted,
        Code::PermissionDenied,
        Code::Cancelled,
        Code::FailedPrecondition,
    ])
    .unwrap_or_default()
}

fn stream_code(dice: &mut Dice) -> Code {
    if dice.percent(10) {
        Code::Unimplemented
    } else {
        code(dice)
    }
}

/// A message that no honest runtime would send now.
fn emit(dice: &mut Dice, node: &Node, subject: SubjectName) -> Emit {
    let kind = dice.pick(&[
        MessageType::Created,
        MessageType::Started,
        MessageType::Stopped,
        MessageType::Deleted,
    ]);
    let is_new_type = dice.percent(5);
    let mut emit = Emit {
        kind: kind.filter(|_| !is_new_type),
        type_number: is_new_type.then_some(9),
        about: Some(subject.clone()),
        id: dice.percent(5).then(|| "0123456789abcdef".to_owned()),
        stamp: None,
        raw_stamp: dice.percent(10).then_some(-1),
        sandbox: None,
        containers: None,
        uid: None,
    };
    if dice.percent(10) {
        emit.sandbox = Some(SandboxShown::Missing);
    } else if let SubjectName::Container(name) = subject
        && node.is_shown(&name)
        && dice.percent(40)
    {
        let shown = dice
            .pick(&[
                ShownState::Created,
                ShownState::Running,
                ShownState::Exited(7),
                ShownState::Unknown,
                ShownState::Twice,
            ])
            .unwrap_or(ShownState::AsItIs);
        emit.containers = Some(BTreeMap::from([(name, shown)]));
    }
    emit
}
