//! Chaos on real containerd 1.6, 1.7 and 2.1: pods come and go at a high rate while the runtime, its shims,
//! its containers and `pleg` itself are killed and stopped. At the end nothing may be lost or told twice.
//!
//! Needs root on amd64 Debian, like the suite of `tests/real`, whose test bed and driver it uses. One
//! command; the three runtimes run side by side:
//!
//! ```text
//! PLEG_CHAOS_SECS=60 cargo test --test chaos -- --nocapture
//! ```
//!
//! `PLEG_CHAOS_SEED` repeats a plan of pods and faults; `PLEG_CHAOS_RUNTIMES=1.7,2.1` leaves some out.
//! What a failed run leaves to look at lies in `target/tmp/chaos-*`; `PLEG_CHAOS_KEEP=1` keeps it of any
//! run. The recording there plays with `pleg replay`.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::testbed::Version;

mod chance;
mod companion;
mod faults;
mod judge;
mod record;
mod run;
mod shown;
mod vitals;
mod watcher;
mod workload;

#[expect(dead_code, reason = "the suite of tests/real uses the rest")]
#[path = "../real/driver.rs"]
mod driver;
#[expect(dead_code, reason = "the suite of tests/real uses the rest")]
#[path = "../real/runtime_lists.rs"]
mod runtime_lists;
#[expect(dead_code, reason = "the suite of tests/real uses the rest")]
#[path = "../real/testbed.rs"]
mod testbed;
#[path = "../real/wire.rs"]
mod wire;

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn nothing_is_lost_and_nothing_told_twice() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let lasts = Duration::from_secs(number("PLEG_CHAOS_SECS").unwrap_or(60));
    let seed: u64 =
        number("PLEG_CHAOS_SEED").unwrap_or_else(|| driver::wall_clock().0.cast_unsigned());
    let wanted = std::env::var("PLEG_CHAOS_RUNTIMES").unwrap_or_else(|_| "1.6,1.7,2.1".to_owned());
    let mut chance = Chance::new(seed);
    let mut runs = JoinSet::new();
    for version in [
        Version::Containerd16,
        Version::Containerd17,
        Version::Containerd21,
    ] {
        let chance = chance.fork();
        if wanted.split(',').any(|label| label == version.label()) {
            runs.spawn(run::run(version, chance, seed, lasts));
        }
    }
    assert!(!runs.is_empty(), "no such runtime: {wanted}");
    println!(
        "chaos: seed {seed}, {} s on each of {wanted}",
        lasts.as_secs()
    );
    let mut wrong = Vec::new();
    while let Some(ended) = runs.join_next().await {
        match ended {
            Ok(report) => {
                println!("{}", report.text);
                wrong.extend(report.wrong);
            }
            Err(panic) => wrong.push(format!("a run broke off: {panic}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "seed {seed}: {} wrong: {wrong:#?}",
        wrong.len()
    );
}
