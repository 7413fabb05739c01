//! `replay --report`: what was played, as a page.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{Outcome, Replayed};
use crate::lifecycle::Mono;
use crate::scenario::{Failure, Names, Report, Section, Trace};

/// Of a recording whose trace was not kept.
static NO_TRACE: Trace = Trace {
    entries: Vec::new(),
};

/// The file that the report goes to. It is made before anything is played: who cannot write it should
/// not wait to hear so.
pub(super) struct ReportFile {
    path: PathBuf,
    file: File,
    report: Report,
}

impl ReportFile {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path)
            .with_context(|| format!("cannot write the report to {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            report: Report::default(),
        })
    }

    pub(super) fn add(&mut self, outcome: &Outcome) {
        let title = outcome.path.display().to_string();
        match &outcome.result {
            Err(error) => self.report.add_unplayed(&title, &format!("{error:#}")),
            Ok(Replayed::Scenario { played, .. }) => self.report.add(&Section {
                title: &title,
                is_good: played.passed(),
                remark: &format!("{} checks", played.checks),
                failures: played.failures.iter().map(in_words).collect(),
                trace: &played.trace,
                names: &played.names,
                began: Mono(0),
                ended: Mono(0).after(played.lasted),
            }),
            Ok(Replayed::Recording {
                played,
                differences,
            }) => {
                let replayed = &played.replayed;
                let began = replayed.header.began;
                let remark = format!("{}, began {}", replayed.fidelity, began.wall);
                self.report.add(&Section {
                    title: &title,
                    is_good: differences.is_empty(),
                    remark: &remark,
                    failures: differences
                        .iter()
                        .map(|difference| (None, difference.to_string()))
                        .collect(),
                    trace: played.trace.as_ref().unwrap_or(&NO_TRACE),
                    names: &Names::default(),
                    began: began.mono,
                    ended: began.mono.after(replayed.span),
                });
            }
        }
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        let mut out = BufWriter::new(self.file);
        self.report
            .write(&mut out)
            .and_then(|()| out.flush())
            .with_context(|| format!("cannot write the report to {}", self.path.display()))
    }
}

fn in_words(failure: &Failure) -> (Option<Mono>, String) {
    let what = match &failure.diff {
        Some(diff) => format!("{}, expected (-) and got (+):\n{diff}", failure.what),
        None => format!(
            "{}: expected {}, got {}",
            failure.what, failure.expected, failure.got
        ),
    };
    (Some(Mono(0).after(failure.at)), what)
}
