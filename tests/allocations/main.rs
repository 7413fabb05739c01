//! What a node that does not change, a read and an event may cost in allocations and calls. Times are
//! for benchmarks; counts are the same on every machine, so they are held here.

mod calls;
mod counting;
mod end_to_end;
#[path = "../../benches/node/mod.rs"]
mod node;

use std::hint::black_box;

use counting::allocations;
use node::followed::Followed;
use pleg::cri::raw;
use pleg::lifecycle::NodeList;

const PODS: usize = 1000;
const CONTAINERS: u64 = 3 * PODS as u64;

/// What an unchanged relist of the node may allocate: once for ten containers.
const BUDGET: u64 = CONTAINERS / 10;

/// What an unchanged relist allocates, with `work` done to the list between decoder and engine.
fn cost_of_an_unchanged_relist(work: impl FnOnce(&NodeList)) -> u64 {
    let mut node = Followed::begin(PODS);
    node.until_a_relist_is_asked_for();
    let delivered = node.delivered;
    let ((), count) = allocations(|| node.relist_with(work));
    assert_eq!(node.delivered, delivered);
    count
}

#[test]
fn an_unchanged_relist_allocates_for_one_container_in_ten_at_most() {
    let count = cost_of_an_unchanged_relist(|_| {});
    println!("an unchanged relist of {CONTAINERS} containers: {count} allocations");
    assert!(count <= BUDGET, "{count} allocations");
}

/// The budget is one that can be missed: a copy of one text of each container, or of each ninth, is
/// over it.
#[test]
fn one_allocation_more_for_each_container_is_over_the_budget() {
    for every in [1, 9] {
        let count = cost_of_an_unchanged_relist(|list| {
            for container in list.containers.items.iter().step_by(every) {
                black_box(container.name.to_string());
            }
        });
        assert!(count > BUDGET, "{count} allocations");
    }
}

/// What is new in a list costs something, what is not does not.
#[test]
fn a_list_with_one_change_allocates_a_hundred_times_more_at_most() {
    let mut node = Followed::begin(PODS);
    node.end_in_the_list(7, 1);
    node.until_a_relist_is_asked_for();
    let delivered = node.delivered;
    let ((), count) = allocations(|| node.relist());
    println!("a relist with one container ended: {count} allocations");
    assert!(count <= BUDGET + 100, "{count} allocations");
    node.settle();
    assert_eq!(node.delivered, delivered + 1);
}

/// The first time everything is made: texts that come again are made once.
#[test]
fn a_first_list_allocates_a_few_times_for_each_item() {
    let (sandboxes, containers) = (node::sandboxes(PODS), node::containers(PODS));
    let mut lists = raw::Lists::default();
    let (list, count) = allocations(|| lists.read([&*sandboxes], [&*containers]));
    assert_eq!(list.expect("a list").containers.items.len(), 3 * PODS);
    println!("a first list of {CONTAINERS} containers: {count} allocations");
    assert!(count <= 4 * CONTAINERS, "{count} allocations");
}

#[test]
fn an_event_allocates_less_than_forty_times() {
    let mut node = Followed::begin(PODS);
    let stopped = node::event(7, 1, 2, 2);
    // The first event of a kind makes room that the next ones find.
    node.hear(&node::event(8, 1, 2, 2));
    let delivered = node.delivered;
    let (event, read) = allocations(|| raw::event(&stopped));
    drop(event);
    let ((), all) = allocations(|| node.hear(&stopped));
    assert_eq!(node.delivered, delivered + 1);
    println!("an event: {all} allocations, {read} to read it");
    assert!(all < 40, "{all} allocations");
}
