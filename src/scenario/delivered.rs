//! Comparing what was delivered with what should have been: exactly, in order for each pod.

use std::collections::{BTreeMap, BTreeSet};

use super::consumers::Heard;
use super::expect::{DeliveredItem, EventLine};
use super::names::{Names, kind_in_words};
use super::values::Time;
use crate::lifecycle::{EventSubject, LifecycleEvent, LifecycleKind, PodUid};

/// The most histories that the `either` forms of one expectation may make together.
const MOST_HISTORIES: usize = 1_000;

/// An expected event whose subject was found.
#[derive(Clone, Debug)]
struct Wanted<'a> {
    line: &'a EventLine,
    uid: PodUid,
    /// The subject's id; the pod's uid for `PodSync`.
    id: String,
}

/// How what was delivered differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) expected: String,
    pub(super) got: String,
    /// The two, line by line: `-` was expected and did not come, `+` came and was not expected.
    pub(super) diff: String,
}

/// Compares; `Ok(None)`: as expected.
pub(super) fn compare(
    expected: &[DeliveredItem],
    got: &[Heard],
    names: &Names,
) -> Result<Option<Difference>, String> {
    let mut nearest: Option<(usize, Difference)> = None;
    for history in histories(expected, got, names)? {
        let wanted: Vec<_> = history
            .into_iter()
            .map(|line| resolve(line, names))
            .collect::<Result<_, _>>()?;
        let (differing, difference) = differences(&wanted, got, names);
        if differing == 0 {
            return Ok(None);
        }
        if nearest.as_ref().is_none_or(|(least, _)| differing < *least) {
            nearest = Some((differing, difference));
        }
    }
    Ok(nearest.map(|(_, difference)| difference))
}

/// Every history that the expectation allows.
fn histories<'a>(
    expected: &'a [DeliveredItem],
    got: &[Heard],
    names: &Names,
) -> Result<Vec<Vec<&'a EventLine>>, String> {
    let mut all: Vec<Vec<&EventLine>> = vec![Vec::new()];
    for item in expected {
        match item {
            DeliveredItem::Event(line) => {
                for history in &mut all {
                    history.push(line);
                }
            }
            DeliveredItem::AnyOrder(lines) => {
                let lines = as_told(lines, got, names)?;
                for history in &mut all {
                    history.extend(&lines);
                }
            }
            DeliveredItem::Either(ways) => {
                let longer = all.iter().flat_map(|history| {
                    ways.iter()
                        .map(|way| history.iter().copied().chain(way).collect())
                });
                all = longer.collect();
            }
        }
        if all.len() > MOST_HISTORIES {
            return Err(format!(
                "the either forms allow more than {MOST_HISTORIES} histories: expect them in separate steps"
            ));
        }
    }
    Ok(all)
}

/// The lines in the order in which they were told, those that were not told last.
fn as_told<'a>(
    lines: &'a [EventLine],
    got: &[Heard],
    names: &Names,
) -> Result<Vec<&'a EventLine>, String> {
    let mut taken = BTreeSet::new();
    let mut placed = Vec::new();
    for line in lines {
        let wanted = resolve(line, names)?;
        let place = got
            .iter()
            .enumerate()
            .position(|(at, heard)| !taken.contains(&at) && wanted.is(&heard.event));
        taken.extend(place);
        placed.push((place.unwrap_or(usize::MAX), line));
    }
    placed.sort_by_key(|(place, _)| *place);
    Ok(placed.into_iter().map(|(_, line)| line).collect())
}

fn resolve<'a>(line: &'a EventLine, names: &Names) -> Result<Wanted<'a>, String> {
    let uid = names.uid(line.subject.pod())?;
    let id = if line.kind == "PodSync" {
        uid.as_str().to_owned()
    } else {
        names.subject(&line.subject)?.as_str().to_owned()
    };
    Ok(Wanted { line, uid, id })
}

impl Wanted<'_> {
    fn is(&self, event: &LifecycleEvent) -> bool {
        let exit = event.exit.as_ref();
        let line = self.line;
        line.kind == kind_in_words(event.kind)
            && self.id == id_of(event)
            && line
                .code
                .is_none_or(|code| exit.is_some_and(|exit| exit.exit_code == code))
            && line
                .reason
                .as_ref()
                .is_none_or(|reason| exit.is_some_and(|exit| *exit.reason == **reason))
            && line
                .source
                .as_ref()
                .is_none_or(|source| event.source.to_string() == *source)
    }
}

