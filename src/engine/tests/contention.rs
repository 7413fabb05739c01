//! Many that want something at once: nobody is left waiting for ever, nothing is lost for want of room,
//! and the runtime is not flooded.

use super::*;
use crate::lifecycle::SeqPoint;

fn sandbox_of(node: &Node, pod: &str, id: &str) -> Option<String> {
    let containers = &node.cache[pod].containers;
    let shown = containers.iter().find(|it| it.id.as_str() == id);
    shown?.sandbox_id.as_ref().map(ToString::to_string)
}

/// Running pods go first; on a node where they want more than the cap allows, that was for ever.
#[test]
fn a_finished_pod_is_told_of_however_many_running_ones_change() {
    let mut node = Node::polling();
    node.run_pods(12);
    node.world.sandbox("job", "sj", "B");
    node.world.run("sj", "cj");
    node.wait(2.0);
    node.takes(Call::Inspect, 3.0);
    node.world.exit("cj", 7);
    node.world.stop_sandbox("sj");
    node.forget_the_past();
    for round in 0..30 {
        for n in 0..12 {
            node.world.run(&format!("s{n}"), &format!("d{n}-{round}"));
        }
        node.wait(1.0);
    }
    assert!(node.take_told().contains(&"Died(cj)".to_owned()));
}

/// The first in the queue, each with whether it is dead, since which second it waits, and its name.
fn whose_turn(second: u64, queue: &[(bool, u64, &str)]) -> String {
    let mut node = Node::trusted();
    node.engine.now.mono = Mono(second * 1_000_000_000);
    node.engine.queue.clear();
    for &(is_dead, since, pod) in queue {
        let since = SeqPoint {
            at: Mono(since * 1_000_000_000),
            count: since,
        };
        node.engine.queue.insert(((is_dead, since), pod.into()));
    }
    let next = node.engine.next_in_queue().expect("somebody waits");
    assert_eq!(node.engine.queue.len(), queue.len() - 1);
    next.to_string()
}

#[test]
fn running_pods_go_first_but_for_whoever_came_before_them_and_waited_for_ten_seconds() {
    let job_first = [(true, 1_000, "job"), (false, 1_005, "web")];
    assert_eq!(whose_turn(1_009, &job_first), "web");
    assert_eq!(whose_turn(1_010, &job_first), "job");
    let web_first = [(true, 1_005, "job"), (false, 1_000, "web")];
    assert_eq!(whose_turn(1_060, &web_first), "web");
    let together = [(true, 1_000, "job"), (false, 1_000, "web")];
    assert_eq!(whose_turn(1_060, &together), "web");
    assert_eq!(whose_turn(1_001, &[(true, 1_000, "job")]), "job");
}

/// A failing pod had the place of its first failure: before everything that happened since.
#[test]
fn pods_that_hang_for_ever_do_not_keep_a_healthy_one_from_its_turn() {
    let mut node = Node::polling();
    node.run_pods(101);
    node.wait(2.0);
    for n in 0..100 {
        node.hanging.insert(format!("p{n}").leak());
        node.world.exit(&format!("c{n}"), 1);
    }
    node.wait(1_000.0);
    node.forget_the_past();
    node.world.exit("c100", 1);
    // Whoever is out has 120 s, and as long as that may all places be taken.
    node.wait(400.0);
    assert_eq!(node.take_told(), ["Died(c100)"]);
}

/// Each new wish used to put the pod behind all that had come meanwhile.
#[test]
fn a_reader_of_a_busy_pod_keeps_its_place_in_the_queue() {
    let mut node = Node::trusted_with_pods(60);
    node.takes(Call::PodRelist, 2.0);
    node.takes(Call::Inspect, 2.0);
    let mut reader = None;
    for tick in 0..1_500 {
        node.wait(0.1);
        node.request_relist(&format!("p{}", tick % 60));
        if tick % 10 == 0 {
            node.request_relist("p59");
        }
        if tick == 200 {
            reader = Some(node.read("p59"));
        }
    }
    assert!(node.answer(reader.unwrap()).is_some());
}

/// Only so many targeted reads a second are granted. The others are left to a full relist, which shows no
/// address: those pods were never read.
#[test]
fn details_that_contradict_each_other_are_read_although_many_do_at_once() {
    let mut node = Node::trusted_with_pods(12);
    for n in 0..12 {
        node.world.sandbox_mut(&format!("s{n}")).ips = vec!["Z".into()];
        node.tell(Started, &format!("c{n}"));
    }
    node.wait(3.0);
    for n in 0..12 {
        assert_eq!(node.shows(&format!("p{n}")), format!("[Z] s{n}=R c{n}=R"));
    }
    assert_eq!(node.take_relists(), 2);
}

/// The same for pods that wait for an address in step: those whose uids come first were read each time.
#[test]
fn addresses_that_come_late_are_found_although_many_are_awaited() {
    let mut node = Node::polling();
    for n in 10..30 {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "");
    }
    node.wait(5.0);
    node.world.sandbox_mut("s29").ips = vec!["Z".into()];
    node.wait(10.0);
    assert_eq!(node.shows("p29"), "[Z] s29=R");
}

