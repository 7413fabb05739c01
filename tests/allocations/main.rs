//! What a node that does not change, and one event, may cost in allocations. Times are for benchmarks;
//! counts are the same on every machine, so they are held here.

mod counting;
#[path = "../../benches/node/mod.rs"]
mod node;

use counting::allocations;
use node::followed::Followed;
use pleg::cri::raw;

const PODS: usize = 1000;
const CONTAINERS: u64 = 3 * PODS as u64;

/// One allocation more for each container, or for each tenth of them, fails this.
#[test]
fn an_unchanged_relist_allocates_for_one_container_in_ten_at_most() {
    let mut node = Followed::begin(PODS);
    node.until_a_relist_is_asked_for();
    let delivered = node.delivered;
    let ((), read) = allocations(|| {
        let list = node.lists.read([&*node.sandboxes], [&*node.containers]);
        drop(list.expect("a list"));
    });
    let ((), all) = allocations(|| node.relist());
    assert_eq!(node.delivered, delivered);
    println!(
        "an unchanged relist of {CONTAINERS} containers: {all} allocations, {read} to read it"
    );
    assert!(all <= CONTAINERS / 10, "{all} allocations");
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