fn id_of(event: &LifecycleEvent) -> String {
    match (&event.subject, event.kind) {
        (_, LifecycleKind::PodSync) | (None, _) => event.pod.uid.as_str().to_owned(),
        (Some(subject), _) => EventSubject::id(subject).as_str().to_owned(),
    }
}

/// How many lines differ, over all pods, and which.
fn differences(wanted: &[Wanted<'_>], got: &[Heard], names: &Names) -> (usize, Difference) {
    let mut by_pod: BTreeMap<&PodUid, (Vec<&Wanted<'_>>, Vec<&Heard>)> = BTreeMap::new();
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for wanted in wanted {
        by_pod.entry(&wanted.uid).or_default().0.push(wanted);
        if seen.insert(&wanted.uid) {
            order.push(&wanted.uid);
        }
    }
    for heard in got {
        let uid = &heard.event.pod.uid;
        by_pod.entry(uid).or_default().1.push(heard);
        if seen.insert(uid) {
            order.push(uid);
        }
    }
    let mut differing = 0;
    let (mut expected_lines, mut got_lines, mut diff) = (Vec::new(), Vec::new(), Vec::new());
    for uid in order {
        let Some((wanted, heard)) = by_pod.get(uid) else {
            continue;
        };
        let aligned = align(wanted, heard);
        let wrong = aligned.iter().filter(|line| !line.is_same()).count();
        differing += wrong;
        if wrong == 0 {
            continue;
        }
        expected_lines.extend(wanted.iter().map(|wanted| wanted.line.to_string()));
        got_lines.extend(heard.iter().map(|heard| names.event(&heard.event)));
        for line in aligned {
            diff.push(match line {
                Aligned::Same(heard) => format!("    {}", told(heard, names)),
                Aligned::Missing(wanted) => format!("  - {}", wanted.line),
                Aligned::Extra(heard) => format!("  + {}", told(heard, names)),
            });
        }
    }
    let or_nothing = |lines: Vec<String>| {
        if lines.is_empty() {
            "nothing".to_owned()
        } else {
            lines.join("; ")
        }
    };
    let difference = Difference {
        expected: or_nothing(expected_lines),
        got: or_nothing(got_lines),
        diff: diff.join("\n"),
    };
    (differing, difference)
}

fn told(heard: &Heard, names: &Names) -> String {
    let at = Time(std::time::Duration::from_nanos(heard.at.0));
    format!("{} ({at})", names.event(&heard.event))
}

enum Aligned<'a> {
    Same(&'a Heard),
    Missing(&'a Wanted<'a>),
    Extra(&'a Heard),
}

impl Aligned<'_> {
    fn is_same(&self) -> bool {
        matches!(self, Self::Same(_))
    }
}

/// Lines the two up so that as much as possible is the same.
fn align<'a>(wanted: &[&'a Wanted<'a>], heard: &[&'a Heard]) -> Vec<Aligned<'a>> {
    let width = heard.len() + 1;
    // common[i * width + j]: the longest common part of wanted[i..] and heard[j..].
    let mut common = vec![0_usize; (wanted.len() + 1) * width];
    let at = |common: &[usize], i: usize, j: usize| common.get(i * width + j).copied().unwrap_or(0);
    for (i, want) in wanted.iter().enumerate().rev() {
        for (j, have) in heard.iter().enumerate().rev() {
            let longest = if want.is(&have.event) {
                at(&common, i + 1, j + 1) + 1
            } else {
                at(&common, i + 1, j).max(at(&common, i, j + 1))
            };
            if let Some(cell) = common.get_mut(i * width + j) {
                *cell = longest;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut aligned = Vec::new();
    loop {
        match (wanted.get(i), heard.get(j)) {
            (None, None) => return aligned,
            (Some(want), Some(have)) if want.is(&have.event) => {
                aligned.push(Aligned::Same(have));
                (i, j) = (i + 1, j + 1);
            }
            (Some(want), have)
                if have.is_none() || at(&common, i + 1, j) >= at(&common, i, j + 1) =>
            {
                aligned.push(Aligned::Missing(want));
                i += 1;
            }
            (_, Some(have)) => {
                aligned.push(Aligned::Extra(have));
                j += 1;
            }
            // Covered by the arm above that takes `have.is_none()`.
            (Some(want), None) => {
                aligned.push(Aligned::Missing(want));
                i += 1;
            }
        }
    }
}
