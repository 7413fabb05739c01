//! What a trace says of each pod and of the node, as spans and moments: what a report draws.
//!
//! It owns no appearance. The phases are those that the cache showed (what `pleg` told its readers),
//! not those that the runtime had: where the two part is what a report is read for.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::lane::{Bar, Gravity, Lane, Mark, ModeBand, Period, Relist, RowKey, Trouble};
use super::words::{container_in_words, event_in_words, shown};
use crate::engine::{Answer, Input, Note, Output, Question, RequestId};
use crate::lifecycle::{EventSubject, LifecycleEvent, Mono, PodIdentity, PodStatus, PodUid};
use crate::scenario::names::Names;
use crate::scenario::text::sandbox_word;
use crate::scenario::trace::{Trace, TraceEntry, TracedInput};

/// The whole run.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) lanes: Vec<Lane>,
    pub(super) modes: Vec<ModeBand>,
    pub(super) relists: Vec<Relist>,
    pub(super) periods: Vec<Period>,
    /// Of all pods and of none, in order.
    pub(super) troubles: Vec<Trouble>,
    pub(super) delivered: usize,
}

impl History {
    pub(super) fn new(trace: &Trace, names: &Names, ended: Mono) -> Self {
        let mut building = Building {
            names,
            history: Self::default(),
            lanes: BTreeMap::new(),
            places: BTreeMap::new(),
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            last_asked: None,
        };
        for output in trace.entries.iter().flat_map(|entry| &entry.outputs) {
            building.meet(output);
        }
        for entry in &trace.entries {
            building.take(entry);
        }
        building.stop(ended);
        let mut history = building.history;
        history.lanes = building.lanes.into_values().collect();
        for row in history
            .lanes
            .iter_mut()
            .flat_map(|lane| lane.rows.values_mut())
        {
            row.bars.sort_by_key(|bar| (bar.attempt, bar.from));
        }
        // Those worth a look first.
        history.lanes.sort_by_cached_key(|lane| {
            let grave = lane.count(Gravity::Miss) + lane.count(Gravity::Contradiction);
            (
                Reverse(grave > 0),
                in_natural_order(&lane.name),
                lane.pod.uid.clone(),
            )
        });
        history
    }

    pub(super) fn count(&self, gravity: Gravity) -> usize {
        let of_it = |trouble: &&Trouble| trouble.gravity == gravity;
        self.troubles.iter().filter(of_it).count()
    }
}

/// So that `p-2` comes before `p-10`: each run of digits by its length and then its digits.
fn in_natural_order(name: &str) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    let mut was_digit = false;
    for letter in name.chars() {
        let is_digit = letter.is_ascii_digit();
        match parts.last_mut() {
            Some((length, part)) if was_digit == is_digit => {
                *length += usize::from(is_digit);
                part.push(letter);
            }
            _ => parts.push((usize::from(is_digit), letter.to_string())),
        }
        was_digit = is_digit;
    }
    parts
}

fn row_of(subject: &EventSubject) -> RowKey {
    match subject {
        EventSubject::Sandbox { .. } => RowKey::Sandboxes,
        EventSubject::Container { name, .. } => RowKey::Container(Arc::clone(name)),
    }
}

struct Building<'a> {
    names: &'a Names,
    history: History,
    lanes: BTreeMap<PodUid, Lane>,
    places: BTreeMap<Arc<str>, (PodUid, RowKey)>,
    /// The phases that last, by pod and by id.
    open: BTreeMap<PodUid, BTreeMap<Arc<str>, (RowKey, Bar)>>,
    asked: BTreeMap<RequestId, Mono>,
    last_asked: Option<Mono>,
}

