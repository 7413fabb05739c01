//! What was delivered, in a form that two runs can be compared in.
//!
//! Two runs tell the same if each pod has the same events in the same order: subject, type and exit
//! code. Stamps, revisions and sources may differ; which pod's event comes first may too, because
//! nothing orders those.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};

use serde_json::Value;

use crate::lifecycle::{LifecycleEvent, LifecycleKind, PodUid, SubjectId};

/// Delivered events, pod by pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    pods: BTreeMap<PodUid, Vec<Line>>,
}

/// What is compared of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    subject: Option<SubjectId>,
    kind: LifecycleKind,
    exit_code: Option<i32>,
}

/// Why it cannot be told what was delivered.
#[derive(Debug, thiserror::Error)]
#[error("line {line}")]
#[non_exhaustive]
pub struct DeliveriesError {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    #[source]
    pub problem: io::Error,
}

impl Deliveries {
    /// Adds an event.
    pub fn push(&mut self, event: &LifecycleEvent) {
        let line = Line {
            subject: event
                .subject
                .as_ref()
                .map(crate::lifecycle::EventSubject::id),
            kind: event.kind,
            exit_code: event.exit.as_ref().map(|exit| exit.exit_code),
        };
        let pod = self.pods.entry(event.pod.uid.clone()).or_default();
        pod.push(line);
    }

    /// Reads what was delivered from what `pleg watch -o json` printed, one event a line, or from a
    /// trace, one input and its outputs a line.
    ///
    /// # Errors
    ///
    /// If a line cannot be read, or is none of these.
    pub fn read(input: impl BufRead) -> Result<Self, DeliveriesError> {
        let mut deliveries = Self::default();
        for (index, text) in input.lines().enumerate() {
            let at = |problem| DeliveriesError {
                line: index as u64 + 1,
                problem,
            };
            let text = text.map_err(at)?;
            if text.trim().is_empty() {
                continue;
            }
            let mut value: Value = serde_json::from_str(&text).map_err(|error| at(error.into()))?;
            if value.get("type").is_some_and(|kind| kind == "ModeChanged") {
                continue;
            }
            if let Some(outputs) = value.get_mut("outputs").and_then(Value::as_array_mut) {
                for output in outputs {
                    let Some(event) = output.get_mut("deliver").map(Value::take) else {
                        continue;
                    };
                    let event = serde_json::from_value(event).map_err(|error| at(error.into()))?;
                    deliveries.push(&event);
                }
                continue;
            }
            let event: LifecycleEvent =
                serde_json::from_value(value).map_err(|error| at(error.into()))?;
            deliveries.push(&event);
        }
        Ok(deliveries)
    }

    /// Events in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pods.values().map(Vec::len).sum()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Where `self`, which is expected, and `other` tell different things: the first place of each pod.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let uids = self.pods.keys().chain(other.pods.keys());
        let uids: std::collections::BTreeSet<&PodUid> = uids.collect();
        let none = Vec::new();
        uids.into_iter()
            .filter_map(|uid| {
                let expected = self.pods.get(uid).unwrap_or(&none);
                let got = other.pods.get(uid).unwrap_or(&none);
                let same = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
                let shown = |lines: &[Line]| lines.get(same).map(ToString::to_string);
                let (expected, got) = (shown(expected), shown(got));
                (expected.is_some() || got.is_some()).then(|| Difference {
                    pod: uid.clone(),
                    index: same,
                    expected,
                    got,
                })
            })
            .collect()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(subject) = &self.subject {
            write!(f, " {subject}")?;
        }
        if let Some(code) = self.exit_code {
            write!(f, " exit {code}")?;
        }
        Ok(())
    }
}

/// The first event of a pod that two runs tell differently.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The pod.
    pub pod: PodUid,
    /// Which of its events, from 0.
    pub index: usize,
    /// What was expected; `None` if nothing more.
    pub expected: Option<String>,
    /// What came; `None` if nothing more.
    pub got: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nothing = "nothing more";
        write!(
            f,
            "pod {}, event {}: expected {}, got {}",
            self.pod,
            self.index + 1,
            self.expected.as_deref().unwrap_or(nothing),
            self.got.as_deref().unwrap_or(nothing)
        )
    }
}
