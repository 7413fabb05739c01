//! What everything costs the runtime, as counts of calls.

use super::*;
use crate::engine::Ignored;

/// A full relist of an unchanged node is two calls.
#[test]
fn a_full_relist_costs_its_two_lists_and_the_inspections_of_what_changed() {
    let mut node = Node::trusted();
    for n in 0..50 {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.world.run(&format!("s{n}"), &format!("c{n}"));
        node.tell(Started, &format!("c{n}"));
    }
    node.wait(5.0);
    node.forget_the_past();
    node.relist();
    assert_eq!(node.rpcs, 2);
    for n in 0..5 {
        node.world.exit(&format!("c{n}"), 1);
    }
    node.world.run("s9", "d9");
    node.forget_the_past();
    node.relist();
    assert_eq!(node.rpcs, 2 + 6);
    assert_eq!(node.take_told().len(), 6);
    node.forget_the_past();
    node.relist();
    assert_eq!(node.rpcs, 2);
    // What is gone needs no inspection.
    node.world.remove("d9");
    node.forget_the_past();
    node.relist();
    assert_eq!(node.rpcs, 2);
    assert_eq!(node.take_told(), ["Died(d9)", "Removed(d9)"]);
}

/// A targeted relist is two filtered lists and a status for each subject of the pod.
#[test]
fn a_targeted_relist_costs_two_lists_and_one_inspection_of_the_pod() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.wait(5.0);
    node.forget_the_past();
    node.request_relist("P");
    assert_eq!(node.take_asked(), ["Relist(P)", "Inspect(S1 c1 c2)"]);
    assert_eq!(node.rpcs, 2 + 3);
    node.wait(60.0);
    assert_eq!(node.rpcs, 2 + 3);
}

/// An event costs nothing, but a DELETED one coalesced read.
#[test]
fn events_cost_nothing_but_one_coalesced_read_after_a_deleted() {
    let mut node = Node::with_c1();
    for n in 2..=40 {
        let id = format!("c{n}");
        node.world.create("S1", &id);
        node.tell(Created, &id);
        node.world.start(&id);
        node.tell(Started, &id);
        node.world.exit(&id, 0);
        node.tell(Stopped, &id);
    }
    assert_eq!((node.rpcs, node.take_told().len()), (0, 78));
    // The first DELETED has its read sent; all that come while it is out share the next.
    node.wait(2.0);
    node.hold(Call::PodRelist);
    for n in 2..=40 {
        node.delete(&format!("c{n}"));
    }
    assert_eq!(node.take_asked(), ["Relist(P)"]);
    node.release();
    assert_eq!(node.take_asked(), ["Relist(P)"]);
    assert_eq!(node.rpcs, 4);
    node.wait(60.0);
    assert_eq!(node.rpcs, 4);
    assert_eq!(node.engine.unsettled_pods(), 0);
}

/// Many DELETED at once, each of a pod of its own, are cheaper as full relists: one at once, and one for
/// what came after it was sent.
#[test]
fn many_pods_deleted_at_once_cost_a_few_reads_and_two_relists() {
    let mut node = Node::trusted();
    for n in 0..100 {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.world.run(&format!("s{n}"), &format!("c{n}"));
        node.tell(Started, &format!("c{n}"));
    }
    node.wait(5.0);
    node.forget_the_past();
    for n in 0..100 {
        node.delete(&format!("c{n}"));
    }
    node.wait(5.0);
    let asked = node.take_asked();
    let full = asked.iter().filter(|asked| *asked == "Relist").count();
    assert_eq!((full, asked.len() - full), (2, 8), "{asked:?}");
    assert!(node.engine.counters().reads_folded_into_relists >= 92);
}

/// Oracle 8, the figure: 110 pods, trusted, over three slow periods.
#[test]
fn a_trusted_node_of_110_pods_costs_one_relist_per_slow_period_and_the_heartbeats() {
    let mut node = Node::trusted();
    for n in 0..110 {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.tell(Started, &format!("s{n}"));
        node.world.run(&format!("s{n}"), &format!("c{n}"));
        node.tell(Started, &format!("c{n}"));
    }
    assert_eq!(node.cache.len(), 111);
    node.wait(400.0);
    node.relist();
    node.forget_the_past();
    node.wait(900.0);
    assert_eq!(node.take_asked(), ["Relist", "Relist", "Relist"]);
    assert_eq!((node.rpcs, node.heartbeats), (6, 90));
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.mode(), "Evented");
}

/// The same for one that only ever polls: a relist a second, no inspections.
#[test]
fn a_polled_node_costs_two_calls_a_second_however_many_pods_it_has() {
    let mut node = Node::polling();
    for n in 0..110 {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.world.run(&format!("s{n}"), &format!("c{n}"));
    }
    node.wait(1.0);
    assert_eq!(node.rpcs, 2 + 220);
    node.forget_the_past();
    node.wait(60.0);
    assert_eq!((node.rpcs, node.heartbeats), (120, 6));
}

