//! What a process has cost: processor time and memory, of this one and of children.

use std::process::Child;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> Duration {
    let used = clock_gettime(clock);
    // Neither is ever negative.
    Duration::new(
        u64::try_from(used.tv_sec).unwrap_or(0),
        u32::try_from(used.tv_nsec).unwrap_or(0),
    )
}

/// User and system time of all threads of this process.
pub(crate) fn cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// User and system time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Physical memory in MiB: now, and the most since the process began or the peak was forgotten.
pub(crate) fn resident(process: &str) -> (f64, f64) {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_end_matches("kB").trim().parse::<f64>().ok()
    };
    let mebibytes = |name: &str| field(name).map_or(f64::NAN, |kib| kib / 1024.0);
    (mebibytes("VmRSS:"), mebibytes("VmHWM:"))
}

/// User and system time of another process, in hundredths of a second as `/proc` has it.
pub(crate) fn cpu_of(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may hold anything; user and system time are the 14th and 15th field.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// A child that ends when this is dropped.
pub(crate) struct Owned(pub(crate) Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // It fails if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
