//! How `replay` tells what became of a file: in words, or as one JSON object.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{Outcome, Replayed};
use crate::cli::output::style::{Colour, Tone};
use crate::cli::output::text;
use crate::lifecycle::Mono;
use crate::scenario::{Failure, Names, Played, Time};

/// How many entries of the trace are shown around a failure.
const AROUND: usize = 8;

pub(super) fn in_words(outcome: &Outcome, colour: Colour, trace: bool) -> String {
    let path = text::message(&outcome.path.display().to_string());
    let mut words = String::new();
    let verdict = if outcome.is_good() {
        colour.paint(Tone::Good, "passed")
    } else {
        colour.paint(Tone::Bad, "FAILED")
    };
    // Writing to a String never fails.
    match &outcome.result {
        Err(error) => {
            let _ = writeln!(words, "{} {path}", colour.paint(Tone::Bad, "error "));
            let _ = writeln!(words, "  {}", text::message(&format!("{error:#}")));
        }
        Ok(Replayed::Scenario { played, .. }) => {
            let _ = writeln!(
                words,
                "{verdict} {path}: {} checks, {} events in {}",
                played.checks,
                played.delivered,
                rounded(played.lasted)
            );
            for failure in &played.failures {
                explain(&mut words, &outcome.path, failure, played, colour);
            }
            if trace {
                words.push_str(&text::message(&played.trace.text(&played.names)));
            }
        }
        Ok(Replayed::Recording {
            played,
            differences,
        }) => {
            let replayed = &played.replayed;
            let cut = if replayed.is_cut_off { ", cut off" } else { "" };
            let _ = writeln!(
                words,
                "{verdict} {path}: {}, {} events in {}{cut}",
                replayed.fidelity,
                replayed.delivered,
                rounded(replayed.span)
            );
            for difference in differences {
                let _ = writeln!(words, "  {}", text::message(&difference.to_string()));
            }
            if let Some(trace) = played.trace.as_ref().filter(|_| trace) {
                words.push_str(&text::message(&trace.text(&Names::default())));
            }
        }
    }
    words
}

/// To the millisecond: nobody reads further.
fn rounded(lasted: Duration) -> Time {
    Time(Duration::from_millis(
        u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX),
    ))
}

fn explain(words: &mut String, path: &Path, failure: &Failure, played: &Played, colour: Colour) {
    // Writing to a String never fails.
    let place = if failure.line > 0 {
        format!("{}:{}:{}", path.display(), failure.line, failure.column)
    } else {
        path.display().to_string()
    };
    let _ = writeln!(
        words,
        "\n  {}: at {}, {}",
        text::message(&place),
        Time(failure.at),
        text::message(&failure.what)
    );
    if let Some(diff) = &failure.diff {
        let _ = writeln!(words, "    expected (-) and got (+):");
        for line in diff.lines() {
            let line = format!("  {}", text::message(line));
            let tone = match line.trim_start().chars().next() {
                Some('-') => Tone::Bad,
                Some('+') => Tone::Good,
                _ => Tone::Faint,
            };
            let _ = writeln!(words, "{}", colour.paint(tone, &line));
        }
    } else {
        let _ = writeln!(words, "    expected: {}", text::message(&failure.expected));
        let _ = writeln!(words, "    got:      {}", text::message(&failure.got));
    }
    let around = around(failure, played);
    if !around.is_empty() {
        let _ = writeln!(words, "    what happened until then:");
        for line in around.lines() {
            let line = format!("      {}", text::message(line));
            let _ = writeln!(words, "{}", colour.paint(Tone::Faint, &line));
        }
    }
}

/// The last entries before the failure that are more than routine.
fn around(failure: &Failure, played: &Played) -> String {
    let until = Mono::default().after(failure.at + std::time::Duration::from_millis(1));
    let entries = &played.trace.entries;
    let end = entries.partition_point(|entry| entry.now.mono <= until);
    let mut shown: Vec<_> = entries
        .iter()
        .take(end)
        .rev()
        .filter(|entry| !entry.is_routine())
        .take(AROUND)
        .collect();
    shown.reverse();
    let mut words = String::new();
    for entry in shown {
        entry.write(&played.names, &mut words);
    }
    words
}

pub(super) fn in_json(outcome: &Outcome, trace: bool) -> anyhow::Result<String> {
    let mut result = json!({ "file": outcome.path.display().to_string() });
    let verdict = if outcome.is_good() {
        "passed"
    } else {
        "failed"
    };
    result["result"] = json!(verdict);
    match &outcome.result {
        Err(error) => {
            result["result"] = json!("error");
            result["error"] = json!(format!("{error:#}"));
        }
        Ok(Replayed::Scenario { name, played }) => {
            result["name"] = json!(name);
            result["checks"] = json!(played.checks);
            result["events"] = json!(played.delivered);
            result["lastedSeconds"] = json!(played.lasted.as_secs_f64());
            result["failures"] = serde_json::to_value(&played.failures)?;
            if trace {
                result["trace"] = serde_json::to_value(&played.trace)?;
            }
        }
        Ok(Replayed::Recording {
            played,
            differences,
        }) => {
            let replayed = &played.replayed;
            result["fidelity"] = json!(replayed.fidelity.to_string());
            result["events"] = json!(replayed.delivered);
            result["lastedSeconds"] = json!(replayed.span.as_secs_f64());
            result["isCutOff"] = json!(replayed.is_cut_off);
            let differences: Vec<_> = differences.iter().map(ToString::to_string).collect();
            result["differences"] = json!(differences);
            if let Some(trace) = played.trace.as_ref().filter(|_| trace) {
                result["trace"] = serde_json::to_value(trace)?;
            }
        }
    }
    Ok(format!("{result}\n"))
}
