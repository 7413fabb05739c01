//! The report of `pleg verify`: what was found first, then what was counted.

use std::fmt::Write;
use std::time::Duration;

use super::style::{Colour, Screen, Tone};
use super::table::{Cell, aligned, push_row, width};
use super::text::{NOTHING, message, shown, wrapped};
use crate::lifecycle::{EventKind, SubjectKind};
use crate::verify::{EventRow, FindingKind, Percentiles, Report, Tally, Verdict};

/// Words of a finding, as they begin its line.
fn name(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::NoEvents => "no events",
        FindingKind::ListsFailed => "no lists",
        FindingKind::NoStream => "no stream",
        FindingKind::NothingHappened => "nothing happened",
        FindingKind::SecondConsumer => "second client",
        FindingKind::Missing => "missing",
        FindingKind::StreamBroke => "broken stream",
        FindingKind::Late => "late",
        FindingKind::Repeated => "repeated",
        FindingKind::OutOfOrder => "out of order",
        FindingKind::Contradictory => "contradictory",
        FindingKind::WithoutSnapshot => "without snapshot",
        FindingKind::AbsurdStamps => "absurd stamp",
        FindingKind::Unreadable => "unreadable",
        FindingKind::UnknownTypes => "unknown type",
        FindingKind::Backlog => "backlog",
        FindingKind::KnownGap => "known gap",
        FindingKind::Dropped => "dropped here",
        FindingKind::ClockStepped => "clock stepped",
    }
}

/// The report for people. Findings go first, since they are what the audit was for.
pub(crate) fn table(report: &Report, screen: Screen) -> String {
    let mut text = String::new();
    let (tone, verdict) = match report.verdict {
        Verdict::Passed => (Tone::Good, "PASSED: what lists and events prove was told"),
        Verdict::Lost => (
            Tone::Bad,
            "LOST: something was never told that this runtime usually tells",
        ),
        Verdict::CannotTell => (Tone::Notice, "CANNOT TELL"),
    };
    let verdict = screen.colour.paint(tone, verdict);
    let runtime = &report.runtime;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{} {}, {:.0} s, {} lists, {} messages\n{verdict}",
        shown(&runtime.name),
        shown(&runtime.version),
        report.lasted.as_secs_f64(),
        report.lists,
        report.messages,
    );
    for finding in &report.findings {
        let advice = message(&finding.advice).replace('\n', " ");
        let line = format!("  {}: {advice}", name(finding.kind));
        let _ = writeln!(text, "{}", wrapped(&line, 4, screen.width));
    }
    if !report.events.is_empty() {
        text.push('\n');
        text.push_str(&counts(&report.events));
    }
    let latencies = &report.latency_ms;
    let rows: Vec<[Cell; 6]> = [
        ("the message's stamp", latencies.from_stamp),
        ("createdAt of CREATED", latencies.from_created),
        ("startedAt of STARTED", latencies.from_started),
        ("finishedAt of STOPPED", latencies.from_finished),
    ]
    .into_iter()
    .filter_map(|(from, times)| Some(latency(from, &times?)))
    .collect();
    if !rows.is_empty() {
        text.push('\n');
        let header = ["TO RECEIPT FROM", "P50", "P90", "P99", "MAX", "OF"];
        text.push_str(&aligned(header, &rows, Colour::Never));
    }
    text
}

/// What of a kind of event was counted, and its name.
type Count = (&'static str, fn(&Tally) -> u64);

/// Always shown: they are what an audit is about.
const PROVEN: [Count; 3] = [
    ("DELIVERED", |tally| tally.delivered),
    ("PROVEN", |tally| tally.proven),
    ("MISSING", |tally| tally.missing),
];

/// Shown if there is any: a column of nothing tells nothing.
const ODDITIES: [Count; 7] = [
    ("KNOWN-GAP", |tally| tally.not_sent),
    ("LATE", |tally| tally.late),
    ("REPEATED", |tally| tally.repeated),
    ("DISORDER", |tally| tally.out_of_order),
    ("CONTRADICT", |tally| tally.contradictory),
    ("NO-SNAPSHOT", |tally| tally.without_snapshot),
    ("BAD-STAMP", |tally| tally.absurd_stamp),
];

fn counts(rows: &[EventRow]) -> String {
    let odd = ODDITIES
        .iter()
        .filter(|(_, count)| rows.iter().any(|row| count(&row.tally) > 0));
    let shown: Vec<&Count> = PROVEN.iter().chain(odd).collect();
    let header = ["SUBJECT", "EVENT"]
        .into_iter()
        .chain(shown.iter().map(|(name, _)| *name));
    let mut lines = vec![header.map(Cell::from).collect::<Vec<_>>()];
    for row in rows {
        let subject = match row.subject {
            SubjectKind::Sandbox => "sandbox",
            SubjectKind::Container => "container",
        };
        let event = match row.event {
            EventKind::Created => "CREATED",
            EventKind::Started => "STARTED",
            EventKind::Stopped => "STOPPED",
            EventKind::Deleted => "DELETED",
            EventKind::Other(_) => "OTHER",
        };
        let cells = shown
            .iter()
            .enumerate()
            .map(|(at, (_, count))| match count(&row.tally) {
                // How many there were is told of every kind, even if it is none.
                0 if at >= 2 => NOTHING.to_owned(),
                number => number.to_string(),
            });
        let row = [subject.to_owned(), event.to_owned()]
            .into_iter()
            .chain(cells);
        lines.push(row.map(Cell::from).collect());
    }
    let widths: Vec<usize> = (0..shown.len() + 2)
        .map(|column| {
            lines
                .iter()
                .map(|line| width(&line[column].text))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for line in &lines {
        push_row(&mut text, line, &widths, Colour::Never);
    }
    text
}

fn latency(from: &str, times: &Percentiles) -> [Cell; 6] {
    [
        from.to_owned(),
        millis(times.p50),
        millis(times.p90),
        millis(times.p99),
        millis(times.max),
        times.samples.to_string(),
    ]
    .map(Cell::from)
}

fn millis(time: Duration) -> String {
    format!("{:.1}ms", time.as_secs_f64() * 1000.0)
}
