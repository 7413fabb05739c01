//! Wishes for reads: which list serves whom, and what is asked again.

use super::*;

fn a_short_life(node: &mut Node) {
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.wait(5.0);
    node.take_asked();
}

/// A list of a pod that no filter shows is a list of the node; one that the stream has overtaken has served
/// nobody.
#[test]
fn a_relist_that_was_overtaken_owes_the_next_one_to_whoever_asked() {
    let mut node = Node::with_c1();
    node.world.sandbox_mut("S1").labelled = false;
    node.relist();
    node.wait(5.0);
    node.take_asked();
    node.hold(Call::FullRelist);
    node.request_relist("P");
    node.wait(1.0);
    assert_eq!(node.take_asked(), ["Relist"]);
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.release();
    node.wait(5.0);
    let asked = node.take_asked();
    assert!(asked.contains(&"Inspect(S1 c1)".into()), "{asked:?}");
}

#[test]
fn a_list_that_the_stream_has_overtaken_is_not_asked_again_for_nobody() {
    let mut node = Node::with_c1();
    a_short_life(&mut node);
    node.hold(Call::PodRelist);
    node.delete("c2");
    assert_eq!(node.take_asked(), ["Relist(P)"]);
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.release();
    node.wait(0.5);
    assert_eq!(node.take_asked(), NOTHING);
}

#[test]
fn a_list_that_the_stream_has_overtaken_is_asked_again_at_once_for_a_reader() {
    let mut node = Node::with_c1();
    node.hold(Call::PodRelist);
    let mark = node.mark();
    let reader = node.read_newer_than("P", mark, Freshness::Phases);
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.release();
    assert_eq!(node.take_asked(), ["Relist(P)", "Relist(P)"]);
    assert_eq!(node.answer(reader).as_deref(), Some("[A] S1=R c1=X(0)"));
}

/// The message was about c1; the sandbox and c2 are known from its snapshot alone. Lists are enough to
/// confirm them.
#[test]
fn a_list_confirms_what_a_message_only_showed() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    node.world.run("S1", "c1");
    node.world.run("S1", "c2");
    node.tell(Started, "c1");
    let mark = node.mark();
    let reader = node.read_newer_than("P", mark, Freshness::Phases);
    assert_eq!(node.answer(reader).as_deref(), Some("[A] S1=R c1=R c2=R"));
}

#[test]
fn a_pod_is_not_gone_for_a_reader_on_the_word_of_the_stream_alone() {
    let mut node = Node::with_c1();
    let mark = node.mark();
    node.relist();
    node.wait(5.0);
    node.take_asked();
    node.hold(Call::PodRelist);
    node.delete("c1");
    node.delete("S1");
    let reader = node.read_newer_than("P", mark, Freshness::Phases);
    assert_eq!(node.answer(reader), None);
    node.release();
    assert_eq!(node.answer(reader).as_deref(), Some("-"));
}

/// The read that is out began before the mark; the relist did not, and only statuses are wanting.
#[test]
fn a_reader_behind_a_read_that_hangs_is_served_by_the_relist() {
    let mut node = Node::with_c1();
    node.hold(Call::PodRelist);
    node.request_relist("P");
    let reader = node.read("P");
    node.relist();
    node.take_asked();
    node.release();
    assert_eq!(node.take_asked(), ["Inspect(S1 c1)"]);
    assert_eq!(node.answer(reader).as_deref(), Some("[A] S1=R c1=R"));
}

#[test]
fn a_pod_whose_read_is_on_its_way_is_not_read_once_more_to_end_its_error() {
    let mut node = Node::with_c1();
    node.world.unreadable.insert("P");
    node.request_relist("P");
    assert!(node.shows("P").contains("error"));
    node.world.unreadable.clear();
    node.hold(Call::Inspect);
    node.request_relist("P");
    node.take_asked();
    node.wait(5.0);
    node.release();
    node.wait(5.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    assert_eq!(node.take_asked(), NOTHING);
}

#[test]
fn every_phase_that_may_change_untold_keeps_its_pod_watched() {
    let mut node = Node::with_c1();
    // Its id comes before the others'.
    node.world.create("S1", "a0");
    node.tell(Created, "a0");
    assert_eq!(node.engine.unsettled_pods(), 1);
    node.world.start("a0");
    node.tell(Started, "a0");
    assert_eq!(node.engine.unsettled_pods(), 0);
    node.hold(Call::PodRelist);
    node.delete("c1");
    assert_eq!(node.engine.unsettled_pods(), 1);
}

#[test]
fn an_unsettled_pod_is_looked_at_however_late_the_wake_comes() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    node.pass_to(node.elapsed + Duration::from_millis(1_500));
    node.handle(Input::Wake);
    assert_eq!(node.take_asked(), ["Relist(P)"]);
}

/// The watch began for the created container, which lists show; an address is in no list.
#[test]
fn an_address_that_comes_late_is_found_although_the_pod_was_watched_before() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "");
    node.world.create("S1", "c1");
    node.relist();
    node.world.sandbox_mut("S1").ips = vec!["A".into()];
    node.wait(2.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=C");
}

/// Whoever saw the phases and wants the statuses of that same read gets them from it.
#[test]
fn a_reader_of_what_a_read_on_its_way_will_show_causes_no_other() {
    let mut node = Node::with_c1();
    node.hold(Call::Inspect);
    node.request_relist("P");
    let listed = node.observed("P").expect("the lists were applied");
    let reader = node.read_newer_than("P", listed, Freshness::Details);
    assert_eq!(node.answer(reader), None);
    node.release();
    assert_eq!(node.answer(reader).as_deref(), Some("[A] S1=R c1=R"));
    assert_eq!(node.take_asked(), ["Relist(P)", "Inspect(S1 c1)"]);
}
