//! `pleg replay --random`: stories from seeds, judged by the laws; one that fails is printed as the
//! smallest scenario that still does.

use std::io::{self, Write as _};
use std::ops::Range;

use anyhow::{Context, bail};
use serde_json::json;

use crate::cli::args::ReplayFormat;
use crate::cli::output::text;
use crate::scenario::Time;
use crate::scenario::random::{Simulated, simulate};

pub(super) fn run(seeds: Range<u64>, format: ReplayFormat) -> anyhow::Result<()> {
    let mut failed = 0_u64;
    let mut total = 0_u64;
    for seed in seeds {
        total += 1;
        let simulated = simulate(seed).context("cannot make an event loop")?;
        failed += u64::from(matches!(simulated, Simulated::Failed(_)));
        let told = match format {
            ReplayFormat::Table => in_words(seed, &simulated),
            ReplayFormat::Json => in_json(seed, &simulated),
        };
        match io::stdout().write_all(told.as_bytes()) {
            // Whoever reads may have seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.context("cannot write to standard output")?,
        }
    }
    if failed > 0 {
        bail!("{failed} of {total} random stories failed; each is printed above as a scenario");
    }
    Ok(())
}

fn in_words(seed: u64, simulated: &Simulated) -> String {
    match simulated {
        Simulated::Lawful(played) => format!(
            "passed seed {seed}: {} events in {}\n",
            played.delivered,
            Time(played.lasted)
        ),
        Simulated::Failed(finding) => format!(
            "FAILED seed {seed}: {}\n{}\n",
            text::message(&finding.why),
            finding.scenario.to_yaml()
        ),
    }
}

fn in_json(seed: u64, simulated: &Simulated) -> String {
    let line = match simulated {
        Simulated::Lawful(played) => json!({
            "seed": seed,
            "passed": true,
            "delivered": played.delivered,
            "seconds": played.lasted.as_secs_f64(),
        }),
        Simulated::Failed(finding) => json!({
            "seed": seed,
            "passed": false,
            "why": finding.why,
            "scenario": finding.scenario.to_yaml(),
        }),
    };
    format!("{line}\n")
}
