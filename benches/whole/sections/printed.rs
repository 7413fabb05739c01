//! What somebody sees who reads the lines of `pleg watch`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use pleg::clock::Clock;

use super::count;
use crate::measured::Extent;
use crate::process::{Owned, cpu_of, resident};
use crate::simulated::{Load, Simulated};
use crate::spread::percentile;
use crate::table::{Section, line};
use crate::task::Figures;

/// The first relist is over, and audits are some seconds apart.
const SETTLED: Duration = Duration::from_secs(8);

pub(super) fn section(extent: Extent) -> Section {
    let mut section = Section::new(
        "`pleg watch -o json` through a pipe, 100 starts and ends a second",
        "1,000 pods × 3, restarts; from the runtime's stamp to the line in another process. The CPU \
        is that of `pleg watch`, flight recorder included.",
    );
    let figures: Vec<Figures> = (0..extent.runs).map(|_| once(extent)).collect();
    for (what, figure, unit) in [
        ("delay p50", "p50", "µs"),
        ("delay p99", "p99", "µs"),
        ("CPU of a line", "cpu each", "µs"),
        ("lines a second", "lines a second", ""),
        ("peak RSS", "peak rss", "MiB"),
    ] {
        section.add(&figures, &line(what, figure, unit));
    }
    section
}

fn once(extent: Extent) -> Figures {
    let simulated = Simulated::start(&Load::quiet(1000, 3).with_churn(100.0));
    let endpoint = format!("unix://{}", simulated.socket().display());
    let process = Command::new(env!("CARGO_BIN_EXE_pleg"))
        .env_clear()
        .args(["watch", "--direct", "-o", "json", "-r", &endpoint])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut watch = Owned(process);
    let mut lines = BufReader::new(watch.0.stdout.take().expect("it is a pipe")).lines();
    let clock = Clock::system();
    let releasing = std::thread::spawn(move || {
        std::thread::sleep(SETTLED);
        simulated.release();
        simulated
    });
    let process = watch.0.id();
    let mut stamp = || {
        let line = lines.next().expect("it goes on").expect("UTF-8");
        let now = clock.now();
        (now, age(&line, now.wall.0))
    };
    // What was there before is printed first.
    let began = loop {
        let (now, age) = stamp();
        if age.is_some() {
            break now.mono;
        }
    };
    let from = began.after(Duration::from_secs(2));
    let until = from.after(extent.churn);
    let mut before = cpu_of(process);
    let (mut printed, mut ages) = (0, Vec::new());
    loop {
        let (now, age) = stamp();
        if now.mono < from {
            before = cpu_of(process);
            continue;
        }
        if now.mono >= until {
            break;
        }
        printed += 1;
        ages.extend(age);
    }
    let spent = cpu_of(process).saturating_sub(before).as_secs_f64();
    drop(releasing.join());
    let figures = [
        ("p50", percentile(&mut ages, 0.5)),
        ("p99", percentile(&mut ages, 0.99)),
        ("cpu each", spent * 1e6 / count(printed)),
        (
            "lines a second",
            count(printed) / extent.churn.as_secs_f64(),
        ),
        ("peak rss", resident(&process.to_string()).1),
    ];
    figures
        .into_iter()
        .map(|(name, figure)| (name.to_owned(), figure))
        .collect()
}

/// How long ago an event of the stream was stamped by the runtime, in µs.
fn age(line: &str, now: i64) -> Option<f64> {
    let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let stamp = event["runtimeStamp"].as_str()?;
    let stamp: jiff::Timestamp = stamp.parse().expect("RFC 3339");
    let nanos = i128::from(now) - stamp.as_nanosecond();
    // Of the order of milliseconds.
    i32::try_from(nanos / 1_000).ok().map(f64::from)
}
