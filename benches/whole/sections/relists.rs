//! Relists: unchanged ones, large ones, the first.

use super::{count, node};
use crate::measured::{Extent, runs};
use crate::simulated::Load;
use crate::table::{Section, line};
use crate::task::What;

/// What the kubelet's code takes, for pods of 3 containers: ms of processor time and of wall, thousand
/// allocations of an unchanged relist; ms of processor time and wall of the first, and its calls.
struct Reference {
    pods: usize,
    cpu: f64,
    wall: f64,
    allocations: &'static str,
    first_cpu: f64,
    first_wall: f64,
    first_rpcs: f64,
}

const REFERENCE: [Reference; 4] = [
    Reference {
        pods: 110,
        cpu: 11.3,
        wall: 14.6,
        allocations: "36,900",
        first_cpu: 144.0,
        first_wall: 200.0,
        first_rpcs: 442.0,
    },
    Reference {
        pods: 500,
        cpu: 44.9,
        wall: 60.0,
        allocations: "166,000",
        first_cpu: 656.0,
        first_wall: 866.0,
        first_rpcs: 2002.0,
    },
    Reference {
        pods: 1000,
        cpu: 82.8,
        wall: 111.0,
        allocations: "332,000",
        first_cpu: 1428.0,
        first_wall: 1969.0,
        first_rpcs: 4002.0,
    },
    Reference {
        pods: 1667,
        cpu: 142.0,
        wall: 199.0,
        allocations: "554,000",
        first_cpu: 2309.0,
        first_wall: 3214.0,
        first_rpcs: 6670.0,
    },
];

/// How a CRI-O answers the kubelet's gate for events: `PodSandboxStatus` alone, 1,000 pods.
const CRIO_FIRST: (f64, f64, f64) = (516.0, 751.0, 1002.0);

const MILLIS: &str = "ms";

pub(super) fn unchanged(extent: Extent) -> Section {
    let mut section = Section::new(
        "One unchanged full relist",
        "Events off, relists only when asked for. The limits are of the same bytes in the same \
        process: both lists over gRPC without a look at them, prost alone into the subset messages, \
        a bare socket.",
    );
    for reference in &REFERENCE {
        let pods = reference.pods;
        let times = extent.relists_of(pods);
        let figures = runs(extent, &Load::quiet(pods, 3), &What::Relists { times });
        let node = node(pods, 3);
        section.add(
            &figures,
            &line(format!("{node}: CPU"), "cpu", MILLIS)
                .limit("gRPC", "grpc")
                .limit("prost", "prost")
                .limit("socket", "socket")
                .reference(format!("{} ms", reference.cpu))
                .at_most(reference.cpu / 10.0),
        );
        section.add(
            &figures,
            &line("its CPU by that of prost alone", "of prost", "×").at_most(2.0),
        );
        section.add(
            &figures,
            &line("wall", "wall", MILLIS).reference(format!("{} ms", reference.wall)),
        );
        section.add(
            &figures,
            &line("allocations", "allocations", "")
                .limit("gRPC", "grpc allocations")
                .reference(reference.allocations)
                .at_most(count(pods * 3) / 10.0),
        );
        section.add(
            &figures,
            &line("calls", "rpcs", "").reference("2").at_most(2.0),
        );
        section.add(&figures, &line("bytes of the lists", "list kib", "KiB"));
        section.add(&figures, &line("peak RSS, polling", "peak rss", "MiB"));
    }
    section
}

pub(super) fn large(extent: Extent) -> Section {
    let mut section = Section::new(
        "An unchanged relist of 10,000 containers",
        "As above, 1,000 pods of 10 containers.",
    );
    let unary = Load {
        streaming_lists: false,
        ..Load::quiet(1000, 10)
    };
    for (how, load) in [("unary", unary.clone()), ("streamed", unary.streamed())] {
        let times = extent.relists_of(3333);
        let figures = runs(extent, &load, &What::Relists { times });
        section.add(
            &figures,
            &line(format!("{how}: CPU"), "cpu", MILLIS)
                .limit("gRPC", "grpc")
                .limit("prost", "prost")
                .limit("socket", "socket")
                .at_most(60.0),
        );
        section.add(
            &figures,
            &line("its CPU by that of prost alone", "of prost", "×").at_most(2.0),
        );
        section.add(
            &figures,
            &line("allocations", "allocations", "")
                .limit("gRPC", "grpc allocations")
                .at_most(1000.0),
        );
        section.add(&figures, &line("peak RSS, polling", "peak rss", "MiB"));
    }
    section
}

pub(super) fn first(extent: Extent) -> Section {
    let mut section = Section::new(
        "The first relist, with its inspections",
        "From the beginning to the last event of everything on the node; connecting included, events \
        off. Two calls more than the reference's ask, once, whether the runtime streams lists.",
    );
    let mut add = |load: &Load, (cpu, wall, rpcs): (f64, f64, f64), what: String| {
        let figures = runs(extent, load, &What::Relists { times: 1 });
        section.add(
            &figures,
            &line(format!("{what}: CPU"), "first cpu", MILLIS)
                .reference(format!("{cpu} ms"))
                .at_most(cpu / 5.0),
        );
        section.add(
            &figures,
            &line("wall", "first wall", MILLIS)
                .reference(format!("{wall} ms"))
                .at_most(wall / 3.0),
        );
        section.add(
            &figures,
            &line("calls", "first rpcs", "")
                .reference(rpcs.to_string())
                .at_most(rpcs + 2.0),
        );
        section.add(&figures, &line("allocations", "first allocations", ""));
    };
    for reference in &REFERENCE {
        let costs = (
            reference.first_cpu,
            reference.first_wall,
            reference.first_rpcs,
        );
        let what = format!("{}, like containerd", node(reference.pods, 3));
        add(&Load::quiet(reference.pods, 3), costs, what);
    }
    let what = format!("{}, like CRI-O", node(1000, 3));
    add(&Load::quiet(1000, 3).like("cri-o"), CRIO_FIRST, what);
    section
}
