//! Inspections: what they complete, what they hold back, and what a failing one must not.

use super::*;
use crate::engine::Inspection;

fn exit_all(node: &mut Node, count: usize) {
    for n in 0..count {
        node.world.exit(&format!("c{n}"), 1);
    }
}

/// C6, X-GLOBAL-TIME: whoever waits for the failing pod gets its error.
#[test]
fn one_hanging_pod_holds_back_itself_alone() {
    let mut node = Node::polling();
    node.run_pods(50);
    node.wait(1.0);
    node.forget_the_past();
    node.takes(Call::Inspect, 0.005);
    node.hanging.insert("p7");
    exit_all(&mut node, 50);
    node.at(2.0);
    let told = node.take_told();
    assert_eq!(told.len(), 49);
    assert!(!told.contains(&"Died(c7)".to_owned()));
    assert_eq!(node.shows("p7"), "[A] s7=R c7=X");
    let reader = node.read("p7");
    node.at(120.0);
    assert_eq!(node.answer(reader), None);
    assert!(node.health().is_healthy());
    node.at(245.0);
    let error = "[A] s7=R c7=X error: no answer within 120 s";
    assert_eq!(node.shows("p7"), error);
    assert_eq!(node.answer(reader).unwrap(), error);
    assert_eq!(node.take_told(), NOTHING);
    node.hanging.clear();
    node.at(500.0);
    assert_eq!(node.take_told(), ["Died(c7)"]);
    assert_eq!(node.shows("p7"), "[A] s7=R c7=X(1)");
}

/// C6, the back-off.
#[test]
fn a_failing_inspection_is_tried_again_with_growing_waits() {
    let mut node = Node::polling();
    node.run_pods(1);
    node.wait(1.0);
    node.forget_the_past();
    node.world.unreadable.insert("p0");
    exit_all(&mut node, 1);
    let mut tries = Vec::new();
    for second in 1..=200 {
        node.at(f64::from(second));
        let asked = node.take_asked();
        assert!(asked.len() <= 2, "{asked:?}");
        if asked.contains(&"Inspect(c0)".to_owned()) {
            tries.push(second);
        }
    }
    assert_eq!(tries, [1, 2, 4, 8, 16, 32, 64, 124, 184]);
}

/// C10
#[test]
fn many_changed_pods_are_inspected_side_by_side_up_to_the_cap() {
    let mut node = Node::trusted_with_pods(300);
    node.takes(Call::Inspect, 0.5);
    exit_all(&mut node, 300);
    node.relist();
    node.at(0.6);
    assert_eq!(node.take_told().len(), 8);
    node.tell(Stopped, "c299");
    assert_eq!(node.take_told(), ["Died(c299)"]);
    node.at(20.0);
    assert_eq!(node.take_told().len(), 291);
    assert_eq!(node.most_in_flight, 8);
    assert!(node.health().is_healthy());
}

/// C10: running pods are inspected before dead ones.
#[test]
fn running_pods_are_inspected_before_dead_ones() {
    let mut node = Node::polling();
    node.run_pods(20);
    for n in 0..10 {
        node.world.exit(&format!("c{n}"), 1);
        node.world.stop_sandbox(&format!("s{n}"));
    }
    node.takes(Call::Inspect, 0.1);
    node.at(1.15);
    let told = node.take_told();
    assert_eq!(told.len(), 16);
    assert!(
        told.iter().all(|told| told.starts_with("Started")),
        "{told:?}"
    );
}

/// A11
#[test]
fn an_event_completes_a_pod_whose_inspection_failed() {
    let mut node = Node::with_c1();
    node.world.unreadable.insert("P");
    node.world.exit("c1", 0);
    node.relist();
    let error = "[A] S1=R c1=X error: network namespace busy";
    assert_eq!(node.shows("P"), error);
    assert_eq!(node.take_told(), NOTHING);
    node.world.stop_sandbox("S1");
    node.tell(Stopped, "c1");
    assert_eq!(node.take_told(), ["Died(c1)", "Died(S1)"]);
    assert_eq!(node.exit_code("c1"), Some(0));
    assert_eq!(node.shows("P"), "[A] S1=X c1=X(0)");
}

/// G-CACHE-1, C-SETGET-1: a status and an error are stored together; the phases are right.
#[test]
fn a_pod_that_cannot_be_inspected_has_an_error_entry_and_no_events() {
    let mut node = Node::polling();
    node.run_pods(2);
    node.world.unreadable.insert("p1");
    node.forget_the_past();
    node.at(0.9);
    node.take_asked();
    node.at(1.0);
    assert_eq!(node.take_told(), ["Started(s0)", "Started(c0)"]);
    assert_eq!(node.shows("p0"), "[A] s0=R c0=R");
    assert_eq!(
        node.shows("p1"),
        "[] s1=R c1=R error: network namespace busy"
    );
    assert_eq!(
        node.take_asked(),
        ["Relist", "Inspect(s0 c0)", "Inspect(s1 c1)"]
    );
}

