//! Measured processes: this program again, told what to do, and how often and for how long.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::simulated::{Load, Simulated};
use crate::task::{Figures, Task, What};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) runs: usize,
    /// Of steady events.
    pub(crate) churn: Duration,
    /// How far apart audits are before events are let loose, so that none comes among them. It is
    /// known 2 s after the last one.
    pub(crate) audits: Duration,
    /// Of polling.
    pub(crate) polling: Duration,
    /// Of idle following.
    pub(crate) idle: Duration,
    /// How far apart audits are before that.
    pub(crate) idle_audits: Duration,
    /// Relists, for the smallest node; fewer for larger ones.
    pub(crate) relists: u32,
    /// Reads with a mark.
    pub(crate) reads: u32,
}

impl Extent {
    pub(crate) const FULL: Self = Self {
        runs: 3,
        churn: Duration::from_secs(10),
        audits: Duration::from_secs(16),
        polling: Duration::from_secs(20),
        idle: Duration::from_secs(60),
        idle_audits: Duration::from_secs(64),
        relists: 60,
        reads: 300,
    };

    pub(crate) const QUICK: Self = Self {
        runs: 1,
        churn: Duration::from_secs(3),
        audits: Duration::from_secs(8),
        polling: Duration::from_secs(10),
        idle: Duration::from_secs(10),
        idle_audits: Duration::from_secs(16),
        relists: 20,
        reads: 100,
    };

    /// Relists of a node with so many pods.
    pub(crate) fn relists_of(self, pods: usize) -> u32 {
        let size = u32::try_from(pods / 300).unwrap_or(u32::MAX);
        (self.relists / size.max(1)).max(5)
    }
}

/// Follows a new runtime for a while; `None` if that did not end well.
pub(crate) fn once(load: &Load, what: &What) -> Option<Figures> {
    let mut simulated = Simulated::start(load);
    let task = Task {
        socket: simulated.socket(),
        pods: load.pods,
        containers: load.containers,
        what: what.clone(),
    };
    let own = std::env::current_exe().expect("this program has a name");
    let task = serde_json::to_string(&task).expect("a task can be written");
    let mut process = Command::new(own)
        .args(["--as", &task])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts again");
    let mut figures = None;
    let lines = BufReader::new(process.stdout.take().expect("it is a pipe")).lines();
    for line in lines.map_while(Result::ok) {
        if line == "ready" {
            simulated.release();
        } else {
            figures = serde_json::from_str::<Figures>(&line).ok();
        }
    }
    // What it says on stderr is there already.
    let _ = process.wait();
    let account = simulated.account();
    let mut figures = figures?;
    let runtime_cpu = account["cpuSeconds"].as_f64().unwrap_or(f64::NAN);
    figures.insert("runtime cpu".to_owned(), runtime_cpu);
    Some(figures)
}

/// So often, one after another.
pub(crate) fn runs(extent: Extent, load: &Load, what: &What) -> Vec<Figures> {
    let each = (0..extent.runs).filter_map(|_| once(load, what));
    each.collect()
}

/// So often for each load, all at the same time: for what hardly uses a processor.
pub(crate) fn side_by_side(extent: Extent, loads: &[Load], what: &What) -> Vec<Vec<Figures>> {
    std::thread::scope(|scope| {
        let running: Vec<Vec<_>> = loads
            .iter()
            .map(|load| {
                let each = (0..extent.runs).map(|_| scope.spawn(move || once(load, what)));
                each.collect()
            })
            .collect();
        let ended = running.into_iter().map(|runs| {
            let figures = runs.into_iter().filter_map(|run| run.join().ok().flatten());
            figures.collect()
        });
        ended.collect()
    })
}
