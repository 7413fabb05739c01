//! What a simulated runtime was asked, what it told, and what that cost this process.

use std::io::{self, Write};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::args::AccountFormat;
use crate::clock::Clock;
use crate::lifecycle::Mono;
use crate::simulate::SimulatedRuntime;

/// An account that runs.
pub(super) struct Account {
    runtime: SimulatedRuntime,
    clock: Clock,
    /// CPU time of the process before it.
    cpu: Duration,
}

impl Account {
    /// Begins to count. What came before, the making of the pods, does not belong to it.
    pub(super) fn open(runtime: &SimulatedRuntime) -> Self {
        Self {
            runtime: runtime.clone(),
            clock: Clock::system(),
            cpu: cpu_time(),
        }
    }

    /// Prints what it has come to. A reader that is gone is no failure.
    pub(super) fn print(&self, format: AccountFormat) -> io::Result<()> {
        let text = match format {
            AccountFormat::Text => self.text(),
            AccountFormat::Json => self.json(),
        };
        match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    fn text(&self) -> String {
        let rpcs = self.runtime.rpc_counts();
        let events = self.runtime.event_counts();
        let memory = Memory::now();
        let mut lines = vec![
            format!("served  {:.1} s", self.served().as_secs_f64()),
            format!("rpcs    {}", rpcs.total()),
        ];
        let by_method = rpcs.iter();
        lines.extend(by_method.map(|(rpc, calls)| format!("        {rpc:<20}{calls:>9}")));
        lines.push(format!(
            "events  told {}, sent {}, dropped {}, expired {}, swallowed {}",
            events.told, events.sent, events.dropped, events.expired, events.swallowed
        ));
        lines.push(format!("cpu     {:.3} s", self.cpu().as_secs_f64()));
        let (resident, peak) = (mebibytes(memory.resident), mebibytes(memory.peak));
        lines.push(format!("memory  {resident}, at most {peak}\n"));
        lines.join("\n")
    }

    fn json(&self) -> String {
        let rpcs = self.runtime.rpc_counts();
        let events = self.runtime.event_counts();
        let memory = Memory::now();
        let calls: serde_json::Map<_, _> = rpcs
            .iter()
            .map(|(rpc, calls)| (rpc.name().to_owned(), calls.into()))
            .collect();
        let account = json!({
            "servedSeconds": self.served().as_secs_f64(),
            "rpcs": calls,
            "events": {
                "told": events.told,
                "sent": events.sent,
                "dropped": events.dropped,
                "expired": events.expired,
                "swallowed": events.swallowed,
            },
            "cpuSeconds": self.cpu().as_secs_f64(),
            "residentKib": memory.resident,
            "peakResidentKib": memory.peak,
        });
        format!("{account}\n")
    }

    fn served(&self) -> Duration {
        self.clock.now().mono.since(Mono::default())
    }

    fn cpu(&self) -> Duration {
        cpu_time().saturating_sub(self.cpu)
    }
}

/// User and system time of all threads of this process.
fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    // Neither is ever negative.
    Duration::new(
        u64::try_from(used.tv_sec).unwrap_or(0),
        u32::try_from(used.tv_nsec).unwrap_or(0),
    )
}

/// Physical memory of this process in KiB, where the system tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    resident: Option<u64>,
    peak: Option<u64>,
}

impl Memory {
    fn now() -> Self {
        Self::from_proc_status(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    fn from_proc_status(status: &str) -> Self {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_end_matches("kB").trim().parse().ok()
        };
        Self {
            resident: field("VmRSS:"),
            peak: field("VmHWM:"),
        }
    }
}

fn mebibytes(kibibytes: Option<u64>) -> String {
    match kibibytes {
        // A tenth of a mebibyte is 102.4 KiB.
        Some(kib) => format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_where_the_system_tells_it() {
        let status = "Name:\tpleg\nVmHWM:\t   2048 kB\nVmRSS:\t   1536 kB\n";
        let memory = Memory::from_proc_status(status);
        assert_eq!(mebibytes(memory.resident), "1.5 MiB");
        assert_eq!(mebibytes(memory.peak), "2.0 MiB");
        let nothing = Memory::from_proc_status("Name:\tpleg\nVmRSS:\tmuch\n");
        assert_eq!(mebibytes(nothing.resident), "unknown");
    }

    #[test]
    fn an_account_counts_from_when_it_was_opened() {
        let runtime = SimulatedRuntime::builder().build();
        let account = Account::open(&runtime);
        runtime.run_pod("default", "web-0", &["app"]);
        let text = account.text();
        assert!(text.contains("told 4, sent 0, dropped 0"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&account.json()).unwrap();
        assert_eq!(json["events"]["told"], 4);
        assert_eq!(json["rpcs"], json!({}));
        assert!(json["cpuSeconds"].as_f64().unwrap() < 60.0);
    }
}