/// X-ST-ERR, a deviation: a status that could be read is not lost because another could not.
#[test]
fn one_failing_status_does_not_hide_what_the_others_told() {
    let mut node = Node::polling();
    node.run_pods(1);
    node.wait(1.0);
    node.take_told();
    node.world.run("s0", "c9");
    node.world.exit("c0", 3);
    node.hold(Call::Inspect);
    node.wait(1.0);
    let Answer::Inspected(answer) = &mut node.held[0].1 else {
        panic!("an inspection is held");
    };
    answer.containers[1].1 = Err(unavailable());
    assert_eq!(answer.containers[1].0.as_str(), "c9");
    node.release();
    assert_eq!(node.take_told(), ["Died(c0)"]);
    assert_eq!(
        node.shows("p0"),
        "[A] s0=R c9=R c0=X(3) error: connection refused"
    );
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(c9)"]);
    assert_eq!(node.shows("p0"), "[A] s0=R c9=R c0=X(3)");
}

/// G-REINSP-1, C-SETGET-0; A19 as decided: one `PodSync` answers, reading on is the caller's.
#[test]
fn a_reinspect_reads_the_pod_whole_and_is_answered_by_one_pod_sync() {
    let mut node = Node::with_c1();
    node.request_reinspect("P");
    assert_eq!(node.take_asked(), ["Relist(P)", "Inspect(S1 c1)"]);
    assert_eq!(node.take_told(), ["PodSync(P)"]);
    node.wait(60.0);
    assert_eq!(node.take_asked(), NOTHING);
    assert_eq!(node.take_told(), NOTHING);
}

