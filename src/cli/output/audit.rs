//! The report of `pleg verify`: what was found first, then what was counted.

use std::fmt::Write;
use std::time::Duration;

use super::table::aligned;
use super::text::{NOTHING, shown};
use crate::lifecycle::{EventKind, SubjectKind};
use crate::verify::{EventRow, FindingKind, Percentiles, Report, Verdict};

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
pub(crate) fn table(report: &Report) -> String {
    let mut text = String::new();
    let verdict = match report.verdict {
        Verdict::Passed => "PASSED: what lists and events prove was told",
        Verdict::Lost => "LOST: something was never told that this runtime usually tells",
        Verdict::CannotTell => "CANNOT TELL",
    };
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
        let _ = writeln!(
            text,
            "  {}: {}",
            name(finding.kind),
            super::text::message(&finding.advice).replace('\n', " ")
        );
    }
    if !report.events.is_empty() {
        text.push('\n');
        text.push_str(&counts(&report.events));
    }
    let latencies = &report.latency_ms;
    let rows: Vec<[String; 6]> = [
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
        text.push_str(&aligned(header, &rows));
    }
    text
}

fn counts(rows: &[EventRow]) -> String {
    let cell = |count: u64| match count {
        0 => NOTHING.to_owned(),
        _ => count.to_string(),
    };
    let rows: Vec<[String; 12]> = rows
        .iter()
        .map(|row| {
            let tally = &row.tally;
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
            [
                subject.to_owned(),
                event.to_owned(),
                tally.delivered.to_string(),
                tally.proven.to_string(),
                cell(tally.missing),
                cell(tally.not_sent),
                cell(tally.late),
                cell(tally.repeated),
                cell(tally.out_of_order),
                cell(tally.contradictory),
                cell(tally.without_snapshot),
                cell(tally.absurd_stamp),
            ]
        })
        .collect();
    aligned(
        [
            "SUBJECT",
            "EVENT",
            "DELIVERED",
            "PROVEN",
            "MISSING",
            "KNOWN-GAP",
            "LATE",
            "REPEATED",
            "DISORDER",
            "CONTRADICT",
            "NO-SNAPSHOT",
            "BAD-STAMP",
        ],
        &rows,
    )
}

fn latency(from: &str, times: &Percentiles) -> [String; 6] {
    [
        from.to_owned(),
        millis(times.p50),
        millis(times.p90),
        millis(times.p99),
        millis(times.max),
        times.samples.to_string(),
    ]
}

fn millis(time: Duration) -> String {
    format!("{:.1}ms", time.as_secs_f64() * 1000.0)
}
