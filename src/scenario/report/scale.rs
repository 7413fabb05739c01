//! Where a moment lies on a report's axis, in integers: the same trace gives the same file.

use std::fmt::Write as _;
use std::time::Duration;

use crate::lifecycle::Mono;

/// The steps between two labels of the axis, in milliseconds; beyond them, whole days.
const STEPS: [u64; 25] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000,
    120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000, 43_200_000,
];
const DAY: u64 = 86_400_000;

/// About how many labels fit beside each other.
const LABELS: u64 = 12;

/// What is left free on either side, so that a mark at the very beginning is seen whole.
const EDGE: u64 = 1_000;
const WHOLE: u64 = 100_000 - 2 * EDGE;

/// The narrowest that anything is drawn, in thousandths of a per cent.
const NARROWEST: u64 = 40;

/// A run's time, as the width of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    began: Mono,
    length: u64,
}

impl Scale {
    pub(super) fn new(began: Mono, ended: Mono) -> Self {
        Self {
            began,
            length: ended.0.saturating_sub(began.0).max(1_000_000),
        }
    }

    /// Where it lies, in thousandths of a per cent.
    pub(super) fn place(self, at: Mono) -> u64 {
        let into = u128::from(at.0.saturating_sub(self.began.0).min(self.length));
        // At most WHOLE: `into` is at most `length`.
        EDGE + u64::try_from(into * u128::from(WHOLE) / u128::from(self.length)).unwrap_or(WHOLE)
    }

    /// Where it lies, as SVG has it.
    pub(super) fn x(self, at: Mono) -> String {
        percent(self.place(at))
    }

    /// How wide it is, as SVG has it; never so narrow that it cannot be seen.
    pub(super) fn width(self, from: Mono, until: Mono) -> String {
        let width = self.place(until).saturating_sub(self.place(from));
        percent(width.max(NARROWEST))
    }

    /// When it was, counted from the beginning.
    pub(super) fn time(self, at: Mono) -> String {
        exactly(at.since(self.began))
    }

    /// The moments that carry a label.
    pub(super) fn ticks(self) -> Vec<(Mono, String)> {
        let length = self.length / 1_000_000;
        let step = STEPS
            .into_iter()
            .find(|step| length / step <= LABELS)
            .unwrap_or_else(|| DAY * (length / DAY / LABELS + 1));
        (0..=length / step)
            .map(|number| {
                let into = Duration::from_millis(number * step);
                (self.began.after(into), roughly(into))
            })
            .collect()
    }
}

fn percent(thousandths: u64) -> String {
    format!("{}.{:03}%", thousandths / 1_000, thousandths % 1_000)
}

/// To the millisecond: `1.250s`, `2m05.000s`, `3h00m01.000s`.
pub(super) fn exactly(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    let (hours, minutes, left) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{left}.{millis:03}s"),
        (0, _) => format!("{minutes}m{left:02}.{millis:03}s"),
        _ => format!("{hours}h{minutes:02}m{left:02}.{millis:03}s"),
    }
}

/// As people say it: `250ms`, `2s`, `1m30s`, `6h`.
pub(super) fn roughly(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    if seconds == 0 && millis > 0 {
        return format!("{millis}ms");
    }
    if seconds < 60 {
        return match millis {
            ..100 => format!("{seconds}s"),
            _ => format!("{seconds}.{}s", millis / 100),
        };
    }
    let parts = [
        (seconds / 3_600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let mut told = String::new();
    for (number, unit) in parts {
        if number > 0 {
            // A String never fails.
            let _ = write!(told, "{number}{unit}");
        }
    }
    if told.is_empty() {
        told.push_str("0s");
    }
    told
}
