//! The binary itself.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use pleg::clock::Clock;

use super::count;
use crate::measured::Extent;
use crate::simulated::{Load, Simulated};
use crate::table::{Section, line};
use crate::task::Figures;

const BINARY: &str = env!("CARGO_BIN_EXE_pleg");

pub(super) fn section(extent: Extent) -> Section {
    let mut section = Section::new(
        "The program",
        "`pleg` with its default features, after `strip`; `pleg pods` from its start to its first \
        byte, on an idle runtime of 110 pods × 3.",
    );
    let simulated = Simulated::start(&Load::quiet(110, 3));
    let figures: Vec<Figures> = (0..extent.runs * 5)
        .map(|_| {
            let figures = [
                ("size", stripped_size()),
                ("start", first_output(&simulated)),
                ("help", first_output_of(&["--help"])),
            ];
            figures
                .into_iter()
                .map(|(name, figure)| (name.to_owned(), figure))
                .collect()
        })
        .collect();
    section.add(&figures, &line("size", "size", "MB").at_most(8.0));
    section.add(
        &figures,
        &line("`pleg pods` to its first output", "start", "ms")
            .limit("`pleg --help`", "help")
            .at_most(50.0),
    );
    section
}

/// In MB; as it was built if there is no `strip`.
fn stripped_size() -> f64 {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let copy = folder.path().join("pleg");
    let strip = Command::new("strip")
        .arg("-o")
        .arg(&copy)
        .arg(BINARY)
        .status();
    let stripped = strip.is_ok_and(|status| status.success());
    let file = if stripped { &copy } else { Path::new(BINARY) };
    let bytes = std::fs::metadata(file).map_or(0, |file| file.len());
    count(usize::try_from(bytes).unwrap_or(usize::MAX)) / 1e6
}

fn first_output(simulated: &Simulated) -> f64 {
    let endpoint = format!("unix://{}", simulated.socket().display());
    first_output_of(&["pods", "--direct", "--runtime-endpoint", &endpoint])
}

/// Milliseconds from the start to the first byte.
fn first_output_of(words: &[&str]) -> f64 {
    let clock = Clock::system();
    let began = clock.now().mono;
    let mut process = Command::new(BINARY)
        .env_clear()
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut output = process.stdout.take().expect("it is a pipe");
    let mut first = [0];
    let came = output.read(&mut first).unwrap_or(0);
    let time = clock.now().mono.since(began).as_secs_f64() * 1e3;
    let _ = std::io::copy(&mut output, &mut std::io::sink());
    let _ = process.wait();
    if came == 0 { f64::NAN } else { time }
}
