//! What `pleg` costs as a whole: processor time, allocations, calls, memory and delays of a process
//! with the library in it, on a runtime in a process of its own (`pleg simulate`), over a unix socket.
//!
//! `cargo bench --bench whole` prints the whole table as Markdown, in about half an hour;
//! `cargo bench --bench whole -- relist idle` prints these sections of it, `--list` their names,
//! `--quick` takes one run of each and short ones, `--runs N` sets how many (3 by default). A figure is
//! `median [least..most]` of the runs; each run has a new runtime and a new client. It asserts nothing
//! about time: it prints which goals were missed.
//!
//! The reference is the kubelet's own code (1.36.2), measured on a machine of two cores with an
//! in-memory CRI server; its figures are medians of three.

mod follower;
mod limits;
mod measured;
mod memory;
mod process;
mod sections;
mod simulated;
mod spread;
mod table;
mod task;

use std::process::ExitCode;

use measured::Extent;

fn main() -> ExitCode {
    let mut names = Vec::new();
    let mut extent = Extent::FULL;
    // Cargo adds `--bench`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        match word.as_str() {
            "--as" => {
                let task = words.next().unwrap_or_default();
                follower::run(&serde_json::from_str(&task).expect("a task"));
                return ExitCode::SUCCESS;
            }
            "--quick" => extent = Extent::QUICK,
            "--runs" => {
                let Some(runs) = words.next().and_then(|number| number.parse().ok()) else {
                    eprintln!("--runs needs a number");
                    return ExitCode::from(2);
                };
                extent.runs = runs;
            }
            "--list" => {
                for section in sections::ALL {
                    println!("{:12} {}", section.name, section.about);
                }
                return ExitCode::SUCCESS;
            }
            name => names.push(name.to_owned()),
        }
    }
    let unknown = names
        .iter()
        .find(|name| sections::ALL.iter().all(|section| section.name != *name));
    if let Some(name) = unknown {
        eprintln!("there is no section {name}; --list has them all");
        return ExitCode::from(2);
    }
    let mut missed = 0;
    for section in sections::ALL {
        if names.is_empty() || names.iter().any(|name| section.name == name) {
            missed += (section.measure)(extent).print();
        }
    }
    println!("{missed} goals missed.");
    ExitCode::SUCCESS
}
