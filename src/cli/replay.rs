//! `pleg replay`: scenarios and recordings, played in virtual time; one line each, and what was not
//! as expected.

mod random;
mod reported;
mod told;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};

use self::reported::ReportFile;
use super::Variable;
use super::args::ReplayFormat;
use super::config::ReplayConfig;
use super::output::style::Colour;
use crate::scenario::recording::{Deliveries, Difference, PlayedRecording, play_file};
use crate::scenario::{Played, Scenario, play, scenario_files};

/// How many scenarios are played at one time: they are short, and a laptop has other things to do.
const THREADS: usize = 2;

/// What became of one file.
struct Outcome {
    path: PathBuf,
    result: anyhow::Result<Replayed>,
}

/// What was played.
enum Replayed {
    Scenario {
        name: String,
        played: Played,
    },
    Recording {
        played: Box<PlayedRecording>,
        /// How it differs from what was to come of it, if that was said.
        differences: Vec<Difference>,
    },
}

impl Outcome {
    fn is_good(&self) -> bool {
        match &self.result {
            Ok(Replayed::Scenario { played, .. }) => played.passed(),
            Ok(Replayed::Recording { differences, .. }) => differences.is_empty(),
            Err(_) => false,
        }
    }
}

/// Plays everything at the paths.
pub(crate) fn run(config: &ReplayConfig, variable: Variable<'_>) -> anyhow::Result<()> {
    if let Some(seeds) = config.random.clone() {
        return random::run(seeds, config.format);
    }
    let mut files = Vec::new();
    for path in &config.paths {
        let found =
            scenario_files(path).with_context(|| format!("cannot read {}", path.display()))?;
        if found.is_empty() {
            bail!(
                "there are no scenarios (*.yaml) and no recordings (*.jsonl, *.jsonl.zst) in {}",
                path.display()
            );
        }
        files.extend(found);
    }
    let expected = config
        .expect_same_as
        .as_deref()
        .map(read_expected)
        .transpose()?;
    let colour = Colour::suiting(&io::stdout(), variable);
    let mut bad = 0_usize;
    let total = files.len();
    let mut report = config
        .report
        .as_deref()
        .map(ReportFile::create)
        .transpose()?;
    let keep_trace = config.trace || report.is_some();
    let play_one = |path: &Path| outcome(path, keep_trace, expected.as_ref());
    play_all(&files, &play_one, |outcome| {
        bad += usize::from(!outcome.is_good());
        if let Some(report) = &mut report {
            report.add(&outcome);
        }
        let told = match config.format {
            ReplayFormat::Table => told::in_words(&outcome, colour, config.trace),
            ReplayFormat::Json => told::in_json(&outcome, config.trace)?,
        };
        match io::stdout().write_all(told.as_bytes()) {
            // Whoever reads may have seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.context("cannot write to standard output"),
        }
    })?;
    if let Some(report) = report {
        report.finish()?;
    }
    if bad > 0 {
        bail!("{bad} of {total} replays failed");
    }
    if config.format == ReplayFormat::Table && total > 1 {
        // As above: nobody may be there to read it.
        let _ = writeln!(io::stdout(), "{total} replays passed");
    }
    Ok(())
}

/// What was delivered in another run.
fn read_expected(path: &Path) -> anyhow::Result<Deliveries> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Deliveries::read(BufReader::new(file)).with_context(|| {
        format!(
            "{} is neither a trace nor what `pleg watch -o json` prints",
            path.display()
        )
    })
}

/// Plays on a few threads; tells in the order of the files, each as soon as those before it are told.
fn play_all(
    files: &[PathBuf],
    play_one: &(dyn Fn(&Path) -> Outcome + Sync),
    mut tell: impl FnMut(Outcome) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = std::sync::mpsc::channel();
    let sender = Mutex::new(sender);
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(files.len()) {
            let sender = sender
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let next = &next;
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = files.get(at) else { return };
                    // It fails if nobody wants results any more.
                    if sender.send((at, play_one(path))).is_err() {
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

fn outcome(path: &Path, keep_trace: bool, expected: Option<&Deliveries>) -> Outcome {
    let is_scenario = path
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml");
    let result = if is_scenario {
        scenario(path)
    } else {
        recording(path, keep_trace, expected)
    };
    Outcome {
        path: path.to_owned(),
        result,
    }
}

fn scenario(path: &Path) -> anyhow::Result<Replayed> {
    let scenario = Scenario::load(path)?;
    let played = play(&scenario).context("cannot make an event loop")?;
    Ok(Replayed::Scenario {
        name: scenario.name,
        played,
    })
}

fn recording(
    path: &Path,
    keep_trace: bool,
    expected: Option<&Deliveries>,
) -> anyhow::Result<Replayed> {
    let name = path.to_string_lossy();
    let named_so = [".jsonl", ".zst"].iter().any(|end| name.ends_with(end));
    let played = match play_file(path, keep_trace) {
        // Only if it is there: its name is no reason that it is not.
        Err(error) if !named_so && path.exists() => Err(error).context(
            "taken for a recording, since a scenario's name ends in .yaml (pleg record makes one)",
        )?,
        played => played?,
    };
    let differences = expected
        .map(|expected| expected.differences(&played.deliveries))
        .unwrap_or_default();
    Ok(Replayed::Recording {
        played: Box::new(played),
        differences,
    })
}
