//! What the shell measures, because only it sees both a question and its answer: how long calls take
//! and how far apart relists begin, how old events are, and the changes of mode.
//!
//! It looks at what passes and changes nothing. Histograms have fixed bounds, so none of it grows.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::{
    Answer, Call, Input, Mode, ModeChange, Output, PollingReason, Question, RequestId,
};
use crate::lifecycle::{Mono, Now};

/// The upper bounds of the buckets: the kubelet's (Prometheus' defaults, 5 ms to 10 s), and beyond
/// them up to the kubelet's longest relist period and threshold.
pub const BOUNDS: [Duration; 16] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(300),
    Duration::from_secs(600),
];

/// How often durations fell into each bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Durations {
    /// How many were at most the bound of the same place in [`BOUNDS`] and above the one before it.
    pub within: [u64; BOUNDS.len()],
    /// How many were above the last bound.
    pub beyond: u64,
    /// All of them together.
    pub sum: Duration,
}

impl Durations {
    fn observe(&mut self, duration: Duration) {
        let place = BOUNDS.partition_point(|bound| *bound < duration);
        *self.within.get_mut(place).unwrap_or(&mut self.beyond) += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.within.iter().sum::<u64>() + self.beyond
    }
}

/// A change of mode as it is counted: the names of the modes, and why the node polls, or polled if it
/// no longer does.
pub type ModeStep = (&'static str, &'static str, Option<PollingReason>);

/// Calls of one kind that have no answer yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InFlight {
    /// How many.
    pub count: usize,
    /// How long the oldest has been out.
    pub oldest: Duration,
}

/// What was measured so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measures {
    /// How long each kind of call took, failed ones included.
    pub calls: BTreeMap<Call, Durations>,
    /// The time from the beginning of the last full relist that succeeded to that of the next one.
    pub relist_intervals: Durations,
    /// How old stream messages were when they were taken, by the runtime's stamp and the wall clock.
    pub event_ages: Durations,
    /// Changes of mode.
    pub mode_steps: BTreeMap<ModeStep, u64>,
    /// The last change of mode.
    pub last_mode_change: Option<ModeChange>,
    /// What is out.
    pub in_flight: BTreeMap<Call, InFlight>,
}

/// The measuring instrument beside the driver.
#[derive(Debug, Default)]
pub(super) struct Meter {
    measures: Measures,
    out: BTreeMap<RequestId, (Call, Mono)>,
    last_relisted: Option<Mono>,
}

impl Meter {
    /// Looks at what the engine is about to take.
    pub(super) fn look_in(&mut self, now: Now, input: &Input) {
        match input {
            Input::Answered { request, answer } => {
                let Some((call, begun)) = self.out.remove(request) else {
                    return;
                };
                let took = now.mono.since(begun);
                self.measures.calls.entry(call).or_default().observe(took);
                if call == Call::FullRelist && matches!(answer, Answer::Listed(Ok(_))) {
                    self.last_relisted = Some(begun);
                }
            }
            // As in the kubelet, a message without a status is not counted.
            Input::StreamMessage { event, .. } if event.stamp > 0 && event.sandbox.is_some() => {
                let age = now.wall.0.saturating_sub(event.stamp);
                // A stamp ahead of our clock is the clock's fault: no age.
                let age = Duration::from_nanos(u64::try_from(age).unwrap_or(0));
                self.measures.event_ages.observe(age);
            }
            _ => {}
        }
    }

    /// Looks at what the engine wants done.
    pub(super) fn look_out(&mut self, now: Now, output: &Output) {
        match output {
            Output::Ask { request, question } => {
                let call = call_of(question);
                self.out.insert(*request, (call, now.mono));
                if call == Call::FullRelist
                    && let Some(last) = self.last_relisted
                {
                    let interval = now.mono.since(last);
                    self.measures.relist_intervals.observe(interval);
                }
            }
            Output::ModeChanged(change) => {
                let steps = &mut self.measures.mode_steps;
                *steps.entry(step(change)).or_default() += 1;
                self.measures.last_mode_change = Some(change.clone());
            }
            _ => {}
        }
    }

    /// What was measured so far.
    pub(super) fn read(&self, now: Now) -> Measures {
        let mut measures = self.measures.clone();
        for (call, begun) in self.out.values() {
            let in_flight = measures.in_flight.entry(*call).or_default();
            in_flight.count += 1;
            in_flight.oldest = in_flight.oldest.max(now.mono.since(*begun));
        }
        measures
    }
}

fn call_of(question: &Question) -> Call {
    match question {
        Question::Version => Call::Version,
        Question::FullRelist => Call::FullRelist,
        Question::PodRelist { .. } => Call::PodRelist,
        Question::Inspect { .. } => Call::Inspect,
    }
}

fn step(change: &ModeChange) -> ModeStep {
    let reason = polling_reason(change.to).or_else(|| polling_reason(change.from));
    (change.from.name(), change.to.name(), reason)
}

