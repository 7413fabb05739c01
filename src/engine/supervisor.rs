//! The life of the stream, and the mode that follows from it: a pure state machine.
//!
//! It owns when the stream is opened, how its ends are read, and the reconnect schedule. It never
//! looks at records, and it never probes: each stream is opened to be kept, since one that is
//! abandoned on containerd 1.7 swallows a later event, even another client's.

use std::time::Duration;

use super::settings::{HEALTHY_STREAM, REPROBE, SHORT_ENDS, STREAM_MINIMUM_LIFE, Settings};
use super::{Mode, PollingReason, SessionId, StreamEnd};
use crate::law::Law;
use crate::lifecycle::{Mono, SeqPoint};

/// What is being done about the stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stream {
    /// Nothing: the gate is off.
    Off,
    /// The next try is due at a moment.
    Waiting(Mono),
    /// One was asked for and has not ended.
    Open(OpenStream),
}

/// A stream that was asked for. On an idle node its headers may not come for hours, so "asked, and
/// no error since" is all that can be known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpenStream {
    pub(super) session: SessionId,
    pub(super) asked: SeqPoint,
    pub(super) last_message: Option<Mono>,
    /// Whether a full relist begun after it was asked for has been applied.
    pub(super) relisted: bool,
    /// Whether it is known to be a stream: by a message, or by its age.
    pub(super) lives: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Supervisor {
    pub(super) stream: Stream,
    pub(super) mode: Mode,
    /// Tries since the schedule last began.
    pub(super) attempt: usize,
    pub(super) short_ends: u8,
    pub(super) ever_ended: bool,
    pub(super) unsupported: bool,
    pub(super) unresponsive: bool,
    pub(super) calls_fail: bool,
    pub(super) next_session: u64,
    pub(super) jitter: u64,
}

impl Supervisor {
    pub(super) fn new(settings: &Settings) -> Self {
        let (stream, mode) = if settings.evented {
            (Stream::Waiting(Mono(0)), Mode::Connecting)
        } else {
            let reason = PollingReason::Disabled;
            (Stream::Off, Mode::Polling { reason })
        };
        Self {
            stream,
            mode,
            attempt: 0,
            short_ends: 0,
            ever_ended: false,
            unsupported: false,
            unresponsive: false,
            calls_fail: false,
            next_session: 0,
            jitter: settings.seed,
        }
    }

    pub(super) fn open(&self) -> Option<&OpenStream> {
        match &self.stream {
            Stream::Open(open) => Some(open),
            Stream::Off | Stream::Waiting(_) => None,
        }
    }

    fn open_mut(&mut self) -> Option<&mut OpenStream> {
        match &mut self.stream {
            Stream::Open(open) => Some(open),
            Stream::Off | Stream::Waiting(_) => None,
        }
    }

    pub(super) fn is_open(&self, session: SessionId) -> bool {
        self.open().is_some_and(|open| open.session == session)
    }

    /// Whether the stream counts as following the runtime.
    pub(super) fn is_established(&self) -> bool {
        self.open().is_some_and(|open| open.lives && open.relisted)
    }

    /// The stream to ask for now, if one is due.
    pub(super) fn open_if_due(&mut self, now: SeqPoint) -> Option<SessionId> {
        match self.stream {
            Stream::Waiting(due) if due <= now.at => {}
            _ => return None,
        }
        self.next_session += 1;
        let session = SessionId(self.next_session);
        self.stream = Stream::Open(OpenStream {
            session,
            asked: now,
            last_message: None,
            relisted: false,
            lives: false,
        });
        Some(session)
    }

    pub(super) fn message(&mut self, now: Mono) {
        self.short_ends = 0;
        if let Some(open) = self.open_mut() {
            open.last_message = Some(now);
            open.lives = true;
        }
    }

    pub(super) fn relisted(&mut self, begun: SeqPoint) {
        if let Some(open) = self.open_mut()
            && begun > open.asked
        {
            open.relisted = true;
        }
    }

    /// Lets time pass for the open stream.
    pub(super) fn age(&mut self, now: Mono) {
        if let Some(open) = self.open_mut()
            && now.since(open.asked.at) >= STREAM_MINIMUM_LIFE
        {
            open.lives = true;
        }
        if self.is_established() {
            self.unsupported = false;
        }
    }

