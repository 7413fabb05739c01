//! Events: steadily, at once, to many.

use super::node;
use crate::measured::{Extent, runs};
use crate::simulated::Load;
use crate::table::{Line, Section, line};
use crate::task::{Figures, What};

/// Restarts alone, as the reference's load, give three messages for two starts and ends, and now and
/// then a fourth.
pub(super) const FOR_A_THOUSAND_MESSAGES: f64 = 640.0;

/// The costs of following so many pods, and of following another number.
fn independent(few: &[Figures], many: &[Figures], figure: &str) -> Vec<Figures> {
    let pairs = few.iter().zip(many);
    let ratios = pairs.filter_map(|(few, many)| Some(many.get(figure)? / few.get(figure)?));
    let named = ratios.map(|ratio| Figures::from([(figure.to_owned(), ratio)]));
    named.collect()
}

pub(super) fn steady(extent: Extent) -> Section {
    let mut section = Section::new(
        "Following 100 starts and ends a second",
        &format!(
            "{} s of restarts, from the runtime's stamp to a subscriber; relists and calls among them \
            are in the costs. Of all kinds: pods come and go too, and some starts fail, which \
            containerd does not tell.",
            extent.churn.as_secs()
        ),
    );
    let what = What::Churn {
        audits: extent.audits,
        window: extent.churn,
        subscribers: 1,
    };
    let mut by_pods = Vec::new();
    for (pods, delays) in [
        (110, ["1,400 µs", "2,760 µs"]),
        (1000, ["1,360 µs", "3,070 µs"]),
        (10_000, [""; 2]),
    ] {
        let load = Load::quiet(pods, 3).with_churn(100.0);
        let figures = runs(extent, &load, &what);
        let [mut p50, mut p99] = delay(&node(pods, 3), delays);
        if pods == 1000 {
            (p50, p99) = (p50.at_most(150.0), p99.at_most(1000.0));
        }
        section.add(&figures, &p50);
        section.add(&figures, &p99);
        let [cpu, allocations] = costs();
        section.add(&figures, &cpu.at_most(100.0));
        section.add(&figures, &allocations.at_most(60.0));
        among(&mut section, &figures);
        section.add(&figures, &line("peak RSS", "peak rss", "MiB"));
        by_pods.push(figures);
    }
    if let [few, .., many] = &*by_pods {
        for (about, figure) in [("CPU", "cpu each"), ("allocations", "allocations each")] {
            let ratios = independent(few, many, figure);
            let what = format!("{about} of a message, 10,000 pods by 110");
            section.add(&ratios, &line(what, figure, "×").at_most(1.2));
        }
    }
    let load = Load::quiet(1000, 3).with_churn(100.0).of_all_kinds();
    let figures = runs(extent, &load, &what);
    for line in delay("1,000 pods × 3, of all kinds", [""; 2]) {
        section.add(&figures, &line);
    }
    for line in costs() {
        section.add(&figures, &line);
    }
    among(&mut section, &figures);
    section
}

fn delay(node: &str, [p50, p99]: [&str; 2]) -> [Line; 2] {
    [
        line(format!("{node}: delay p50"), "p50", "µs")
            .limit("gRPC", "bare p50")
            .reference(p50),
        line("delay p99", "p99", "µs")
            .limit("gRPC", "bare p99")
            .reference(p99),
    ]
}

fn costs() -> [Line; 2] {
    [
        line("CPU of a message", "cpu each", "µs")
            .limit("gRPC", "bare stream")
            .reference("≈ 990 µs"),
        line("allocations of a message", "allocations each", "").reference("1,081 to 1,262"),
    ]
}

/// What there was of messages, and what else was done meanwhile.
fn among(section: &mut Section, figures: &[Figures]) {
    let messages = line("messages a second", "messages a second", "");
    section.add(figures, &messages);
    besides(section, figures);
}

/// What else was done, and why.
fn besides(section: &mut Section, figures: &[Figures]) {
    section.add(figures, &line("relists in all", "relists", ""));
    section.add(figures, &line("calls in all", "calls", ""));
    for (what, figure) in [
        ("changes that no message told", "missed"),
        ("messages that contradicted themselves", "contradictions"),
        ("messages that changed nothing", "ignored"),
        ("absences that a list could not judge", "unjudged"),
        ("reads of pods that may change untold", "unsettled"),
    ] {
        section.add_if_any(figures, &line(what, figure, ""));
    }
}

pub(super) fn burst(extent: Extent) -> Section {
    let mut section = Section::new(
        "10,000 starts and ends at once",
        "Time runs from the moment at which the runtime did all of it, so the sending is in it. \
        Afterwards the cache is held against the runtime's list.",
    );
    for (pods, containers) in [(110, 3), (1000, 3), (10_000, 3)] {
        let load = Load::quiet(pods, containers).with_burst(10_000);
        let what = What::Burst {
            audits: extent.audits,
        };
        let figures = runs(extent, &load, &what);
        section.add(
            &figures,
            &line(
                format!("{}: cache right after", node(pods, containers)),
                "right after",
                "ms",
            )
            .reference(if pods == 1000 {
                "356 ms for a tenth of it"
            } else {
                ""
            })
            .at_most(1000.0),
        );
        section.add(
            &figures,
            &line("CPU of a message", "cpu each", "µs")
                .reference("≈ 470 µs")
                .at_most(40.0),
        );
        section.add(
            &figures,
            &line("allocations of a message", "allocations each", "").at_most(60.0),
        );
        section.add(&figures, &line("messages", "messages", ""));
        section.add(&figures, &line("told", "delivered", ""));
        section.add(
            &figures,
            &line("containers wrong afterwards", "wrong", "").at_most(0.0),
        );
        section.add(
            &figures,
            &line("messages dropped", "dropped", "").at_most(0.0),
        );
        besides(&mut section, &figures);
        let memory = line("peak RSS", "peak rss", "MiB").reference("106 MiB for a tenth of it");
        section.add(
            &figures,
            &if pods == 10_000 {
                memory
            } else {
                memory.at_most(64.0)
            },
        );
    }
    section
}

pub(super) fn subscribers(extent: Extent) -> Section {
    let mut section = Section::new(
        "100 subscribers in the process, about 1,000 messages a second",
        "1,000 pods × 3; the process's CPU with all its subscribers.",
    );
    for subscribers in [1, 100] {
        let what = What::Churn {
            audits: extent.audits,
            window: extent.churn,
            subscribers,
        };
        let load = Load::quiet(1000, 3).with_churn(FOR_A_THOUSAND_MESSAGES);
        let figures = runs(extent, &load, &what);
        let share = line(
            format!("{subscribers}: of one core"),
            "share of a core",
            "%",
        );
        section.add(
            &figures,
            &if subscribers == 100 {
                share.at_most(25.0)
            } else {
                share
            },
        );
        among(&mut section, &figures);
        section.add(
            &figures,
            &line("events a second, to each", "delivered a second", ""),
        );
        section.add(&figures, &line("delay p50", "p50", "µs"));
        section.add(&figures, &line("delay p99", "p99", "µs"));
    }
    section
}
