//! The sections of the table: what is measured for each, and what stands beside it.

mod daemon;
mod events;
mod printed;
mod program;
mod quiet;
mod relists;

use crate::measured::Extent;
use crate::table::Section;

/// A section that can be asked for.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) measure: fn(Extent) -> Section,
}

/// All of them, in the order of the table.
pub(crate) const ALL: &[Named] = &[
    Named {
        name: "relist",
        about: "one unchanged full relist",
        measure: relists::unchanged,
    },
    Named {
        name: "large",
        about: "the same with 10,000 containers, unary and streamed",
        measure: relists::large,
    },
    Named {
        name: "first",
        about: "the first relist, with its inspections",
        measure: relists::first,
    },
    Named {
        name: "polling",
        about: "idle, polling every second",
        measure: quiet::polling,
    },
    Named {
        name: "idle",
        about: "idle, following events; memory at rest",
        measure: quiet::following,
    },
    Named {
        name: "newer",
        about: "get_newer_than on an idle node",
        measure: quiet::newer,
    },
    Named {
        name: "events",
        about: "100 starts and ends a second: delay, cost of an event",
        measure: events::steady,
    },
    Named {
        name: "burst",
        about: "10,000 starts and ends at once",
        measure: events::burst,
    },
    Named {
        name: "subscribers",
        about: "100 subscribers in the process, 1,000 events a second",
        measure: events::subscribers,
    },
    Named {
        name: "watchers",
        about: "10 watchers of the daemon over gRPC, 1,000 events a second",
        measure: daemon::watchers,
    },
    Named {
        name: "printed",
        about: "lines of `pleg watch`, read through a pipe",
        measure: printed::section,
    },
    Named {
        name: "program",
        about: "size of the binary, time to the first output of `pods`",
        measure: program::section,
    },
];

/// `1,000 pods × 3`.
fn node(pods: usize, containers: usize) -> String {
    format!("{} pods × {containers}", crate::spread::brief(count(pods)))
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}
