//! How much the event stream is believed: audits, misses, the ramp of the audit period, known gaps.
//!
//! Owns the relist period while events drive. It never sees a record: it is told what was missed,
//! delivered and agreed with.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::counters::SubjectEvent;
use super::settings::{
    AUDITS_WATCHED, CLEAN_TO_RETURN, GRACE, MISSES_OF_A_GAP, MISSES_TOLERATED, Settings, UNPROVEN,
};
use crate::law::Law;
use crate::lifecycle::{EventKind, Mono, SeqPoint};

/// A full relist seen as an audit of the stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Audit {
    pub(super) begun: SeqPoint,
    /// When its grace is over.
    pub(super) closes: Mono,
    pub(super) closed: bool,
    pub(super) misses: u64,
}

/// What the stream has done for one kind of event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct KindRecord {
    pub(super) delivered: u64,
    pub(super) missed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Trust {
    pub(super) period: Duration,
    pub(super) audits: VecDeque<Audit>,
    /// Only audits begun after this count: a miss, or a new stream, begins the ramp anew.
    pub(super) ramp_from: SeqPoint,
    /// Whether a full relist begun after the stream was asked for has been applied: from then on a
    /// change that a read finds first has certainly happened in the stream's time.
    pub(super) baseline: bool,
    /// Whether this stream has delivered an event that a later read agreed with.
    pub(super) proven: bool,
    pub(super) distrusted: bool,
    pub(super) clean: u8,
    pub(super) told_since_clean: bool,
    pub(super) kinds: BTreeMap<SubjectEvent, KindRecord>,
}

