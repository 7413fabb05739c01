//! What goes wrong with messages and with calls, until it is used up: the oldest trouble that fits
//! decides, as in a scenario.

use std::collections::VecDeque;

use super::act::{Act, Method};

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mishap {
    Lost,
    Delayed { millis: u32 },
    Twice,
    BehindTheNext,
    DroppedByTheInbox,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Fails,
    BreaksOff,
    Slow { millis: u32, read_late: bool },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    mishaps: VecDeque<(Mishap, u32)>,
    outcomes: Vec<(Method, Outcome, u32)>,
    /// Subjects, by place, whose items in lists cannot be read.
    pub(super) garbled: Vec<usize>,
    pub(super) is_mute: bool,
    pub(super) is_shared: bool,
    stolen_last: bool,
}

impl Trouble {
    /// Takes an act that makes trouble; gives whether it was one.
    pub(super) fn begins_with(&mut self, act: Act) -> bool {
        let mut mishap = |mishap, next| self.mishaps.push_back((mishap, next));
        match act {
            Act::Lose { next } => mishap(Mishap::Lost, next),
            Act::Delay { next, millis } => mishap(Mishap::Delayed { millis }, next),
            Act::Duplicate { next } => mishap(Mishap::Twice, next),
            Act::Reorder { next } => mishap(Mishap::BehindTheNext, next),
            Act::Overflow { next } => mishap(Mishap::DroppedByTheInbox, next),
            Act::Mute => self.is_mute = true,
            Act::Compete => self.is_shared = true,
            Act::StopCompeting => self.is_shared = false,
            Act::Fail { call, times } => self.outcomes.push((call, Outcome::Fails, times)),
            Act::Cut { call, times } => self.outcomes.push((call, Outcome::BreaksOff, times)),
            Act::Slow {
                call,
                times,
                millis,
                read_late,
            } => {
                let slow = Outcome::Slow { millis, read_late };
                self.outcomes.push((call, slow, times));
            }
            Act::Heal => {
                self.outcomes.clear();
                self.garbled.clear();
            }
            _ => return false,
        }
        true
    }

    /// What becomes of the next message, `None`: it arrives.
    pub(super) fn befalls_message(&mut self) -> Option<Mishap> {
        if self.is_mute {
            return Some(Mishap::Lost);
        }
        if self.is_shared {
            self.stolen_last = !self.stolen_last;
            if self.stolen_last {
                return Some(Mishap::Lost);
            }
        }
        let (mishap, left) = self.mishaps.front_mut()?;
        let mishap = *mishap;
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.mishaps.pop_front();
        }
        Some(mishap)
    }

    /// What becomes of the next call of a method, `None`: it is answered.
    pub(super) fn befalls_call(&mut self, of: Method) -> Option<Outcome> {
        let at = self.outcomes.iter().position(|(call, _, _)| *call == of)?;
        let (_, outcome, left) = &mut self.outcomes[at];
        let outcome = *outcome;
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.outcomes.remove(at);
        }
        Some(outcome)
    }

    /// The stream is well again.
    pub(super) fn unmute(&mut self) {
        self.is_mute = false;
        self.mishaps.clear();
    }

    /// Everything is.
    pub(super) fn ends(&mut self) {
        *self = Self::default();
    }
}
