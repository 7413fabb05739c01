//! The status in one sentence, as somebody who is woken at night wants it.

use std::fmt;

use super::{ModeReport, Noted, Status};
use crate::engine::PollingReason;
use crate::lifecycle::Now;

/// Seconds as people say them: `0.4 s`, `12 s`, `3 min`, `3 h`, `2 d`.
#[derive(Clone, Copy, Debug)]
pub struct Age(pub f64);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.max(0.0);
        match seconds {
            s if s < 0.95 => write!(f, "{s:.1} s"),
            s if s < 119.5 => write!(f, "{s:.0} s"),
            s if s < 7_170.0 => write!(f, "{:.0} min", s / 60.0),
            s if s < 172_000.0 => write!(f, "{:.0} h", s / 3_600.0),
            s => write!(f, "{:.0} d", s / 86_400.0),
        }
    }
}

/// The mode, why, and what follows from it, in one sentence without a full stop.
#[must_use]
pub fn in_words(status: &Status, noted: &Noted, started: Now, now: Now) -> String {
    let mut words = if status.driver.answers {
        String::new()
    } else {
        match status.driver.answered_seconds_ago {
            Some(ago) => format!("The driver has not answered for {}; before: ", Age(ago)),
            None => "The driver has not answered yet; ".to_owned(),
        }
    };
    words += &mode_in_words(&status.mode, noted, now);
    match status.last_relist_seconds_ago {
        Some(ago) => words.extend(["; last relist ", &Age(ago).to_string(), " ago"]),
        None => words += "; not relisted yet",
    }
    if let Some(why) = &noted.relist_failure {
        words.extend(["; the last relist failed: ", why]);
    }
    if status.mode.name == "Evented" {
        let since = |moment: Now| Age(now.mono.since(moment.mono).as_secs_f64()).to_string();
        if let Some(missed) = noted.last_missed {
            words.extend(["; last missed a change ", &since(missed), " ago"]);
        } else {
            let begun = noted.mode_since.unwrap_or(started);
            words.extend(["; nothing missed in ", &since(begun)]);
        }
    }
    if let Some(pending) = &status.pending_call
        && pending.seconds >= 10.0
    {
        let call = format!("{:?}", pending.call);
        let age = Age(pending.seconds).to_string();
        words.extend(["; ", &call, " unanswered for ", &age]);
    }
    // A runtime's error may have lines, which a service manager would take for more than words.
    words.replace(char::is_control, " ")
}

fn mode_in_words(mode: &ModeReport, noted: &Noted, now: Now) -> String {
    if let Some(period) = mode.audit_period_seconds {
        return format!("Events, audited every {}", Age(period));
    }
    let Some(reason) = mode.reason else {
        return "Connecting to the runtime's event stream, polling meanwhile".to_owned();
    };
    let every = if (mode.relist_period_seconds - 1.0).abs() < 0.001 {
        "each second".to_owned()
    } else {
        format!("every {}", Age(mode.relist_period_seconds))
    };
    let mut words = format!("Polling {every}, because {}", why(reason, mode, noted, now));
    if let Some(next) = mode.next_attempt_in_seconds {
        words.extend(["; next attempt in ", &Age(next).to_string()]);
    }
    words
}

fn why(reason: PollingReason, mode: &ModeReport, noted: &Noted, now: Now) -> String {
    let since = ago(mode.since_seconds);
    let cause = mode.cause.as_deref().unwrap_or("");
    match reason {
        PollingReason::Disabled => "events are switched off".to_owned(),
        PollingReason::Unsupported if cause.is_empty() => {
            "the runtime has no event stream".to_owned()
        }
        // "The runtime serves no events", and why one knows.
        PollingReason::Unsupported => cause.to_owned(),
        PollingReason::StreamBroken => {
            let (broke, how) = match &noted.stream_ended {
                Some((at, how)) => (ago(now.mono.since(at.mono).as_secs_f64()), &**how),
                None => (since, cause),
            };
            format!("the stream broke {broke}: {how}")
        }
        PollingReason::Unresponsive => {
            format!("the runtime stopped answering its heartbeat {since}: {cause}")
        }
        PollingReason::Untrusted => {
            format!("the stream has lost events, found {since}: {cause}")
        }
    }
}

/// `12 s ago`, or `just now`.
fn ago(seconds: f64) -> String {
    if seconds < 0.95 {
        "just now".to_owned()
    } else {
        format!("{} ago", Age(seconds))
    }
}