impl Trust {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            period: settings.fast_period,
            audits: VecDeque::new(),
            ramp_from: SeqPoint::default(),
            baseline: false,
            proven: false,
            distrusted: false,
            clean: 0,
            told_since_clean: false,
            kinds: BTreeMap::new(),
        }
    }

    /// A new stream was asked for: it has earned nothing yet. What the runtime is known never to
    /// send stays known.
    pub(super) fn begin_stream(&mut self, asked: SeqPoint, settings: &Settings) {
        self.restart_ramp(asked, settings);
        self.audits.clear();
        self.baseline = false;
        self.proven = false;
        self.distrusted = false;
        self.clean = 0;
        self.told_since_clean = false;
    }

    /// Events were lost on our side, or the runtime was frozen: what the next read finds is not held
    /// against the stream.
    pub(super) fn begin_hole(&mut self, at: SeqPoint, settings: &Settings) {
        self.restart_ramp(at, settings);
        self.baseline = false;
    }

    /// Another version of the runtime answers: what it never sends must be learned anew.
    pub(super) fn forget_gaps(&mut self) {
        self.kinds.clear();
    }

    pub(super) fn restart_ramp(&mut self, at: SeqPoint, settings: &Settings) {
        self.period = settings.fast_period;
        self.ramp_from = at;
    }

    /// A full relist was applied while the stream was open.
    pub(super) fn begin_audit(&mut self, begun: SeqPoint, seen: SeqPoint) {
        self.baseline |= begun > self.ramp_from;
        self.audits.push_back(Audit {
            begun,
            closes: seen.at.after(GRACE),
            closed: false,
            misses: 0,
        });
        while self.audits.len() > AUDITS_WATCHED {
            self.audits.pop_front();
        }
    }

    pub(super) fn delivered(&mut self, kind: SubjectEvent) {
        self.kinds.entry(kind).or_default().delivered += 1;
        self.told_since_clean = true;
    }

    /// A later read agreed with an event of this stream.
    pub(super) fn agreed(&mut self) {
        self.proven = true;
    }

    /// The stream did not tell a change within its grace. Returns whether that is a known gap.
    pub(super) fn miss(&mut self, kind: SubjectEvent, at: SeqPoint, settings: &Settings) -> bool {
        self.kinds.entry(kind).or_default().missed += 1;
        if self.is_gap(kind) && Law::GapsAreNoDistrust.holds() {
            return true;
        }
        if Law::MissesRestartTheRamp.holds() {
            self.restart_ramp(at, settings);
        }
        self.clean = 0;
        if let Some(audit) = self.audits.back_mut() {
            audit.misses += 1;
        }
        let recent: u64 = self.audits.iter().map(|audit| audit.misses).sum();
        if recent >= MISSES_TOLERATED {
            self.distrusted = true;
            for audit in &mut self.audits {
                audit.misses = 0;
            }
        }
        false
    }

    /// Closes the audits whose grace is over; call it when every miss of that moment was booked.
    /// Returns whether one of them was clean.
    pub(super) fn close_audits(&mut self, now: SeqPoint, settings: &Settings) -> bool {
        let mut any_clean = false;
        for index in 0..self.audits.len() {
            let Some(audit) = self.audits.get_mut(index) else {
                break;
            };
            if audit.closed || audit.closes > now.at {
                continue;
            }
            audit.closed = true;
            if audit.begun > self.ramp_from {
                any_clean = true;
                self.earn(now, settings);
            }
        }
        any_clean
    }

    fn earn(&mut self, now: SeqPoint, settings: &Settings) {
        if self.distrusted {
            if self.told_since_clean {
                self.told_since_clean = false;
                self.clean += 1;
            }
            if self.clean >= CLEAN_TO_RETURN {
                self.distrusted = false;
                self.clean = 0;
                self.restart_ramp(now, settings);
            }
            return;
        }
        let most = if self.proven || !Law::SilenceEarnsLittle.holds() {
            settings.slow_period
        } else {
            settings.slow_period.min(UNPROVEN.max(settings.fast_period))
        };
        self.period = self.period.saturating_mul(2).min(most);
    }

    /// When the next audit closes.
    pub(super) fn next_close(&self) -> Option<Mono> {
        self.audits
            .iter()
            .filter(|audit| !audit.closed)
            .map(|audit| audit.closes)
            .min()
    }

    /// Whether this runtime is known never to send that kind, though it sends others of that subject.
    ///
    /// Only what costs nothing can be such a gap: nobody is told of a creation, and finished pods are
    /// watched until they are removed. A start or an end that the stream never tells would come as late as
    /// the slow relist, from a stream that counts as trusted; so would those that another client takes.
    pub(super) fn is_gap(&self, kind: SubjectEvent) -> bool {
        if matches!(kind.1, EventKind::Started | EventKind::Stopped) {
            return false;
        }
        let record = self.kinds.get(&kind).copied().unwrap_or_default();
        record.missed >= MISSES_OF_A_GAP
            && record.delivered == 0
            && self.kinds.iter().any(|(other, record)| {
                other.0 == kind.0 && other.1 != kind.1 && record.delivered > 0
            })
    }

    /// Whether this runtime has been seen to send that kind.
    pub(super) fn is_sent(&self, kind: SubjectEvent) -> bool {
        self.kinds
            .get(&kind)
            .is_some_and(|record| record.delivered > 0)
    }

    /// The known gaps.
    pub(super) fn gaps(&self) -> impl Iterator<Item = SubjectEvent> + '_ {
        self.kinds.keys().copied().filter(|kind| self.is_gap(*kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::SubjectKind;

    const STARTED: SubjectEvent = (SubjectKind::Container, EventKind::Started);
    const DELETED: SubjectEvent = (SubjectKind::Container, EventKind::Deleted);

    fn second(n: u64) -> SeqPoint {
        SeqPoint {
            at: Mono(n * 1_000_000_000),
            count: n + 1,
        }
    }

    fn gaps(trust: &Trust) -> Vec<SubjectEvent> {
        trust.gaps().collect()
    }

    /// A container's removal was missed so often.
    fn missed(times: u64) -> Trust {
        let settings = Settings::default();
        let mut trust = Trust::new(&settings);
        for _ in 0..times {
            trust.miss(DELETED, second(1), &settings);
        }
        trust
    }

    #[test]
    fn what_never_came_while_others_of_its_subject_did_is_a_gap() {
        let mut trust = missed(MISSES_OF_A_GAP);
        trust.delivered(STARTED);
        assert_eq!(gaps(&trust), [DELETED]);
        trust.delivered(DELETED);
        assert_eq!(gaps(&trust), []);
    }

    #[test]
    fn starts_and_ends_that_never_come_are_no_gap_but_distrust() {
        let settings = Settings::default();
        for kind in [EventKind::Started, EventKind::Stopped] {
            for subject in [SubjectKind::Container, SubjectKind::Sandbox] {
                let mut trust = missed(0);
                trust.begin_audit(second(1), second(1));
                trust.delivered((subject, EventKind::Created));
                for _ in 0..MISSES_OF_A_GAP {
                    assert!(!trust.miss((subject, kind), second(1), &settings));
                }
                assert_eq!(gaps(&trust), []);
                assert!(trust.distrusted);
            }
        }
    }

    #[test]
    fn a_stream_that_tells_nothing_of_containers_is_broken_and_has_no_gap() {
        let settings = Settings::default();
        let mut trust = missed(MISSES_OF_A_GAP);
        // That another kind was missed too makes it no kind that comes.
        trust.miss(STARTED, second(1), &settings);
        // Nor does what comes of sandboxes say anything of containers.
        trust.delivered((SubjectKind::Sandbox, EventKind::Stopped));
        trust.delivered((SubjectKind::Sandbox, EventKind::Started));
        assert_eq!(gaps(&trust), []);
    }

    #[test]
    fn fewer_misses_are_no_gap_yet() {
        let mut trust = missed(MISSES_OF_A_GAP - 1);
        trust.delivered(STARTED);
        assert_eq!(gaps(&trust), []);
    }

    #[test]
    fn another_version_of_the_runtime_has_no_known_gaps() {
        let mut trust = missed(MISSES_OF_A_GAP);
        trust.delivered(STARTED);
        trust.forget_gaps();
        assert_eq!(gaps(&trust), []);
        assert!(!trust.is_sent(STARTED));
    }

    #[test]
    fn only_what_was_delivered_is_known_to_be_sent() {
        let mut trust = missed(1);
        assert!(!trust.is_sent(DELETED) && !trust.is_sent(STARTED));
        trust.delivered(STARTED);
        assert!(!trust.is_sent(DELETED) && trust.is_sent(STARTED));
        trust.delivered(STARTED);
        assert!(trust.is_sent(STARTED));
    }

    #[test]
    fn the_newest_audits_are_watched_and_no_others() {
        let mut trust = missed(0);
        for n in 1..=7 {
            trust.begin_audit(second(n), second(n));
        }
        let begun: Vec<SeqPoint> = trust.audits.iter().map(|audit| audit.begun).collect();
        assert_eq!(begun, [3, 4, 5, 6, 7].map(second));
    }

    #[test]
    fn the_next_audit_to_close_is_the_oldest_open_one() {
        let settings = Settings::default();
        let mut trust = missed(0);
        assert_eq!(trust.next_close(), None);
        trust.begin_audit(second(10), second(10));
        trust.begin_audit(second(11), second(11));
        assert_eq!(trust.next_close(), Some(second(12).at));
        trust.close_audits(second(12), &settings);
        assert_eq!(trust.next_close(), Some(second(13).at));
        trust.close_audits(second(13), &settings);
        assert_eq!(trust.next_close(), None);
    }
}
