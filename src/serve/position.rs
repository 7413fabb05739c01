//! Positions and marks as text: what a client hands back to go on where it was, or to ask for news.
//!
//! Both are numbers of one life of the daemon, so both carry its [`Epoch`]. Neither is ever a moment
//! of the wall clock, and text that looks like one is refused with that reason: clocks step, and a
//! clock that stepped would make a silent gap.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::lifecycle::{Mark, Mono, Revision, SeqPoint};

/// One life of a daemon. Epochs are told apart, never ordered. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Epoch {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let is_epoch = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(text, 16)
            .ok()
            .filter(|_| is_epoch)
            .map(Self)
            .ok_or(PositionError::Malformed)
    }
}

impl Serialize for Epoch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Epoch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where a watcher is: it has everything up to and including this revision. Written as
/// `EPOCH-REVISION`, which is also an SSE event's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The life of the daemon that the revision counts in.
    pub epoch: Epoch,
    /// The last revision that the watcher has.
    pub revision: Revision,
}

/// Why text is no position, or no mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PositionError {
    /// It looks like a moment.
    #[error(
        "a moment of the wall clock is no position: clocks step; \
         list, or watch from a snapshot, and hand back what the answer carries"
    )]
    WallClock,
    /// It looks like nothing that was ever handed out.
    #[error("this was never handed out; hand back what an answer or an event carried, unchanged")]
    Malformed,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.revision)
    }
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let (epoch, revision) = text.split_once('-').ok_or_else(|| no_position(text))?;
        let epoch = epoch.parse().map_err(|_| no_position(text))?;
        let revision = decimal(revision).ok_or(PositionError::Malformed)?;
        Ok(Self {
            epoch,
            revision: Revision(revision),
        })
    }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A [`Mark`] that can leave the process. Written as `EPOCH-NANOSECONDS.COUNT`, and opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochMark {
    /// The life of the daemon that the mark is of.
    pub epoch: Epoch,
    /// The mark.
    pub mark: Mark,
}

impl fmt::Display for EpochMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SeqPoint { at, count } = self.mark.0;
        write!(f, "{}-{}.{count}", self.epoch, at.0)
    }
}

impl FromStr for EpochMark {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let (epoch, point) = text.split_once('-').ok_or_else(|| no_position(text))?;
        let epoch = epoch.parse().map_err(|_| no_position(text))?;
        let point = point.split_once('.').and_then(|(at, count)| {
            let at = Mono(decimal(at)?);
            let count = decimal(count)?;
            Some(SeqPoint { at, count })
        });
        Ok(Self {
            epoch,
            mark: Mark(point.ok_or(PositionError::Malformed)?),
        })
    }
}

/// Digits alone: `u64::from_str` would take a sign too.
fn decimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// A date, a date with a time, or a bare number, as seconds since 1970 are.
fn no_position(text: &str) -> PositionError {
    let text = text.trim();
    let date = text.get(..10).unwrap_or("");
    if decimal(text).is_some() || date.parse::<jiff::civil::Date>().is_ok() {
        PositionError::WallClock
    } else {
        PositionError::Malformed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_marks_survive_their_text() {
        let epoch = Epoch(0x00ab_cdef_0123_4567);
        let position = Position {
            epoch,
            revision: Revision(42),
        };
        assert_eq!(position.to_string(), "00abcdef01234567-42");
        assert_eq!(position.to_string().parse(), Ok(position));
        let mark = EpochMark {
            epoch,
            mark: Mark(SeqPoint {
                at: Mono(u64::MAX),
                count: 7,
            }),
        };
        assert_eq!(mark.to_string().parse(), Ok(mark));
    }

    #[test]
    fn a_moment_is_no_position_and_the_refusal_says_so() {
        for moment in [
            "2026-11-30T12:00:00Z",
            "2026-11-30",
            "2026-11-30 12:00",
            "1796040000",
            "1796040000000000000",
        ] {
            let refused = PositionError::WallClock;
            assert_eq!(moment.parse::<Position>(), Err(refused), "{moment}");
            assert_eq!(moment.parse::<EpochMark>(), Err(refused), "{moment}");
        }
    }

    #[test]
    fn nothing_else_is_taken_for_one() {
        for text in [
            "",
            "-",
            "now",
            "00abcdef01234567",
            "00abcdef01234567-",
            "00abcdef01234567-+1",
            "00abcdef01234567--1",
            "00abcdef01234567-1 ",
            "0abcdef01234567-1",
            "+0abcdef01234567-1",
            "00abcdef01234567-99999999999999999999",
            "ä0abcdef01234567-1",
        ] {
            assert_eq!(
                text.parse::<Position>(),
                Err(PositionError::Malformed),
                "{text}"
            );
            assert!(text.parse::<EpochMark>().is_err(), "{text}");
        }
    }
}