    /// The stream ended. Returns how long the next try waits.
    pub(super) fn ended(&mut self, end: &StreamEnd, now: Mono, settings: &Settings) -> Duration {
        let Some(open) = self.open() else {
            return Duration::ZERO;
        };
        let short = open.last_message.is_none() && now.since(open.asked.at) < STREAM_MINIMUM_LIFE;
        self.ever_ended = true;
        let never_a_stream = match end {
            StreamEnd::Unimplemented => true,
            StreamEnd::Clean if short => {
                self.short_ends = self.short_ends.saturating_add(1);
                self.unsupported || self.short_ends >= SHORT_ENDS
            }
            StreamEnd::Clean | StreamEnd::Broken(_) => {
                self.short_ends = 0;
                false
            }
        };
        let wait = if never_a_stream {
            self.unsupported = true;
            self.attempt = 0;
            REPROBE
        } else {
            self.next_delay(settings)
        };
        self.stream = Stream::Waiting(now.after(wait));
        wait
    }

    fn next_delay(&mut self, settings: &Settings) -> Duration {
        let delays = &settings.reconnect_delays;
        let delay = delays
            .get(self.attempt)
            .or(delays.last())
            .copied()
            .unwrap_or(Duration::from_secs(60));
        self.attempt = self.attempt.saturating_add(1).min(delays.len());
        let percent = 100 - self.draw(settings.jitter_percent.min(100));
        // Divided first: any delay may be set.
        delay / 100 * u32::from(percent)
    }

    /// A number from 0 to `most`, evenly (`SplitMix64`).
    fn draw(&mut self, most: u8) -> u8 {
        if most == 0 {
            return 0;
        }
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.jitter;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = (z ^ (z >> 31)) % (u64::from(most) + 1);
        u8::try_from(drawn).unwrap_or(most)
    }

    /// A unary call failed for want of a runtime.
    pub(super) fn call_failed(&mut self) {
        self.calls_fail = true;
    }

    /// A unary call succeeded. The first after failures makes the next try due now: the runtime is
    /// back, perhaps another one.
    pub(super) fn call_succeeded(&mut self, now: Mono) {
        if std::mem::take(&mut self.calls_fail) {
            self.try_now(now);
        }
    }

    pub(super) fn try_now(&mut self, now: Mono) {
        if let Stream::Waiting(due) = &mut self.stream {
            *due = (*due).min(now);
        }
    }

    /// An audit was clean: after a minute of the stream's life the schedule begins anew.
    pub(super) fn audit_was_clean(&mut self, now: Mono) {
        let has_lived = |open: &OpenStream| now.since(open.asked.at) >= HEALTHY_STREAM;
        if self.open().is_some_and(has_lived) || !Law::BackoffOutlivesConnecting.holds() {
            self.attempt = 0;
        }
    }

    /// The mode that follows from all of this.
    pub(super) fn mode_now(&self, distrusted: bool, audit_period: Duration) -> Mode {
        let polling = |reason| Mode::Polling { reason };
        match &self.stream {
            Stream::Off => polling(PollingReason::Disabled),
            _ if self.unsupported => polling(PollingReason::Unsupported),
            // A try to reopen is no change of mode, whatever the heartbeat says meanwhile.
            _ if self.ever_ended && !self.is_established() => polling(PollingReason::StreamBroken),
            Stream::Open(_) if self.unresponsive => polling(PollingReason::Unresponsive),
            _ if !self.is_established() => Mode::Connecting,
            _ if distrusted => polling(PollingReason::Untrusted),
            _ => Mode::Evented { audit_period },
        }
    }

