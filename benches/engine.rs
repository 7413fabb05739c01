//! What the engine does with answers and messages that were read: an unchanged list, a list with one
//! change and the inspection that follows, an event. 1,000 pods with 3 containers each.
//!
//! `cargo bench --bench engine`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "criterion's macros write undocumented functions"
)]

mod node;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use node::followed::Followed;
use pleg::clock::Clock;
use pleg::cri::raw;

const PODS: usize = 1000;

/// An engine, and the containers that have not ended yet; begun anew when there are none.
struct Supply {
    followed: Followed,
    ended: usize,
}

impl Supply {
    fn new() -> Self {
        Self {
            followed: Followed::begin(PODS),
            ended: 0,
        }
    }

    /// The next container, as pod and number.
    fn next(&mut self) -> (usize, usize) {
        if self.ended == PODS * node::CONTAINERS_PER_POD {
            *self = Self::new();
        }
        let at = self.ended;
        self.ended += 1;
        (at % PODS, at / PODS)
    }
}

/// Time of `work` alone, each time after `prepare`.
fn timed<S, I>(
    count: u64,
    supply: &mut S,
    mut prepare: impl FnMut(&mut S) -> I,
    mut work: impl FnMut(&mut S, I),
) -> Duration {
    let clock = Clock::system();
    let mut spent = Duration::ZERO;
    for _ in 0..count {
        let prepared = prepare(supply);
        let began = clock.now().mono;
        work(supply, prepared);
        spent += clock.now().mono.since(began);
    }
    spent
}

fn lists(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("relist of 1,000 pods x 3, decoding included");
    let mut followed = Followed::begin(PODS);
    group.bench_function("unchanged", |bench| {
        bench.iter_custom(|count| {
            timed(
                count,
                &mut followed,
                Followed::until_a_relist_is_asked_for,
                |followed, ()| followed.relist(),
            )
        });
    });
    let mut supply = Supply::new();
    group.bench_function("one container ended", |bench| {
        bench.iter_custom(|count| {
            timed(
                count,
                &mut supply,
                |supply| {
                    let (pod, number) = supply.next();
                    supply.followed.end_in_the_list(pod, number);
                    supply.followed.until_a_relist_is_asked_for();
                },
                |supply, ()| {
                    supply.followed.relist();
                    supply.followed.settle();
                },
            )
        });
    });
    group.finish();
}

fn events(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("event among 1,000 pods x 3");
    let mut supply = Supply::new();
    group.bench_function("a container ended, decoded already", |bench| {
        bench.iter_custom(|count| {
            timed(
                count,
                &mut supply,
                |supply| {
                    let (pod, number) = supply.next();
                    raw::event(&node::event(pod, number, 2, node::EXITED)).unwrap()
                },
                |supply, event| supply.followed.merge(event),
            )
        });
    });
    let mut followed = Followed::begin(PODS);
    let mut pods = (0..PODS).cycle();
    group.bench_function(
        "one that repeats what is known, decoding included",
        |bench| {
            bench.iter_custom(|count| {
                timed(
                    count,
                    &mut followed,
                    |_| {
                        let pod = pods.next().unwrap_or(0);
                        node::event(pod, 1, 1, node::RUNNING)
                    },
                    |followed, message| followed.hear(&message),
                )
            });
        },
    );
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = lists, events
}
criterion_main!(benches);
