//! Holding what came of a step against what was expected of it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::consumers::{Asked, Consumers, Heard, MAIN};
use super::counted::counted;
use super::delivered::compare;
use super::expect::{AnswerExpect, Delivered, DeliveredItem, Expect, HealthName, Within};
use super::player::Failure;
use super::shown::{converged, pod_differs};
use super::stage::{Stage, rpc};
use super::text::pod_status;
use super::values::{At, Time};
use crate::engine::{HealthState, Mode};
use crate::simulate::RpcCounts;

/// Keeps what expectations count from, and collects what is not as it should be.
#[derive(Debug, Default)]
pub(super) struct Checker {
    /// The calls when calls were last expected.
    calls: RpcCounts,
    checks: usize,
}

/// Where and when failures are noted.
struct Finding<'a> {
    at: Duration,
    failures: &'a mut Vec<Failure>,
}

impl Finding<'_> {
    fn note<T>(
        &mut self,
        place: &At<T>,
        what: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) {
        self.failures.push(Failure {
            line: place.line,
            column: place.column,
            at: self.at,
            what: what.into(),
            expected: expected.into(),
            got: got.into(),
            diff: None,
        });
    }
}

impl Checker {
    /// How many expectations were checked.
    pub(super) fn checks(&self) -> usize {
        self.checks
    }

    /// Counts a check that was made elsewhere.
    pub(super) fn count(&mut self) {
        self.checks += 1;
    }

