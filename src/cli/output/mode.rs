//! Changes of mode, which stand beside the events: on stderr in a table, as objects of their own in
//! JSON.

use std::time::Duration;

use serde::Serialize;

use super::event::{moment, time_of_day};
use super::style::{Screen, Tone};
use super::text::{shown, wrapped};
use crate::engine::{Mode, ModeChange, PollingReason};
use crate::lifecycle::UnixNanos;

/// What is said to people: a line, or as many as the screen needs.
pub(crate) fn line(change: &ModeChange, screen: Screen) -> String {
    let audit = match change.to {
        Mode::Evented { audit_period } => format!(" (audit every {})", period(audit_period)),
        Mode::Connecting | Mode::Polling { .. } => String::new(),
    };
    let tone = match change.to {
        Mode::Evented { .. } => Tone::Good,
        Mode::Connecting | Mode::Polling { .. } => Tone::Notice,
    };
    let at = match screen.width {
        Some(_) => time_of_day(change.at),
        None => moment(change.at),
    };
    let mode = change.to.to_string();
    let words = format!(
        "{at} mode {mode}{audit}, was {}: {}\n",
        change.from,
        shown(&change.cause)
    );
    // Broken before it is painted: colours have no width.
    let words = wrapped(&words, at.len() + 1, screen.width);
    words.replacen(&mode, &screen.colour.paint(tone, &mode), 1)
}

/// One line of JSON.
///
/// # Errors
///
/// None that these types can cause; the writer of JSON has the last word.
pub(crate) fn json_line(change: &ModeChange) -> Result<String, serde_json::Error> {
    let mut line = serde_json::to_string(&ModeChanged::from(change))?;
    line.push('\n');
    Ok(line)
}

/// A change of mode as it stands between events: told apart by `type`, like them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModeChanged<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    from: &'static str,
    to: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<PollingReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_period: Option<String>,
    cause: &'a str,
    at: UnixNanos,
}

impl<'a> From<&'a ModeChange> for ModeChanged<'a> {
    fn from(change: &'a ModeChange) -> Self {
        let (reason, audit_period) = match change.to {
            Mode::Connecting => (None, None),
            Mode::Evented { audit_period } => (None, Some(period(audit_period))),
            Mode::Polling { reason } => (Some(reason), None),
        };
        Self {
            kind: "ModeChanged",
            from: name(change.from),
            to: name(change.to),
            reason,
            audit_period,
            cause: &change.cause,
            at: change.at,
        }
    }
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Connecting => "Connecting",
        Mode::Evented { .. } => "Evented",
        Mode::Polling { .. } => "Polling",
    }
}

/// `1s`, `4m16s`: as Go and the kubelet's configuration write durations.
fn period(period: Duration) -> String {
    humantime::format_duration(period)
        .to_string()
        .replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::super::samples::NOON;
    use super::super::style::Colour;
    use super::*;

    const PIPE: Screen = Screen {
        colour: Colour::Never,
        width: None,
    };
    const TERMINAL: Screen = Screen {
        colour: Colour::Ansi,
        width: Some(50),
    };

    fn change(from: Mode, to: Mode) -> ModeChange {
        ModeChange {
            from,
            to,
            cause: "3 misses\u{1b}[2J".into(),
            at: UnixNanos(NOON),
        }
    }

    const EVENTED: Mode = Mode::Evented {
        audit_period: Duration::from_secs(256),
    };
    const UNTRUSTED: Mode = Mode::Polling {
        reason: PollingReason::Untrusted,
    };

    #[test]
    fn a_change_reads_as_a_sentence_that_no_runtime_can_forge() {
        assert_eq!(
            line(&change(EVENTED, UNTRUSTED), PIPE),
            "2026-11-30T12:00:00.000Z mode Polling(Untrusted), was Evented: 3 misses\\u{1b}[2J\n"
        );
        assert_eq!(
            line(&change(Mode::Connecting, EVENTED), TERMINAL),
            "12:00:00.000 mode \u{1b}[32mEvented\u{1b}[0m (audit every 4m16s), was\n             \
             Connecting: 3 misses\\u{1b}[2J\n"
        );
    }

    #[test]
    fn a_change_is_an_object_of_its_own_type() {
        assert_eq!(
            json_line(&change(EVENTED, UNTRUSTED)).unwrap(),
            "{\"type\":\"ModeChanged\",\"from\":\"Evented\",\"to\":\"Polling\",\
             \"reason\":\"Untrusted\",\"cause\":\"3 misses\\u001b[2J\",\
             \"at\":\"2026-11-30T12:00:00.000000000Z\"}\n"
        );
        assert_eq!(
            json_line(&change(UNTRUSTED, EVENTED)).unwrap(),
            "{\"type\":\"ModeChanged\",\"from\":\"Polling\",\"to\":\"Evented\",\
             \"auditPeriod\":\"4m16s\",\"cause\":\"3 misses\\u001b[2J\",\
             \"at\":\"2026-11-30T12:00:00.000000000Z\"}\n"
        );
    }
}
