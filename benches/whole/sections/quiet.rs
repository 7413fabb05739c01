//! A node on which nothing happens.

use super::node;
use crate::measured::{Extent, runs, side_by_side};
use crate::simulated::Load;
use crate::table::{Section, line};
use crate::task::What;

pub(super) fn polling(extent: Extent) -> Section {
    let window = extent.polling;
    let mut section = Section::new(
        "Idle, polling every second",
        &format!(
            "Events off. CPU and calls of {} s, scaled to a minute.",
            window.as_secs()
        ),
    );
    for (pods, reference, memory, goal) in [
        (110, "0.67 s", "75 MB", None),
        (500, "2.6 s", "95 MB", None),
        (1000, "4.8 s", "122 MB", Some(0.5)),
        (1667, "7.0 s", "148 MB", None),
    ] {
        let figures = runs(extent, &Load::quiet(pods, 3), &What::Polling { window });
        let cpu = line(
            format!("{}: CPU a minute", node(pods, 3)),
            "cpu a minute",
            "s",
        )
        .reference(reference);
        section.add(
            &figures,
            &match goal {
                Some(goal) => cpu.at_most(goal),
                None => cpu,
            },
        );
        section.add(&figures, &line("list calls a minute", "rpcs a minute", ""));
        section.add(
            &figures,
            &line("peak RSS", "peak rss", "MiB").reference(memory),
        );
    }
    section
}

pub(super) fn following(extent: Extent) -> Section {
    let (audits, window) = (extent.idle_audits, extent.idle);
    let mut section = Section::new(
        "Idle, following a trusted stream; memory at rest",
        &format!(
            "After 20 starts and ends the stream is left alone until audits are {} s apart; then {} s \
            are measured, heartbeats included, and a fifth of an audit is added for each minute (one \
            audit in 300 s). One subscriber. All runs side by side.",
            audits.as_secs(),
            window.as_secs()
        ),
    );
    let loads = [
        (Load::quiet(110, 3), 0.01, "0.008 s", None),
        (Load::quiet(1000, 3), 0.01, "0.022 s", Some((15.0, 25.0))),
        (Load::quiet(1000, 10), 0.05, "", Some((40.0, 60.0))),
    ];
    let quiet: Vec<Load> = loads
        .iter()
        .map(|(load, ..)| load.clone().with_burst(20))
        .collect();
    let figures = side_by_side(extent, &quiet, &What::Idle { audits, window });
    for ((load, cpu, reference, memory), figures) in loads.into_iter().zip(&figures) {
        let what = node(load.pods, load.containers);
        section.add(
            figures,
            &line(format!("{what}: CPU a minute"), "cpu with audits", "s")
                .reference(reference)
                .at_most(cpu),
        );
        section.add(figures, &line("without audits", "cpu a minute", "s"));
        section.add(figures, &line("relists in the window", "relists", ""));
        let (mut now, mut most) = (
            line("RSS", "rss", "MiB"),
            line("peak RSS", "peak rss", "MiB"),
        );
        if let Some((steady, peak)) = memory {
            (now, most) = (now.at_most(steady), most.at_most(peak));
        }
        section.add(figures, &now);
        section.add(figures, &most);
        section.add(figures, &line("of it allocated", "heap", "MiB"));
    }
    section
}

pub(super) fn newer(extent: Extent) -> Section {
    let mut section = Section::new(
        "`get_newer_than` of one pod, idle, 1,000 pods × 3",
        "A mark and a read that is newer, one pod after another. Beside it: one `Version` call. The \
        reference's is a relist of one pod on demand.",
    );
    let what = What::Newer {
        times: extent.reads,
    };
    let figures = runs(extent, &Load::quiet(1000, 3), &what);
    for (name, about, reference, wait, calls) in [
        ("details", "with details", "4,800 µs", 2000.0, 6.0),
        ("phases", "phases alone", "", 1000.0, 2.0),
    ] {
        section.add(
            &figures,
            &line(format!("{about}: p50"), format!("{name} p50"), "µs")
                .limit("one call", "one call")
                .reference(reference)
                .at_most(wait),
        );
        section.add(&figures, &line("p99", format!("{name} p99"), "µs"));
        section.add(
            &figures,
            &line("calls", format!("{name} rpcs"), "").at_most(calls),
        );
        section.add(&figures, &line("CPU", format!("{name} cpu"), "µs"));
        section.add(
            &figures,
            &line("allocations", format!("{name} allocations"), ""),
        );
    }
    section
}
