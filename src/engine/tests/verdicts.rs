//! What follows from what a read says of a known subject: whether the stream has proved itself, what it is
//! still expected to tell, and what is read again.

use super::*;

/// A message that contradicts itself: c1 is said to have ended, and shown running.
fn ended_but_running(node: &Node) -> RuntimeEvent {
    node.event(Stopped, "c1")
}

#[test]
fn what_the_first_list_finds_is_initial_and_nothing_after_it_is() {
    let mut node = Node::new();
    node.world.sandbox("P", "S1", "A");
    node.start();
    node.wait(5.0);
    node.world.run("S1", "c1");
    node.relist();
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    let initial = |id| node.last(LifecycleKind::ContainerStarted, id).initial;
    assert_eq!(["S1", "c1", "c2"].map(initial), [true, false, false]);
}

/// That two reads agree says nothing of the stream.
#[test]
fn a_silent_stream_is_not_proven_by_reads_that_agree_with_each_other() {
    let mut node = Node::new();
    node.world.sandbox("P", "S1", "A");
    node.world.run("S1", "c1");
    node.start();
    node.wait(5.0);
    node.request_relist("P");
    node.wait(600.0);
    assert!((node.period() - 30.0).abs() < f64::EPSILON);
}

/// The stream told of a container and missed its start: what a list found is not to its credit.
#[test]
fn a_stream_is_not_proven_by_a_phase_that_a_read_had_to_find() {
    let mut node = Node::new();
    node.world.sandbox("P", "S1", "A");
    node.start();
    node.wait(5.0);
    node.world.create("S1", "c1");
    node.tell(Created, "c1");
    node.world.start("c1");
    node.relist();
    node.wait(0.5);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    node.relist();
    assert!(!node.engine.trust.proven);
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.wait(1.5);
    node.relist();
    assert!(node.engine.trust.proven);
}

#[test]
fn what_the_stream_told_in_a_refused_message_is_no_miss() {
    let mut node = Node::with_c1();
    // A list that was sent before the message says nothing of it, whatever it shows.
    node.hold(Call::PodRelist);
    node.request_relist("P");
    let message = ended_but_running(&node);
    node.send(message);
    node.world.exit("c1", 0);
    node.release();
    node.wait(10.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(0)");
    assert_eq!(node.misses(), 0);
}

#[test]
fn a_refused_message_that_a_later_read_disproved_excuses_nothing() {
    let mut node = Node::with_c1();
    let message = ended_but_running(&node);
    node.send(message);
    node.wait(5.0);
    node.world.exit("c1", 0);
    node.relist();
    node.wait(5.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(0)");
    assert_eq!(node.misses(), 1);
}

/// The runtime did not know for a while; nothing happened that an event tells.
#[test]
fn a_phase_that_was_hidden_for_a_while_is_no_miss() {
    let mut node = Node::with_c1();
    for state in [ReportedState::Unknown, ReportedState::Running] {
        node.world.container("c1").state = state;
        node.wait(5.0);
        node.relist();
    }
    node.wait(10.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    assert_eq!(node.misses(), 0);
}

#[test]
fn a_change_that_an_inspection_finds_needs_no_other_inspection() {
    let mut node = Node::with_c1();
    node.hold(Call::PodRelist);
    node.request_relist("P");
    node.world.exit("c1", 3);
    node.release();
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!(node.take_asked(), ["Relist(P)", "Inspect(S1 c1)"]);
}

/// A status from before a change that the stream told meanwhile is no failure to read the pod.
#[test]
fn a_status_that_the_stream_has_overtaken_is_read_again_and_no_error() {
    let mut node = Node::with_c1();
    node.hold(Call::Inspect);
    node.request_relist("P");
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.take_asked();
    node.release();
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(0)");
    assert_eq!(node.take_asked(), ["Relist(P)", "Inspect(S1 c1)"]);
}

/// Relists for what was told as gone, or made while the list was out, grow apart; this is for neither.
#[test]
fn what_a_list_was_too_early_to_judge_is_asked_again_a_second_after_the_news() {
    let mut node = Node::with_c1();
    node.relist();
    node.wait(5.0);
    node.forget_the_past();
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.world.remove("c2");
    node.at(0.5);
    node.relist();
    assert_eq!(node.take_asked(), ["Relist"]);
    node.at(1.4);
    assert_eq!(node.take_asked(), NOTHING);
    node.at(1.6);
    assert_eq!(node.take_asked(), ["Relist"]);
}

#[test]
fn whoever_waits_for_a_pod_has_it_read_as_soon_as_a_list_may_judge() {
    let mut node = Node::with_c1();
    node.wait(5.0);
    node.forget_the_past();
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.world.remove("c2");
    node.request_relist("P");
    assert_eq!(node.take_asked()[0], "Relist(P)");
    let reader = node.read("P");
    node.at(0.9);
    assert_eq!(node.answer(reader), None);
    node.at(1.1);
    assert_eq!(node.answer(reader).as_deref(), Some("[A] S1=R c1=R"));
}