/// G-REINSP-2, G-REINSP-4, G-REINSP-7
#[test]
fn a_reinspect_that_fails_stays_asked_for_until_it_is_answered() {
    let mut node = Node::with_c1();
    node.world.unreadable.insert("P");
    node.request_reinspect("P");
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(
        node.shows("P"),
        "[A] S1=R c1=R error: network namespace busy"
    );
    node.request_reinspect("P");
    node.wait(5.0);
    assert_eq!(node.take_told(), NOTHING);
    node.world.unreadable.clear();
    node.wait(10.0);
    assert_eq!(node.take_told(), ["PodSync(P)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
}

/// G-REINSP-5
#[test]
fn without_a_request_nothing_is_inspected() {
    let mut node = Node::with_c1();
    node.relist();
    assert_eq!(node.take_asked(), ["Relist"]);
    assert_eq!(node.take_told(), NOTHING);
}

/// A20: requests are kept per pod, so that none need be dropped (X-REQ-FULL, P37-7).
#[test]
fn a_burst_of_requests_costs_one_read_each_and_tells_only_what_changed() {
    let mut node = Node::trusted_with_pods(20);
    node.takes(Call::PodRelist, 0.01);
    node.world.exit("c5", 9);
    for _ in 0..3 {
        for n in 0..20 {
            node.request_relist(&format!("p{n}"));
        }
    }
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c5)"]);
    assert_eq!(node.most_in_flight, 8);
    let asked = node.take_asked();
    let count = |of: &str| asked.iter().filter(|asked| *asked == of).count();
    assert_eq!(count("Relist"), 0);
    // The first eight were sent when the next round of wishes came: those need reads of their own.
    assert_eq!((count("Relist(p0)"), count("Relist(p9)")), (2, 1));
    assert_eq!(count("Relist(p19)"), 1);
}

/// A20, the last point, and rule 2.7.
#[test]
fn a_request_older_than_a_relist_is_served_by_it() {
    let mut node = Node::trusted_with_pods(20);
    node.hold(Call::PodRelist);
    for n in 0..10 {
        node.request_relist(&format!("p{n}"));
    }
    assert_eq!(node.take_asked().len(), 8);
    node.relist();
    let asked = node.take_asked();
    assert_eq!(asked, ["Relist"]);
    node.release();
    let asked = node.take_asked();
    assert!(!asked.contains(&"Relist(p8)".to_owned()), "{asked:?}");
    assert!(asked.contains(&"Inspect(s8 c8)".to_owned()), "{asked:?}");
}

/// G-LOOP-5, a deviation: a relist that is due as well does not take the place of the targeted one, for it
/// may hang; the pod is inspected once.
#[test]
fn a_reinspect_beside_a_relist_inspects_its_pod_once() {
    let mut node = Node::with_c1();
    node.takes(Call::FullRelist, 0.1);
    node.takes(Call::PodRelist, 0.1);
    node.request_reinspect("P");
    node.relist();
    node.wait(1.0);
    assert_eq!(node.take_told(), ["PodSync(P)"]);
    assert_eq!(node.take_asked(), ["Relist(P)", "Relist", "Inspect(S1 c1)"]);
}

/// Takes the one inspection that is out away, to answer it otherwise.
fn inspection_out(node: &mut Node) -> (RequestId, Inspection) {
    let (request, answer) = node.held.pop().expect("an inspection is out");
    node.in_flight.remove(&request);
    match answer {
        Answer::Inspected(inspection) => (request, inspection),
        other => panic!("{other:?} is no inspection"),
    }
}

/// A message that completes one container says nothing of the other, whose status could not be read.
#[test]
fn an_error_stays_while_a_container_has_no_details() {
    let mut node = Node::with_c1();
    node.hold(Call::Inspect);
    node.world.exit("c1", 7);
    node.world.run("S1", "c2");
    node.relist();
    let (request, mut inspection) = inspection_out(&mut node);
    for (_, status) in &mut inspection.containers {
        *status = Err(unavailable());
    }
    node.handle(Input::Answered {
        request,
        answer: Answer::Inspected(inspection),
    });
    assert!(node.shows("P").contains(" error: "), "{}", node.shows("P"));
    let mut started = node.event(Started, "c2");
    started.containers.retain(|it| it.id.as_str() == "c2");
    node.send(started);
    assert!(node.shows("P").contains(" error: "), "{}", node.shows("P"));
    node.holding.clear();
    node.wait(5.0);
    assert_eq!(node.shows("P"), "[A] S1=R c2=R c1=X(7)");
}

/// A status may lag behind its list: it completes no death, and a death is not told without its exit code.
#[test]
fn a_death_waits_for_a_status_that_shows_it() {
    let mut node = Node::with_c1();
    node.hold(Call::Inspect);
    let running = node.world.container("c1").clone();
    node.world.exit("c1", 7);
    node.relist();
    let (request, mut inspection) = inspection_out(&mut node);
    inspection.containers[0].1 = Ok(running);
    node.handle(Input::Answered {
        request,
        answer: Answer::Inspected(inspection),
    });
    assert_eq!(node.take_told(), NOTHING);
    node.holding.clear();
    node.wait(5.0);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!(node.exit_code("c1"), Some(7));
}

/// Law 2.7: an inspection that was sent before a list made one due does not do for it, whatever it saw.
#[test]
fn an_inspection_sent_before_the_list_that_wants_one_is_followed_by_another() {
    let mut node = Node::with_c1();
    node.hold(Call::Inspect);
    node.request_relist("P");
    node.world.exit("c1", 7);
    node.relist();
    let (request, mut inspection) = inspection_out(&mut node);
    inspection.containers[0].1 = Ok(node.world.container("c1").clone());
    node.take_asked();
    node.handle(Input::Answered {
        request,
        answer: Answer::Inspected(inspection),
    });
    assert!(
        node.take_asked()
            .iter()
            .any(|asked| asked.starts_with("Inspect("))
    );
    assert_eq!(node.take_told(), NOTHING);
    node.release();
    assert_eq!(node.take_told(), ["Died(c1)"]);
}

/// A container that came while its pod was inspected was not inspected: the pod was not.
#[test]
fn a_reinspection_covers_what_came_while_it_was_under_way() {
    let mut node = Node::with_c1();
    node.hold(Call::Inspect);
    node.request_reinspect("P");
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    node.hold(Call::PodRelist);
    let (request, inspection) = inspection_out(&mut node);
    node.handle(Input::Answered {
        request,
        answer: Answer::Inspected(inspection),
    });
    assert_eq!(node.take_told(), NOTHING);
    node.release();
    node.wait(5.0);
    assert_eq!(node.take_told(), ["PodSync(P)"]);
}

/// Two reports of one death differ, and neither is certainly the newer: a reader of details waits for one
/// that is.
#[test]
fn a_reader_of_details_waits_while_two_reports_of_a_death_differ() {
    let mut node = Node::with_c1();
    node.hold(Call::Inspect);
    let reader = node.read("P");
    let (request, mut inspection) = inspection_out(&mut node);
    node.world.exit("c1", 137);
    node.world.container("c1").reason = "Error".into();
    node.tell(Stopped, "c1");
    node.world.container("c1").reason = "OOMKilled".into();
    inspection.containers[0].1 = Ok(node.world.container("c1").clone());
    node.hold(Call::PodRelist);
    node.handle(Input::Answered {
        request,
        answer: Answer::Inspected(inspection),
    });
    assert_eq!(node.answer(reader), None);
    node.release();
    node.wait(2.0);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=X(137)");
    assert_eq!(&*node.cache["P"].containers[0].reason, "OOMKilled");
}