/// It was read for without a pause: no read could serve it.
#[test]
fn a_mark_of_the_future_costs_nothing_before_its_time() {
    let mut node = Node::with_c1();
    node.takes(Call::PodRelist, 0.001);
    node.takes(Call::FullRelist, 0.001);
    let mark = Mark(SeqPoint {
        at: node.now().mono.after(Duration::from_secs(20)),
        count: 0,
    });
    let readers = ["P", "never"].map(|pod| node.read_newer_than(pod, mark, Freshness::Details));
    node.wait(10.0);
    assert_eq!(node.take_asked(), NOTHING);
    // It keeps nobody else from being served meanwhile.
    let other = node.read("P");
    node.wait(1.0);
    assert_eq!(node.answer(other).as_deref(), Some("[A] S1=R c1=R"));
    assert_eq!(readers.map(|reader| node.answer(reader)), [None, None]);
    node.wait(10.0);
    let answers = readers.map(|reader| node.answer(reader).unwrap());
    assert_eq!(answers, ["[A] S1=R c1=R", "-"]);
    assert!(node.engine.reading.is_empty());
}

/// Each time that one pod's call timed out, the next success had the stream asked for at once.
#[test]
fn a_pod_that_cannot_be_read_does_not_hurry_the_stream() {
    let mut node = Node::new();
    node.world.serves = Serves::Unimplemented;
    node.start();
    node.run_pods(2);
    node.wait(5.0);
    node.hanging.insert("p1");
    node.world.exit("c1", 1);
    node.forget_the_past();
    node.wait(590.0);
    assert!(node.shows("p1").contains("error"));
    assert_eq!(node.opened.len(), 0);
}

#[test]
fn an_inbox_that_overflows_again_and_again_does_not_flood_the_runtime() {
    let mut node = Node::trusted_with_pods(30);
    for call in [Call::FullRelist, Call::PodRelist, Call::Inspect] {
        node.takes(call, 0.01);
    }
    for _ in 0..200 {
        let session = node.session.unwrap();
        let pods = (0..30).map(|n| format!("p{n}").into()).collect();
        node.handle(Input::StreamOverflow {
            session,
            pods,
            dropped: 7,
        });
        node.wait(0.05);
    }
    let asked = node.take_asked();
    let of_one_pod = |asked: &&String| asked.starts_with("Relist(");
    assert_eq!(asked.iter().filter(of_one_pod).count(), 0);
    let full = asked.iter().filter(|asked| *asked == "Relist").count();
    assert!((9..=11).contains(&full), "{full} relists in ten seconds");
}

/// The mark of being listed stayed until the next full relist, which then found it present.
#[test]
fn what_a_filtered_list_shows_of_another_pod_is_not_taken_for_listed_later() {
    let mut node = Node::with_c1();
    node.world.sandbox("Q", "SQ", "B");
    node.hold(Call::PodRelist);
    node.request_relist("P");
    let everything = node.world.list(None);
    node.held[0].1 = Answer::Listed(Ok(everything));
    node.release();
    assert_eq!(node.shows("Q"), "[B] SQ=R");
    node.world.remove("SQ");
    node.relist();
    assert_eq!(node.shows("Q"), "-");
}

/// The message of another container does not say it, and nothing else of the container changes.
#[test]
fn the_sandbox_that_only_a_list_names_is_shown() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c2");
    node.tell(Started, "c1");
    assert_eq!(sandbox_of(&node, "P", "c2"), None);
    node.relist();
    assert_eq!(sandbox_of(&node, "P", "c2").as_deref(), Some("S1"));
}

#[test]
fn a_list_knows_best_which_sandbox_a_container_runs_in() {
    let mut node = Node::with_c1();
    node.world.stop_sandbox("S1");
    node.world.sandbox("P", "S2", "B");
    node.world.run("S2", "c2");
    let mut event = node.event(Started, "c2");
    event.sandbox = node.world.sandboxes.get("S1").cloned();
    node.send(event);
    assert_eq!(sandbox_of(&node, "P", "c2").as_deref(), Some("S1"));
    node.relist();
    assert_eq!(sandbox_of(&node, "P", "c2").as_deref(), Some("S2"));
}

#[test]
fn nothing_is_left_of_pods_that_came_and_went_by_the_hundred() {
    let mut node = Node::polling();
    for round in 0..10 {
        for n in 0..50 {
            let sandbox = format!("s{round}-{n}");
            node.world.sandbox(&format!("p{round}-{n}"), &sandbox, "");
            node.world.run(&sandbox, &format!("c{round}-{n}"));
        }
        let given_up = node.read(&format!("p{round}-7"));
        node.handle(Input::CancelRead { reader: given_up });
        node.wait(1.5);
        node.world.remove_all();
        node.wait(1.5);
    }
    node.wait(70.0);
    let engine = &node.engine;
    assert_eq!((engine.tombstones(), engine.unsettled_pods()), (0, 0));
    assert!(engine.records.pods.is_empty() && engine.records.wakes.is_empty());
    assert!(engine.waiting.is_empty() && engine.reading.is_empty());
    assert!(engine.queue.is_empty() && engine.expectations.is_empty());
}
