//! The one transition table, driven through relists.

use super::*;

/// A polling node with a ready pod `P`.
fn pod() -> Node {
    let mut node = Node::polling();
    node.world.sandbox("P", "S", "A");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(S)"]);
    node
}

/// What each state is told as when a container goes from one to another between two relists.
fn told(from: Option<ReportedState>, to: Option<ReportedState>) -> Vec<String> {
    let mut node = pod();
    for state in [from, to] {
        if state.is_some() && !node.world.containers.contains_key("c") {
            node.world.create("S", "c");
        }
        match state {
            Some(state) => node.world.container("c").state = state,
            None if node.world.containers.contains_key("c") => node.world.remove("c"),
            None => {}
        }
        node.take_told();
        node.wait(1.0);
    }
    node.take_told()
}

/// X-TRANS-ALL
#[test]
fn every_move_between_two_relists_is_told_by_the_one_table() {
    use ReportedState::{Exited as X, Running as R, Unknown as U};
    let table: [(_, _, &[&str]); 13] = [
        (Some(R), Some(R), &[]),
        (Some(R), Some(X), &["Died(c)"]),
        (Some(R), Some(U), &[]),
        (Some(R), None, &["Died(c)", "Removed(c)"]),
        (Some(X), Some(X), &[]),
        (Some(X), Some(U), &[]),
        (Some(X), None, &["Removed(c)"]),
        (Some(U), Some(R), &["Started(c)"]),
        (Some(U), Some(X), &["Died(c)"]),
        (Some(U), Some(U), &[]),
        (Some(U), None, &["Died(c)", "Removed(c)"]),
        (None, Some(R), &["Started(c)"]),
        (None, Some(X), &["Died(c)"]),
    ];
    for (from, to, expected) in table {
        assert_eq!(told(from, to), expected, "{from:?} to {to:?}");
    }
    assert_eq!(told(None, Some(U)), NOTHING);
    assert_eq!(told(None, None), NOTHING);
}

/// X-TRANS-ALL (exited to running), a deviation: the table has Started, law 2.3 has `PodSync`, for a
/// container's second life is a step back, which two reads must confirm and which unsays nothing.
#[test]
pub(super) fn a_container_that_runs_again_is_told_as_pod_sync_once_two_reads_agree() {
    let mut node = pod();
    node.world.run("S", "c");
    node.world.exit("c", 1);
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c)"]);
    node.world.start("c");
    node.wait(1.0);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S=R c=X(1)");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["PodSync(P)"]);
    assert_eq!(node.shows("P"), "[A] S=R c=R");
    assert_eq!(node.engine.counters().steps_back, 1);
    node.world.exit("c", 2);
    node.wait(1.0);
    assert_eq!(node.take_told(), ["PodSync(P)"]);
    assert_eq!(node.shows("P"), "[A] S=R c=X(2)");
}

/// G-RELIST-1, G-RELIST-2, G-RELIST-3; one container id in two pods is left out: ids are the
/// runtime's and unique (see `a_known_container_never_changes_its_pod`).
#[test]
fn a_relist_tells_each_pods_changes_and_then_falls_silent() {
    let mut node = Node::polling();
    node.world.sandbox("1234", "s1", "A");
    node.world.sandbox("4567", "s4", "B");
    node.wait(1.0);
    assert_eq!(node.take_told_sorted(), ["Started(s1)", "Started(s4)"]);
    for (sandbox, id) in [("s1", "c1"), ("s1", "c2"), ("s1", "c3"), ("s4", "c4")] {
        node.world.run(sandbox, id);
    }
    node.world.exit("c1", 0);
    node.world.container("c3").state = ReportedState::Unknown;
    node.world.exit("c4", 0);
    node.wait(1.0);
    assert_eq!(
        node.take_told_sorted(),
        ["Died(c1)", "Died(c4)", "Started(c2)"]
    );
    node.wait(1.0);
    assert_eq!(node.take_told(), NOTHING);
    node.world.remove("c1");
    node.world.remove("c4");
    node.world.exit("c2", 0);
    node.world.start("c3");
    node.world.run("s4", "c5");
    node.wait(1.0);
    assert_eq!(
        node.take_told_sorted(),
        [
            "Died(c2)",
            "Removed(c1)",
            "Removed(c4)",
            "Started(c3)",
            "Started(c5)"
        ]
    );
}

/// G-DEATH-C-1
#[test]
fn a_running_container_that_is_gone_died_first_and_an_exited_one_did_not() {
    let mut node = pod();
    for id in ["c1", "c2", "c3"] {
        node.world.run("S", id);
    }
    node.world.exit("c3", 0);
    node.wait(1.0);
    node.take_told();
    node.world.remove("c2");
    node.world.remove("c3");
    node.wait(1.0);
    assert_eq!(
        node.take_told_sorted(),
        ["Died(c2)", "Removed(c2)", "Removed(c3)"]
    );
    assert_eq!(node.shows("P"), "[A] S=R c1=R");
}

/// G-DEATH-P-1, G-CACHE-RM, C-DELETE, C-GET-ABSENT; a deviation: an absent pod is no entry, not a
/// blank status.
#[test]
fn a_pod_that_is_gone_is_told_whole_and_leaves_the_cache() {
    let mut node = pod();
    node.world.run("S", "c2");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(c2)"]);
    node.world.remove_all();
    node.wait(1.0);
    assert_eq!(
        node.take_told(),
        ["Died(c2)", "Removed(c2)", "Died(S)", "Removed(S)"]
    );
    assert_eq!(node.shows("P"), "-");
}

/// G-SBX-1, G-SBX-2
#[test]
fn sandboxes_are_told_as_containers_are() {
    let mut node = Node::polling();
    for (pod, id) in [
        ("1234", "s1"),
        ("1234", "s2"),
        ("1234", "s3"),
        ("4567", "s4"),
    ] {
        node.world.sandbox(pod, id, "A");
    }
    node.world.stop_sandbox("s1");
    node.world.sandbox_mut("s3").state = ReportedState::Unknown;
    node.world.stop_sandbox("s4");
    node.wait(1.0);
    assert_eq!(
        node.take_told_sorted(),
        ["Died(s1)", "Died(s4)", "Started(s2)"]
    );
    node.wait(1.0);
    assert_eq!(node.take_told(), NOTHING);
}

/// X-CHANGED-ONLY, X-CREATED-TO-RUNNING
#[test]
fn a_created_container_is_inspected_and_shown_and_told_only_when_it_runs() {
    let mut node = pod();
    node.take_asked();
    node.world.create("S", "c");
    node.wait(1.0);
    assert_eq!(node.take_asked(), ["Relist", "Inspect(c)"]);
    assert_eq!(node.shows("P"), "[A] S=R c=C");
    assert_eq!(node.take_told(), NOTHING);
    node.world.start("c");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(c)"]);
}

/// X-ORDER-IN-POD, a deviation among what starts: a sandbox is told before what runs in it.
#[test]
fn in_a_pod_what_ended_is_told_before_what_runs() {
    let mut node = pod();
    node.world.run("S", "a");
    node.wait(1.0);
    node.take_told();
    node.world.exit("a", 0);
    node.world.stop_sandbox("S");
    node.world.sandbox("P", "S-new", "B");
    node.world.run("S-new", "b");
    node.wait(1.0);
    assert_eq!(
        node.take_told(),
        ["Died(a)", "Died(S)", "Started(S-new)", "Started(b)"]
    );
}
