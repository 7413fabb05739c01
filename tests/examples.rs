//! The examples are real programs: each runs against the simulated runtime and does what it says.
#![cfg(feature = "simulate")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// An example that runs. It ends with the test.
struct Running(Child);

impl Running {
    fn begin(name: &str, arguments: &[&str]) -> Self {
        // Cargo builds examples beside the tests' own folder.
        let mut path = std::env::current_exe().unwrap();
        path.pop();
        path.pop();
        path.extend(["examples", name]);
        let child = Command::new(&path)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(child)
    }

    /// What it prints, line by line, until it ends.
    fn lines(&mut self) -> impl Iterator<Item = String> {
        let stdout = self.0.stdout.take().unwrap();
        BufReader::new(stdout).lines().map_while(Result::ok)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn alert_on_oom_prints_a_line_for_each_container_that_was_killed_for_memory() {
    let mut running = Running::begin("alert_on_oom", &[]);
    let alerts: Vec<String> = running.lines().take(3).collect();
    assert_eq!(alerts.len(), 3);
    for alert in alerts {
        let (who, how) = alert.split_once(": ").unwrap();
        assert_eq!(how, "exit code 137, OOMKilled");
        assert!(who.contains('/') && who.contains(' '), "{who}");
    }
}

#[cfg(feature = "daemon")]
#[test]
fn shared_feed_tells_the_one_that_stalled_to_list_again_and_both_end_with_the_truth() {
    let mut running = Running::begin("shared_feed", &[]);
    let told: Vec<String> = running.lines().collect();
    let all = told.join("\n");
    let place = |words: &str| {
        let found = told.iter().position(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("nothing says {words:?}:\n{all}"))
    };
    let stalls = place("slow: stalls");
    let again = place("slow: told to list again: the watcher has fallen behind");
    let agree = place("brisk and slow agree with the daemon: ");
    assert!(stalls < again && again < agree, "{all}");
    let listed = |line: &String| line.starts_with("slow: listed, ");
    assert!(told[again..agree].iter().any(listed), "{all}");
    assert!(running.0.wait().unwrap().success());
}

#[test]
fn sync_loop_restarts_with_back_off_removes_the_dead_and_ignores_strangers() {
    let mut running = Running::begin("sync_loop", &[]);
    let mut awaited = vec![
        "kube-system/stranger: nobody asked for it, ignored",
        "restarted, it ended with 137",
        "rests for 200ms before its restart",
        "attempt 0 removed",
    ];
    let mut told = Vec::new();
    let mut lines = running.lines().take(2_000);
    while !awaited.is_empty()
        && let Some(line) = lines.next()
    {
        awaited.retain(|words| !line.contains(words));
        told.push(line);
    }
    let told = told.join("\n");
    assert!(awaited.is_empty(), "nothing says {awaited:?}:\n{told}");
    assert!(!told.contains("gave up"), "{told}");
}

#[test]
fn sync_loop_ends_when_its_time_is_over_and_no_worker_gives_up() {
    let mut running = Running::begin("sync_loop", &["1"]);
    let told: Vec<String> = running.lines().collect();
    assert!(!told.is_empty());
    assert!(
        !told.iter().any(|line| line.contains("gave up")),
        "{told:?}"
    );
    assert!(running.0.wait().unwrap().success());
}
