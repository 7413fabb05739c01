//! What this process costs, under the names that every Prometheus client uses.
//!
//! Read from `/proc` at each scrape. What cannot be read is left out, never guessed.

use std::fmt;
use std::fs;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::families::{BYTES, Families, SECONDS};

/// What `/proc` counts CPU time and start times in: `USER_HZ`, which is 100 on every architecture that
/// Kubernetes runs on.
const TICKS_A_SECOND: f64 = 100.0;

/// The figures of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Process {
    /// User and system time together, in seconds.
    cpu: Option<f64>,
    resident_bytes: Option<f64>,
    virtual_bytes: Option<f64>,
    open_fds: Option<f64>,
    max_fds: Option<f64>,
    threads: Option<f64>,
    /// In seconds since 1970.
    started: Option<f64>,
}

impl Process {
    /// Reads the figures of this process.
    pub(super) fn read(wall: Duration) -> Self {
        let read = |file: &str| fs::read_to_string(format!("/proc/{file}")).unwrap_or_default();
        let mut process = Self::parse(
            &read("self/stat"),
            &read("self/status"),
            &read("self/limits"),
        );
        process.open_fds = fs::read_dir("/proc/self/fd")
            .ok()
            // One of them is that of the reading itself.
            .and_then(|entries| u32::try_from(entries.count().saturating_sub(1)).ok())
            .map(f64::from);
        // The stat file counts from the boot.
        process.started = process
            .started
            .zip(number(read("uptime").split_whitespace().next()))
            .map(|(started, uptime)| wall.as_secs_f64() - uptime + started);
        process
    }

    fn parse(stat: &str, status: &str, limits: &str) -> Self {
        // The name in brackets may hold anything, so the fields are counted after the last bracket;
        // the first of them is the third of proc(5).
        let fields: Vec<_> = stat
            .rsplit_once(')')
            .map(|(_, fields)| fields.split_whitespace().collect())
            .unwrap_or_default();
        let ticks = |field: usize| number(fields.get(field - 3).copied());
        let (user, system) = (ticks(14), ticks(15));
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            number(line.and_then(|line| line.split_whitespace().next()))
        };
        let files = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"));
        Self {
            cpu: user
                .zip(system)
                .map(|(user, system)| (user + system) / TICKS_A_SECOND),
            resident_bytes: line("VmRSS:").map(|kib| kib * 1024.0),
            virtual_bytes: line("VmSize:").map(|kib| kib * 1024.0),
            open_fds: None,
            max_fds: number(files.and_then(|line| line.split_whitespace().next())),
            threads: line("Threads:"),
            started: ticks(22).map(|ticks| ticks / TICKS_A_SECOND),
        }
    }
}

fn number(text: Option<&str>) -> Option<f64> {
    text.and_then(|text| text.parse().ok())
}

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families(encoder);
        if let Some(cpu) = self.cpu {
            let help = "User and system CPU time spent.";
            families.measured_counter(("process_cpu", SECONDS, help), cpu)?;
        }
        let gauges = [
            (
                "process_resident_memory",
                BYTES,
                "Resident memory.",
                self.resident_bytes,
            ),
            (
                "process_virtual_memory",
                BYTES,
                "Virtual memory.",
                self.virtual_bytes,
            ),
            (
                "process_start_time",
                SECONDS,
                "When the process started, since 1970.",
                self.started,
            ),
            (
                "process_open_fds",
                None,
                "Open file descriptors.",
                self.open_fds,
            ),
            (
                "process_max_fds",
                None,
                "File descriptors that may be open at most.",
                self.max_fds,
            ),
            ("process_threads", None, "Threads.", self.threads),
        ];
        for (name, unit, help, value) in gauges {
            if value.is_some() {
                families.measured((name, unit, help), value)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) (b) S 1 7 7 0 -1 4194560 900 0 3 0 150 50 0 0 20 0 5 0 12345 1 2 3";

    #[test]
    fn the_figures_are_read_past_a_name_that_looks_like_fields() {
        let process = Process::parse(
            STAT,
            "Name:\ta) (b\nVmSize:\t  2048 kB\nVmRSS:\t    1024 kB\nThreads:\t5\n",
            "Limit  Soft Limit  Hard Limit  Units\nMax open files   20000   unlimited   files\n",
        );
        let expected = Process {
            cpu: Some(2.0),
            resident_bytes: Some(1_048_576.0),
            virtual_bytes: Some(2_097_152.0),
            open_fds: None,
            max_fds: Some(20_000.0),
            threads: Some(5.0),
            started: Some(123.45),
        };
        assert_eq!(process, expected);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert_eq!(
            Process::parse("", "VmRSS:", "Max open files unlimited"),
            Process::default()
        );
        assert_eq!(Process::parse("7 (a) S 1", "", ""), Process::default());
    }

    #[test]
    fn this_process_has_all_of_them() {
        let wall = Duration::from_secs(2_000_000_000);
        let process = Process::read(wall);
        assert!(process.resident_bytes.is_some_and(|bytes| bytes > 1e5));
        assert!(process.open_fds.is_some_and(|fds| fds >= 3.0));
        assert!(process.cpu.is_some() && process.max_fds.is_some() && process.threads.is_some());
        assert!(process.started.is_some_and(|at| at < 2e9 && at > 1.9e9));
    }
}