fn polling_reason(mode: Mode) -> Option<PollingReason> {
    match mode {
        Mode::Polling { reason } => Some(reason),
        Mode::Connecting | Mode::Evented { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Failure, RuntimeVersion, SessionId};
    use crate::lifecycle::{EventKind, NodeList, RuntimeEvent, SandboxStatus, UnixNanos};

    fn second(n: u64) -> Now {
        Now {
            mono: Mono(n * 1_000_000_000),
            wall: UnixNanos(1_000_000_000_000 + i64::try_from(n).unwrap() * 1_000_000_000),
        }
    }

    fn ask(meter: &mut Meter, at: u64, request: u64, question: Question) {
        let request = RequestId(request);
        meter.look_out(second(at), &Output::Ask { request, question });
    }

    fn relisted(meter: &mut Meter, at: u64, request: u64, worked: bool) {
        let answer = Answer::Listed(if worked {
            Ok(NodeList::default())
        } else {
            Err(Failure::for_tests())
        });
        let request = RequestId(request);
        meter.look_in(second(at), &Input::Answered { request, answer });
    }

    #[test]
    fn an_interval_runs_from_the_last_relist_that_worked_and_failed_ones_take_time_too() {
        let mut meter = Meter::default();
        ask(&mut meter, 0, 1, Question::FullRelist);
        relisted(&mut meter, 2, 1, true);
        ask(&mut meter, 10, 2, Question::FullRelist);
        relisted(&mut meter, 11, 2, false);
        ask(&mut meter, 20, 3, Question::FullRelist);
        let measures = meter.read(second(26));
        assert_eq!(measures.relist_intervals.count(), 2);
        assert_eq!(measures.relist_intervals.sum, Duration::from_secs(10 + 20));
        assert_eq!(measures.calls[&Call::FullRelist].count(), 2);
        assert_eq!(
            measures.calls[&Call::FullRelist].sum,
            Duration::from_secs(3)
        );
        let out = InFlight {
            count: 1,
            oldest: Duration::from_secs(6),
        };
        assert_eq!(measures.in_flight, [(Call::FullRelist, out)].into());
    }

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_is_not_below_it() {
        let mut durations = Durations::default();
        for duration in [
            Duration::ZERO,
            BOUNDS[0],
            BOUNDS[0] + Duration::from_nanos(1),
            BOUNDS[BOUNDS.len() - 1],
            Duration::MAX,
            Duration::MAX,
        ] {
            durations.observe(duration);
        }
        assert_eq!(durations.within[0], 2);
        assert_eq!(durations.within[1], 1);
        assert_eq!(durations.within[BOUNDS.len() - 1], 1);
        assert_eq!(durations.beyond, 2);
        assert_eq!((durations.count(), durations.sum), (6, Duration::MAX));
    }

    fn message(stamp: i64, sandbox: bool) -> Input {
        let status = SandboxStatus {
            id: "s".into(),
            pod: crate::lifecycle::PodIdentity {
                uid: "u".into(),
                namespace: "ns".into(),
                name: "n".into(),
            },
            attempt: 0,
            state: crate::lifecycle::ReportedState::Running,
            created_at: None,
            ips: Vec::new(),
            host_network: false,
            labelled: true,
        };
        Input::StreamMessage {
            session: SessionId(1),
            event: RuntimeEvent {
                id: "s".into(),
                kind: EventKind::Started,
                stamp,
                sandbox: sandbox.then_some(status),
                containers: Vec::new(),
                refused: Vec::new(),
            },
        }
    }

    #[test]
    fn an_event_is_as_old_as_its_stamp_says_and_never_younger_than_now() {
        let mut meter = Meter::default();
        let now = second(100);
        meter.look_in(now, &message(second(97).wall.0, true));
        meter.look_in(now, &message(second(200).wall.0, true));
        meter.look_in(now, &message(i64::MAX, true));
        // No stamp, no status: no age.
        meter.look_in(now, &message(0, true));
        meter.look_in(now, &message(i64::MIN, true));
        meter.look_in(now, &message(second(97).wall.0, false));
        let ages = meter.read(now).event_ages;
        assert_eq!((ages.count(), ages.sum), (3, Duration::from_secs(3)));
    }

    #[test]
    fn a_change_of_mode_is_counted_with_why_the_node_polls_or_polled() {
        let mut meter = Meter::default();
        let polling = Mode::Polling {
            reason: PollingReason::StreamBroken,
        };
        let evented = Mode::Evented {
            audit_period: Duration::from_secs(1),
        };
        for (from, to) in [
            (Mode::Connecting, evented),
            (evented, polling),
            (polling, evented),
        ] {
            let change = ModeChange {
                from,
                to,
                cause: "".into(),
                at: UnixNanos(0),
            };
            meter.look_out(second(0), &Output::ModeChanged(change));
        }
        let broken = Some(PollingReason::StreamBroken);
        let steps = meter.read(second(0)).mode_steps;
        let expected = [
            (("Connecting", "Evented", None), 1),
            (("Evented", "Polling", broken), 1),
            (("Polling", "Evented", broken), 1),
        ];
        assert_eq!(steps, expected.into());
    }

    #[test]
    fn an_answer_that_nobody_asked_for_is_no_duration() {
        let mut meter = Meter::default();
        let answer = Answer::Version(Ok(RuntimeVersion {
            name: "".into(),
            version: "".into(),
            api_version: "".into(),
        }));
        let request = RequestId(9);
        meter.look_in(second(1), &Input::Answered { request, answer });
        assert_eq!(meter.read(second(1)), Measures::default());
    }
}
