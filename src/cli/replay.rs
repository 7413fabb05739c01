//! `pleg replay`: scenarios, played in virtual time; one line each, and what was not as expected.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use serde_json::json;

use super::Variable;
use super::args::WatchFormat;
use super::config::ReplayConfig;
use super::output::style::{Colour, Tone};
use super::output::text;
use crate::lifecycle::Mono;
use crate::scenario::{Failure, Played, Scenario, play, scenario_files};

/// How many scenarios are played at one time: they are short, and a laptop has other things to do.
const THREADS: usize = 2;

/// How many entries of the trace are shown around a failure.
const AROUND: usize = 8;

/// What became of one file.
struct Outcome {
    path: PathBuf,
    name: String,
    played: anyhow::Result<Played>,
}

/// Plays everything at the paths.
pub(crate) fn run(config: &ReplayConfig, variable: Variable<'_>) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for path in &config.paths {
        let found = scenario_files(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if found.is_empty() {
            bail!("there are no scenarios (*.yaml) in {}", path.display());
        }
        files.extend(found);
    }
    let colour = Colour::suiting(&io::stdout(), variable);
    let mut bad = 0_usize;
    let total = files.len();
    play_all(&files, |outcome| {
        let failed = outcome.played.as_ref().map_or(true, |played| !played.passed());
        bad += usize::from(failed);
        let told = match config.format {
            WatchFormat::Table => in_words(&outcome, colour, config.trace),
            WatchFormat::Json => in_json(&outcome, config.trace)?,
        };
        match io::stdout().write_all(told.as_bytes()) {
            // Whoever reads may have seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.context("cannot write to standard output"),
        }
    })?;
    if bad > 0 {
        bail!("{bad} of {total} scenarios failed");
    }
    if config.format == WatchFormat::Table && total > 1 {
        // As above: nobody may be there to read it.
        let _ = writeln!(io::stdout(), "{total} scenarios passed");
    }
    Ok(())
}

/// Plays on a few threads; tells in the order of the files, each as soon as those before it are told.
fn play_all(
    files: &[PathBuf],
    mut tell: impl FnMut(Outcome) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = std::sync::mpsc::channel();
    let sender = Mutex::new(sender);
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(files.len()) {
            let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let next = &next;
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = files.get(at) else { return };
                    // It fails if nobody wants results any more.
                    if sender.send((at, outcome(path))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut told = 0;
        for (at, outcome) in receiver {
            waiting.insert(at, outcome);
            while let Some(outcome) = waiting.remove(&told) {
                told += 1;
                tell(outcome)?;
            }
        }
        Ok(())
    })
}

fn outcome(path: &Path) -> Outcome {
    let (name, played) = match Scenario::load(path) {
        Ok(scenario) => {
            let played = play(&scenario).context("cannot make an event loop");
            (scenario.name, played)
        }
        Err(error) => (String::new(), Err(error.into())),
    };
    Outcome {
        path: path.to_owned(),
        name,
        played,
    }
}

fn in_words(outcome: &Outcome, colour: Colour, trace: bool) -> String {
    let path = text::message(&outcome.path.display().to_string());
    let mut words = String::new();
    // Writing to a String never fails.
    match &outcome.played {
        Err(error) => {
            let _ = writeln!(words, "{} {path}", colour.paint(Tone::Bad, "error "));
            let _ = writeln!(words, "  {}", text::message(&format!("{error:#}")));
        }
        Ok(played) => {
            let verdict = if played.passed() {
                colour.paint(Tone::Good, "passed")
            } else {
                colour.paint(Tone::Bad, "FAILED")
            };
            let _ = writeln!(
                words,
                "{verdict} {path}: {} checks, {} events in {}",
                played.checks,
                played.delivered,
                crate::scenario::Time(played.lasted)
            );
            for failure in &played.failures {
                explain(&mut words, &outcome.path, failure, played, colour);
            }
            if trace {
                words.push_str(&played.trace.text(&played.names));
            }
        }
    }
    words
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
        crate::scenario::Time(failure.at),
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

fn in_json(outcome: &Outcome, trace: bool) -> anyhow::Result<String> {
    let mut result = json!({ "file": outcome.path.display().to_string() });
    match &outcome.played {
        Err(error) => {
            result["result"] = json!("error");
            result["error"] = json!(format!("{error:#}"));
        }
        Ok(played) => {
            let verdict = if played.passed() { "passed" } else { "failed" };
            result["result"] = json!(verdict);
            result["name"] = json!(outcome.name);
            result["checks"] = json!(played.checks);
            result["events"] = json!(played.delivered);
            result["lastedSeconds"] = json!(played.lasted.as_secs_f64());
            result["failures"] = serde_json::to_value(&played.failures)?;
            if trace {
                result["trace"] = serde_json::to_value(&played.trace)?;
            }
        }
    }
    Ok(format!("{result}\n"))
}