    /// When time alone changes something.
    pub(super) fn next_timeout(&self) -> Option<Mono> {
        match &self.stream {
            Stream::Waiting(due) => Some(*due),
            Stream::Open(open) if !open.lives => Some(open.asked.at.after(STREAM_MINIMUM_LIFE)),
            Stream::Off | Stream::Open(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> SeqPoint {
        SeqPoint {
            at: Mono(n * 1_000_000_000),
            count: n + 1,
        }
    }

    fn steady() -> Settings {
        Settings {
            jitter_percent: 0,
            ..Settings::default()
        }
    }

    #[test]
    fn the_schedule_grows_to_its_last_entry_and_never_ends() {
        let settings = steady();
        let mut supervisor = Supervisor::new(&settings);
        let waits: Vec<u64> = (0..11)
            .map(|_| {
                supervisor.try_now(Mono(0));
                supervisor.open_if_due(second(0)).unwrap();
                let broken = StreamEnd::Broken(super::super::Failure::for_tests());
                supervisor.ended(&broken, Mono(0), &settings).as_secs()
            })
            .collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    }

    #[test]
    fn the_longest_wait_there_is_may_be_set() {
        let settings = Settings {
            reconnect_delays: vec![Duration::MAX],
            ..Settings::default()
        };
        let mut supervisor = Supervisor::new(&settings);
        let wait = supervisor.next_delay(&settings);
        assert!((Duration::MAX / 100 * 80..=Duration::MAX).contains(&wait));
    }

    #[test]
    fn opening_alone_does_not_begin_the_schedule_anew() {
        let settings = steady();
        let mut supervisor = Supervisor::new(&settings);
        let broken = StreamEnd::Broken(super::super::Failure::for_tests());
        supervisor.open_if_due(second(0)).unwrap();
        assert_eq!(
            supervisor.ended(&broken, Mono(0), &settings),
            Duration::ZERO
        );
        supervisor.open_if_due(second(0)).unwrap();
        supervisor.audit_was_clean(second(59).at);
        assert_eq!(supervisor.attempt, 1);
        supervisor.audit_was_clean(second(60).at);
        assert_eq!(supervisor.attempt, 0);
    }

    #[test]
    fn three_clean_ends_at_once_are_no_stream_and_unimplemented_is_one_enough() {
        let settings = steady();
        let mut supervisor = Supervisor::new(&settings);
        for expected in [0, 1] {
            supervisor.try_now(Mono(0));
            supervisor.open_if_due(second(0)).unwrap();
            let wait = supervisor.ended(&StreamEnd::Clean, Mono(1_000_000), &settings);
            assert_eq!(wait.as_secs(), expected);
            assert!(!supervisor.unsupported);
        }
        supervisor.try_now(Mono(0));
        supervisor.open_if_due(second(0)).unwrap();
        assert_eq!(
            supervisor.ended(&StreamEnd::Clean, Mono(1_000_000), &settings),
            REPROBE
        );
        assert!(supervisor.unsupported);

        let mut old = Supervisor::new(&settings);
        old.open_if_due(second(0)).unwrap();
        assert_eq!(
            old.ended(&StreamEnd::Unimplemented, Mono(0), &settings),
            REPROBE
        );
    }

    #[test]
    fn jitter_only_shortens_and_is_drawn_from_the_seed() {
        let settings = Settings {
            seed: 7,
            ..Settings::default()
        };
        let waits = |settings: &Settings| -> Vec<Duration> {
            let mut supervisor = Supervisor::new(settings);
            (0..20).map(|_| supervisor.next_delay(settings)).collect()
        };
        let drawn = waits(&settings);
        assert_eq!(drawn, waits(&settings));
        assert!(drawn.iter().all(|wait| *wait <= Duration::from_secs(60)));
        assert!(
            drawn[8..]
                .iter()
                .all(|wait| *wait >= Duration::from_secs(48))
        );
        assert!(drawn[8..].windows(2).any(|pair| pair[0] != pair[1]));
    }

    /// Recordings are replayed with their seed: it must draw the same for ever. `SplitMix64`'s published
    /// values for this seed begin with 6457827717110365317.
    #[test]
    fn a_seed_draws_what_it_always_drew() {
        let mut supervisor = Supervisor::new(&Settings {
            seed: 1_234_567,
            ..Settings::default()
        });
        let drawn: Vec<u8> = (0..10).map(|_| supervisor.draw(100)).collect();
        assert_eq!(drawn, [79, 20, 76, 20, 14, 88, 31, 90, 28, 7]);
    }

    #[test]
    fn streams_that_lived_or_spoke_before_they_ended_were_streams() {
        let settings = steady();
        let mut silent = Supervisor::new(&settings);
        for _ in 0..=SHORT_ENDS {
            silent.try_now(Mono(0));
            silent.open_if_due(second(0)).unwrap();
            let end = Mono(0).after(STREAM_MINIMUM_LIFE);
            silent.ended(&StreamEnd::Clean, end, &settings);
        }
        assert!(!silent.unsupported);

        let mut spoke = Supervisor::new(&settings);
        spoke.open_if_due(second(0)).unwrap();
        spoke.ended(&StreamEnd::Unimplemented, Mono(0), &settings);
        spoke.try_now(Mono(0));
        spoke.open_if_due(second(0)).unwrap();
        spoke.message(Mono(1));
        let wait = spoke.ended(&StreamEnd::Clean, Mono(2), &settings);
        assert_eq!(wait, settings.reconnect_delays[0]);
    }

    #[test]
    fn a_schedule_that_begins_anew_with_each_connection_is_missed() {
        Law::BackoffOutlivesConnecting.is_missed_by(opening_alone_does_not_begin_the_schedule_anew);
    }
}