impl Building<'_> {
    /// Learns whose each container and sandbox is, over the whole run before anything else: a miss is
    /// noted before its pod is shown.
    fn meet(&mut self, output: &Output) {
        match output {
            Output::Publish {
                uid,
                status: Some(status),
                ..
            } => {
                self.lane(&status.pod);
                for sandbox in &status.sandboxes {
                    let place = (uid.clone(), RowKey::Sandboxes);
                    self.places.insert(sandbox.id.as_str().into(), place);
                }
                for container in &status.containers {
                    let row = RowKey::Container(Arc::clone(&container.name));
                    let place = (uid.clone(), row);
                    self.places.insert(container.id.as_str().into(), place);
                }
            }
            Output::Deliver(event) => {
                self.lane(&event.pod);
                if let Some(subject) = &event.subject {
                    let place = (event.pod.uid.clone(), row_of(subject));
                    self.places.insert(subject.id().as_str().into(), place);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, entry: &TraceEntry) {
        let at = entry.now.mono;
        match &entry.input {
            TracedInput::Relisted { request, change } => {
                self.relisted(at, *request, Ok(shown(change)));
            }
            TracedInput::Input(input) => self.take_input(at, input),
        }
        for output in &entry.outputs {
            self.take_output(at, output);
        }
    }

    fn take_input(&mut self, at: Mono, input: &Input) {
        match input {
            Input::Start => {
                self.stop(at);
                self.history.modes.push(ModeBand {
                    from: at,
                    until: at,
                    mode: None,
                    cause: "started".into(),
                });
            }
            Input::Shutdown => self.stop(at),
            Input::Answered {
                request,
                answer: Answer::Listed(Err(failure)),
            } => self.relisted(at, *request, Err(failure.to_string())),
            Input::StreamGarbage { refusal, .. } => {
                self.trouble(at, Gravity::Other, format!("no message: {refusal:?}"), None);
            }
            Input::StreamOverflow { pods, dropped, .. } => {
                let words = format!("{dropped} messages of {} pods were dropped", pods.len());
                self.trouble(at, Gravity::Other, words, None);
            }
            _ => {}
        }
    }

    fn take_output(&mut self, at: Mono, output: &Output) {
        match output {
            Output::Ask {
                request,
                question: Question::FullRelist,
            } => {
                self.asked.insert(*request, at);
                if let Some(before) = self.last_asked.replace(at) {
                    self.period(before, at);
                }
            }
            Output::Publish { uid, status, .. } => self.published(at, uid, status.as_deref()),
            Output::Deliver(event) => self.delivered(at, event),
            Output::ModeChanged(change) => {
                if let Some(band) = self.history.modes.last_mut() {
                    band.mode.get_or_insert(change.from);
                    band.until = at;
                }
                self.history.modes.push(ModeBand {
                    from: at,
                    until: at,
                    mode: Some(change.to),
                    cause: Arc::clone(&change.cause),
                });
            }
            Output::Note(note) => self.noted(at, note),
            _ => {}
        }
    }

    /// Nothing lasts beyond this moment.
    fn stop(&mut self, at: Mono) {
        for (uid, open) in std::mem::take(&mut self.open) {
            for (row, bar) in open.into_values() {
                self.close(&uid, row, bar, at);
            }
        }
        let unanswered: Vec<_> = self.asked.keys().copied().collect();
        for request in unanswered {
            self.relisted(
                at,
                request,
                Ok("the run ended before the answer".to_owned()),
            );
        }
        self.last_asked = None;
        if let Some(band) = self.history.modes.last_mut()
            && band.until == band.from
        {
            band.until = at;
        }
    }

    fn relisted(&mut self, at: Mono, request: RequestId, outcome: Result<String, String>) {
        // The answer to a relist of one pod is none.
        if let Some(asked) = self.asked.remove(&request) {
            self.history.relists.push(Relist {
                asked,
                ended: at,
                outcome,
            });
        }
    }

    fn period(&mut self, from: Mono, until: Mono) {
        let each = until.since(from);
        if let Some(last) = self.history.periods.last_mut() {
            let usual = last.each();
            // A tenth more or less is the time that the relists took.
            if last.until == from && usual.abs_diff(each) <= usual / 10 {
                last.until = until;
                last.relists += 1;
                return;
            }
        }
        self.history.periods.push(Period {
            from,
            until,
            relists: 1,
        });
    }

    fn lane(&mut self, pod: &PodIdentity) -> &mut Lane {
        let names = self.names;
        self.lanes.entry(pod.uid.clone()).or_insert_with(|| {
            let short = names.of_pod(&pod.uid);
            let name = if short == pod.uid.as_str() && !pod.name.is_empty() {
                format!("{}/{}", pod.namespace, pod.name)
            } else {
                short
            };
            Lane {
                name,
                pod: pod.clone(),
                rows: BTreeMap::new(),
            }
        })
    }

    fn published(&mut self, at: Mono, uid: &PodUid, status: Option<&PodStatus>) {
        let mut before = self.open.remove(uid).unwrap_or_default();
        let mut open = BTreeMap::new();
        if let Some(status) = status {
            for (id, row, bar) in phases(at, status) {
                let continued = before.remove(&id).and_then(|(row, last)| {
                    if last.words == bar.words {
                        return Some(last);
                    }
                    self.close(uid, row, last, at);
                    None
                });
                open.insert(id, (row, continued.unwrap_or(bar)));
            }
        }
        for (row, bar) in before.into_values() {
            self.close(uid, row, bar, at);
        }
        if !open.is_empty() {
            self.open.insert(uid.clone(), open);
        }
    }

    fn close(&mut self, uid: &PodUid, row: RowKey, bar: Bar, at: Mono) {
        if let Some(lane) = self.lanes.get_mut(uid) {
            let bar = Bar { until: at, ..bar };
            lane.rows.entry(row).or_default().bars.push(bar);
        }
    }

    fn delivered(&mut self, at: Mono, event: &LifecycleEvent) {
        self.history.delivered += 1;
        let row = event.subject.as_ref().map_or(RowKey::Sandboxes, row_of);
        let mark = Mark {
            at,
            kind: event.kind,
            source: event.source,
            initial: event.initial,
            words: event_in_words(event),
        };
        let row = self.lane(&event.pod).rows.entry(row).or_default();
        row.marks.push(mark);
    }

    fn noted(&mut self, at: Mono, note: &Note) {
        let (gravity, words, id): (_, _, Option<&str>) = match note {
            Note::Missed {
                event,
                id,
                known_gap,
                ..
            } => {
                let gap = if *known_gap { ", in a known gap" } else { "" };
                let words = format!("missed: no event told {event:?}{gap}");
                (Gravity::Miss, words, Some(id))
            }
            Note::Contradicted { how, id } => {
                let words = format!("contradicted: {how:?}");
                (Gravity::Contradiction, words, Some(id))
            }
            Note::Refused(refusal) => (Gravity::Other, format!("refused: {refusal:?}"), None),
            Note::Ignored { why, id } => (Gravity::Other, format!("ignored: {why:?}"), Some(id)),
            Note::SteppedBack { id } => (Gravity::Other, "stepped back".to_owned(), Some(id)),
            Note::CallFailed { call, uid, failure } => {
                let words = format!("call failed: {call:?}: {failure}");
                let pod = uid.as_ref().and_then(|uid| self.lanes.get_mut(uid));
                if let Some(lane) = pod {
                    let trouble = Trouble {
                        at,
                        gravity: Gravity::Other,
                        words: words.clone(),
                    };
                    let row = lane.rows.entry(RowKey::Sandboxes).or_default();
                    row.troubles.push(trouble);
                }
                (Gravity::Other, words, None)
            }
            Note::RuntimeChanged { to } => {
                (Gravity::Other, format!("the runtime is now {to}"), None)
            }
            Note::StreamEnded { how, .. } => (Gravity::Other, format!("stream ended: {how}"), None),
        };
        self.trouble(at, gravity, words, id);
    }

    fn trouble(&mut self, at: Mono, gravity: Gravity, words: String, id: Option<&str>) {
        let mut whole = words;
        if let Some(id) = id {
            let name = self.names.of(id);
            whole = format!("{name} {whole}");
        }
        let trouble = Trouble {
            at,
            gravity,
            words: whole,
        };
        if let Some((uid, row)) = id.and_then(|id| self.places.get(id))
            && let Some(lane) = self.lanes.get_mut(uid)
        {
            let row = lane.rows.entry(row.clone()).or_default();
            row.troubles.push(trouble.clone());
        }
        self.history.troubles.push(trouble);
    }
}

fn phases(at: Mono, status: &PodStatus) -> Vec<(Arc<str>, RowKey, Bar)> {
    let bar = |state, is_failure, attempt, words| Bar {
        from: at,
        until: at,
        state,
        is_failure,
        words,
        attempt,
    };
    let sandboxes = status.sandboxes.iter().map(|sandbox| {
        let words = format!(
            "sandbox#{} {}",
            sandbox.attempt,
            sandbox_word(sandbox.state)
        );
        let bar = bar(sandbox.state, false, sandbox.attempt, words);
        (sandbox.id.as_str().into(), RowKey::Sandboxes, bar)
    });
    let containers = status.containers.iter().map(|container| {
        let is_failure = container.exit_code.is_some_and(|code| code != 0);
        let words = container_in_words(container);
        let bar = bar(container.state, is_failure, container.attempt, words);
        let row = RowKey::Container(Arc::clone(&container.name));
        (container.id.as_str().into(), row, bar)
    });
    sandboxes.chain(containers).collect()
}
