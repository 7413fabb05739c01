//! "17 seconds ago", in the words that Docker and crictl use.

use crate::lifecycle::UnixNanos;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
const MONTH: u64 = 30 * DAY;
const YEAR: u64 = 365 * DAY;

/// How long before `now` a moment was. A moment that is yet to come (two clocks that differ) counts
/// as just now.
pub(crate) fn ago(moment: UnixNanos, now: UnixNanos) -> String {
    let seconds = seconds(moment, now);
    // Hours are rounded, everything else is cut: 90 minutes are two hours, 119 seconds one minute.
    let hours = (seconds + HOUR / 2) / HOUR;
    let span = match seconds {
        0 => "Less than a second".to_owned(),
        1 => "1 second".to_owned(),
        _ if seconds < MINUTE => format!("{seconds} seconds"),
        _ if seconds < 2 * MINUTE => "About a minute".to_owned(),
        _ if seconds < HOUR => format!("{} minutes", seconds / MINUTE),
        _ if hours == 1 => "About an hour".to_owned(),
        _ if hours < 48 => format!("{hours} hours"),
        _ if seconds < 2 * WEEK => format!("{} days", seconds / DAY),
        _ if seconds < 2 * MONTH => format!("{} weeks", seconds / WEEK),
        _ if seconds < 2 * YEAR => format!("{} months", seconds / MONTH),
        _ => format!("{} years", seconds / YEAR),
    };
    format!("{span} ago")
}

/// The same in the few letters that kubectl uses: `17s`, `4m`, `3h`, `12d`, `2y`.
pub(crate) fn short(moment: UnixNanos, now: UnixNanos) -> String {
    match seconds(moment, now) {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s => format!("{}y", s / YEAR),
    }
}

fn seconds(moment: UnixNanos, now: UnixNanos) -> u64 {
    let nanos = now.0.saturating_sub(moment.0);
    u64::try_from(nanos / 1_000_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_column_takes_any_age() {
        for (seconds, words) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (2 * DAY, "2d"),
            (729 * DAY, "729d"),
            (2 * YEAR, "2y"),
        ] {
            let now = i64::try_from(seconds).unwrap() * 1_000_000_000;
            assert_eq!(short(UnixNanos(0), UnixNanos(now)), words, "{seconds} s");
        }
        assert_eq!(short(UnixNanos(2), UnixNanos(1)), "0s");
    }

    #[test]
    fn spans_are_told_in_the_words_of_crictl() {
        for (seconds, words) in [
            (0, "Less than a second ago"),
            (1, "1 second ago"),
            (17, "17 seconds ago"),
            (59, "59 seconds ago"),
            (60, "About a minute ago"),
            (119, "About a minute ago"),
            (120, "2 minutes ago"),
            (HOUR - 1, "59 minutes ago"),
            (HOUR, "About an hour ago"),
            (90 * MINUTE, "2 hours ago"),
            (47 * HOUR, "47 hours ago"),
            (48 * HOUR, "2 days ago"),
            (13 * DAY, "13 days ago"),
            (14 * DAY, "2 weeks ago"),
            (60 * DAY, "2 months ago"),
            (3 * YEAR, "3 years ago"),
        ] {
            let now = 1_800_000_000_000_000_000;
            let moment = now - i64::try_from(seconds).unwrap() * 1_000_000_000;
            assert_eq!(ago(UnixNanos(moment), UnixNanos(now)), words, "{seconds} s");
        }
    }

    #[test]
    fn a_stamp_of_the_future_or_of_another_age_is_no_overflow() {
        assert_eq!(ago(UnixNanos(2), UnixNanos(1)), "Less than a second ago");
        assert_eq!(
            ago(UnixNanos(i64::MAX), UnixNanos(i64::MIN)),
            "Less than a second ago"
        );
        assert_eq!(
            ago(UnixNanos(i64::MIN), UnixNanos(i64::MAX)),
            "292 years ago"
        );
    }
}