/// C13 of the law check: what rests unsettled is left to the slow relist in the end.
#[test]
fn a_container_that_rests_in_created_costs_ever_fewer_reads_and_then_none() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    node.wait(300.0);
    let asked = node.take_asked();
    let reads = asked.iter().filter(|asked| *asked == "Relist(P)").count();
    assert!((8..=9).contains(&reads), "{asked:?}");
    node.wait(1000.0);
    node.take_asked();
    node.wait(3000.0);
    assert_eq!(node.take_asked(), ["Relist"; 10]);
    // A change starts it anew.
    node.world.create("S1", "c3");
    node.tell(Created, "c3");
    node.wait(1.0);
    assert_eq!(node.take_asked(), ["Relist(P)"]);
}

/// C13 of the law check: a finished pod that is kept for days settles too, and so does a dead container
/// under a ready sandbox at once.
#[test]
fn a_finished_pod_that_is_kept_costs_nothing_in_the_end() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.wait(60.0);
    assert_eq!(node.take_asked(), NOTHING);
    node.world.stop_sandbox("S1");
    node.tell(Stopped, "S1");
    node.wait(1500.0);
    assert!(node.take_asked().len() < 20);
    node.wait(3000.0);
    assert_eq!(node.take_asked(), ["Relist"; 10]);
}

/// The heartbeat goes on alone while a list hangs, and never twice at a time.
#[test]
fn heartbeats_are_ten_seconds_apart_and_one_at_a_time() {
    let mut node = Node::with_c1();
    node.hold(Call::FullRelist);
    node.relist();
    node.wait(100.0);
    assert_eq!(node.heartbeats, 10);
    node.hold(Call::Version);
    node.wait(100.0);
    assert_eq!(node.heartbeats, 11);
}

/// Containers that come and go within a second leave each list something that it cannot judge; that is
/// no reason for relists back to back, nor for one each second for ever.
#[test]
fn a_node_full_of_short_lives_is_relisted_ever_less_often() {
    let mut node = Node::with_c1();
    for n in 0..200 {
        let id = format!("short{n}");
        node.world.run("S1", &id);
        node.tell(Created, &id);
        node.tell(Started, &id);
        node.wait(0.03);
        node.world.exit(&id, 0);
        node.tell(Stopped, &id);
        node.delete(&id);
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.tell(Started, &format!("s{n}"));
        node.delete(&format!("s{n}"));
        node.wait(0.02);
    }
    let relists = node.take_relists();
    assert!(
        (3..=5).contains(&relists),
        "{relists} relists in ten seconds"
    );
    node.wait(11.0);
    assert_eq!(node.engine.unsettled_pods(), 0);
}

/// Where a list takes long, what waits for nothing but the proof of its removal waits for fewer of them.
#[test]
fn relists_that_only_prove_removals_take_a_hundredth_of_the_time() {
    let mut node = Node::trusted();
    node.latency
        .insert(Call::FullRelist, Duration::from_millis(50));
    node.latency
        .insert(Call::PodRelist, Duration::from_millis(50));
    let pods = 600;
    for n in 0..pods {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.world.run(&format!("s{n}"), &format!("c{n}"));
        node.tell(Started, &format!("c{n}"));
    }
    node.relist();
    node.wait(5.0);
    node.forget_the_past();
    for n in 0..pods {
        node.delete(&format!("c{n}"));
        node.wait(0.05);
    }
    let relists = node.take_relists();
    assert!(
        (4..=7).contains(&relists),
        "{relists} relists in half a minute"
    );
    node.wait(11.0);
    assert_eq!(node.engine.unsettled_pods(), 0);
}

/// Only so many subjects may be known by events alone. Lives that come and go by the thousand must not use
/// that up while the relists that prove them gone are put off.
#[test]
fn thousands_of_short_lives_a_second_are_all_told() {
    let mut node = Node::trusted();
    let (pods, lives) = (200, 12_000);
    for n in 0..pods {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.tell(Started, &format!("s{n}"));
    }
    // Relists have followed each other: one for proofs alone would come ten seconds after the last.
    for _ in 0..6 {
        node.relist();
        node.wait(1.0);
    }
    node.forget_the_past();
    // No read of a single pod proves any of them gone.
    node.hold(Call::PodRelist);
    for n in 0..lives {
        let (sandbox, id) = (format!("s{}", n % pods), format!("short{n}"));
        node.world.run(&sandbox, &id);
        node.tell(Started, &id);
        node.world.exit(&id, 0);
        node.tell(Stopped, &id);
        node.delete(&id);
        if n % 20 == 0 {
            node.wait(0.005);
        }
    }
    let ignored = &node.engine.counters().ignored;
    assert_eq!(ignored.get(&Ignored::TooManyUnconfirmed), None);
    assert_eq!(node.take_told().len(), lives * 3);
}