    /// Checks one step's expectations; gives what is not as expected.
    pub(super) async fn check(
        &mut self,
        expect: &At<Expect>,
        at: Duration,
        stage: &Stage,
        consumers: &mut Consumers,
    ) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut finding = Finding {
            at,
            failures: &mut failures,
        };
        let value = &expect.value;
        if let Some(delivered) = &value.delivered {
            self.delivered(delivered, MAIN, stage, consumers, &mut finding);
        }
        for (subscriber, delivered) in &value.delivered_to {
            self.delivered(delivered, subscriber, stage, consumers, &mut finding);
        }
        self.answers(value, stage, consumers, &mut finding);
        self.calls(value, stage, &mut finding);
        if let Some(streams) = &value.open_streams {
            self.checks += 1;
            let open = stage.runtime.open_streams()
                - stage.competing_streams().min(stage.runtime.open_streams());
            if !streams.value.holds(open as u64) {
                finding.note(
                    streams,
                    "open event streams",
                    streams.value.to_string(),
                    open.to_string(),
                );
            }
        }
        let looks_inside = !value.cache.is_empty()
            || value.converged.is_some()
            || value.mode.is_some()
            || value.audit_period.is_some()
            || value.health.is_some()
            || !value.counters.is_empty();
        if looks_inside && let Err(why) = self.inside(value, stage, consumers, &mut finding).await {
            finding.note(expect, "the generator", "it can be asked", why);
        }
        failures
    }

    /// What was delivered and never looked at: every event must have been expected.
    pub(super) fn leftovers(
        at: Duration,
        names: &super::names::Names,
        consumers: &mut Consumers,
    ) -> Vec<Failure> {
        let mut failures = Vec::new();
        for subscriber in consumers.subscribers() {
            let left = consumers.news(&subscriber).unwrap_or_default();
            if !left.is_empty() {
                let nothing = At::from(Delivered::Exactly(Vec::new()));
                let mut finding = Finding {
                    at,
                    failures: &mut failures,
                };
                exactly(&nothing, &[], &subscriber, &left, names, &mut finding);
            }
        }
        for failure in &mut failures {
            failure
                .what
                .push_str(", after the last step that looked at them");
        }
        failures
    }

    fn delivered(
        &mut self,
        expected: &At<Delivered>,
        subscriber: &str,
        stage: &Stage,
        consumers: &mut Consumers,
        finding: &mut Finding<'_>,
    ) {
        self.checks += 1;
        let news = match consumers.news(subscriber) {
            Ok(news) => news,
            Err(why) => return finding.note(expected, "delivered events", "a subscriber", why),
        };
        match &expected.value {
            Delivered::Anything => {}
            Delivered::Number(number) => {
                if !number.holds(news.len() as u64) {
                    let what = format!("number of events delivered to {subscriber}");
                    finding.note(expected, what, number.to_string(), news.len().to_string());
                }
            }
            Delivered::Exactly(items) => {
                exactly(expected, items, subscriber, &news, &stage.names, finding);
            }
        }
    }

    fn answers(
        &mut self,
        value: &Expect,
        stage: &Stage,
        consumers: &Consumers,
        finding: &mut Finding<'_>,
    ) {
        for (name, expected) in &value.answers {
            self.checks += 1;
            let what = format!("the answer to {name}");
            let asked = match consumers.asked(name) {
                Ok(asked) => asked,
                Err(why) => {
                    finding.note(expected, what, "a question", why);
                    continue;
                }
            };
            match (&expected.value, asked) {
                (AnswerExpect::Pending, Asked::Pending) => {}
                (AnswerExpect::With(pod), Asked::Answered(reading)) => {
                    let status = reading.status.as_deref();
                    if let Some((part, wanted, got)) = pod_differs(pod, status, None, &stage.names)
                    {
                        finding.note(expected, format!("{what}{part}"), wanted, got);
                    }
                }
                (AnswerExpect::Pending, Asked::Answered(reading)) => {
                    let got = match &reading.status {
                        None => "absent".to_owned(),
                        Some(status) => pod_status(status, &stage.names),
                    };
                    finding.note(expected, what, "pending", format!("answered: {got}"));
                }
                (_, Asked::Failed) => {
                    finding.note(expected, what, "an answer", "the generator has stopped");
                }
                (AnswerExpect::With(_), Asked::Pending) => {
                    finding.note(expected, what, "answered by now", "pending");
                }
            }
        }
    }

    fn calls(&mut self, value: &Expect, stage: &Stage, finding: &mut Finding<'_>) {
        if value.calls.is_empty() {
            return;
        }
        let now = stage.runtime.rpc_counts();
        let since = now.since(&self.calls);
        self.calls = now;
        for (method, expected) in &value.calls {
            self.checks += 1;
            let calls = since.of(rpc(*method));
            if !expected.value.holds(calls) {
                let what = format!("calls of {method:?} since calls were last expected");
                finding.note(
                    expected,
                    what,
                    expected.value.to_string(),
                    calls.to_string(),
                );
            }
        }
    }

    /// What only the generator itself can tell.
    async fn inside(
        &mut self,
        value: &Expect,
        stage: &Stage,
        consumers: &Consumers,
        finding: &mut Finding<'_>,
    ) -> Result<(), String> {
        let pleg = consumers.pleg()?;
        for (pod, expected) in &value.cache {
            self.checks += 1;
            let uid = stage.names.uid(pod)?;
            let cached = pleg.cache().get(&uid);
            let status = cached.as_ref().map(|cached| &*cached.status);
            if let Some((part, wanted, got)) =
                pod_differs(&expected.value, status, Some(pod), &stage.names)
            {
                finding.note(expected, format!("the cache's {pod}{part}"), wanted, got);
            }
        }
        if let Some(expected) = &value.converged {
            self.checks += 1;
            let differs = stage
                .runtime
                .world(|world| converged(world, pleg.cache(), &stage.names));
            match (expected.value, differs) {
                (true, None) | (false, Some(_)) => {}
                (true, Some((wanted, got))) => {
                    finding.note(expected, "cache and runtime", wanted, got);
                }
                (false, None) => {
                    finding.note(expected, "cache and runtime", "they differ", "they agree");
                }
            }
        }
        let mode = pleg.mode();
        if let Some(expected) = &value.mode {
            self.checks += 1;
            if mode.to_string() != expected.value.0 {
                finding.note(
                    expected,
                    "the mode",
                    expected.value.0.clone(),
                    mode.to_string(),
                );
            }
        }
        if let Some(expected) = &value.audit_period {
            self.checks += 1;
            match mode {
                Mode::Evented { audit_period } if is_within(expected.value, audit_period) => {}
                Mode::Evented { audit_period } => finding.note(
                    expected,
                    "the audit period",
                    within(expected.value),
                    Time(audit_period).to_string(),
                ),
                other => finding.note(
                    expected,
                    "the audit period",
                    within(expected.value),
                    format!("none in mode {other}"),
                ),
            }
        }
        if let Some(expected) = &value.health {
            self.checks += 1;
            let health = pleg.health().await.map_err(|error| error.to_string())?;
            let wanted = match expected.value.is {
                HealthName::Healthy => HealthState::Healthy,
                HealthName::Unhealthy => HealthState::Unhealthy,
                HealthName::NotYetRelisted => HealthState::NotYetRelisted,
            };
            let got = format!("{:?}: {health}", health.state);
            let says = expected.value.says.as_deref().unwrap_or_default();
            if health.state != wanted || !got.contains(says) {
                finding.note(
                    expected,
                    "the health",
                    format!("{wanted:?}: … {says} …"),
                    got,
                );
            }
        }
        if !value.counters.is_empty() {
            let stats = pleg.stats().await.map_err(|error| error.to_string())?;
            self.counters(value, &counted(&stats), finding);
        }
        Ok(())
    }

    fn counters(
        &mut self,
        value: &Expect,
        counts: &BTreeMap<String, u64>,
        finding: &mut Finding<'_>,
    ) {
        for (name, expected) in &value.counters {
            self.checks += 1;
            // A kind that never occurred has no entry, and its group's total does.
            let group = name.split('.').next().unwrap_or_default();
            match counts.get(name) {
                Some(count) if expected.value.holds(*count) => {}
                Some(count) => finding.note(
                    expected,
                    format!("the counter {name}"),
                    expected.value.to_string(),
                    count.to_string(),
                ),
                None if counts.contains_key(group) && group != name => {
                    if !expected.value.holds(0) {
                        let of_group: Vec<_> = counts
                            .iter()
                            .filter(|(other, _)| other.starts_with(group))
                            .map(|(other, count)| format!("{other} {count}"))
                            .collect();
                        let got = format!("0 ({})", of_group.join(", "));
                        finding.note(
                            expected,
                            format!("the counter {name}"),
                            expected.value.to_string(),
                            got,
                        );
                    }
                }
                None => {
                    let groups: Vec<_> = counts
                        .keys()
                        .filter(|key| !key.contains('.'))
                        .map(String::as_str)
                        .collect();
                    let known = format!("a counter: {}", groups.join(", "));
                    finding.note(expected, "counters", known, name.clone());
                }
            }
        }
    }
}

fn exactly(
    place: &At<Delivered>,
    expected: &[DeliveredItem],
    subscriber: &str,
    news: &[Heard],
    names: &super::names::Names,
    finding: &mut Finding<'_>,
) {
    let what = format!("events delivered to {subscriber}");
    match compare(expected, news, names) {
        Ok(None) => {}
        Ok(Some(difference)) => {
            finding.note(place, what, difference.expected, difference.got);
            if let Some(failure) = finding.failures.last_mut() {
                failure.diff = Some(difference.diff);
            }
        }
        Err(why) => finding.note(
            place,
            what,
            "an expectation that can be held against them",
            why,
        ),
    }
}

fn is_within(within: Within, time: Duration) -> bool {
    time >= within.least.0 && within.most.is_none_or(|most| time <= most.0)
}

fn within(within: Within) -> String {
    match within.most {
        Some(most) if most == within.least => most.to_string(),
        Some(most) => format!("{} to {most}", within.least),
        None => format!("at least {}", within.least),
    }
}
