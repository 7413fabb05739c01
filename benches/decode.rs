//! What reading a runtime's answers costs, beside prost alone on the same bytes: a list of 1,000 pods with
//! 3 containers each, read for the first time and unchanged; a message of the event stream.
//!
//! `cargo bench --bench decode`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "criterion's macros write undocumented functions"
)]

#[expect(dead_code, reason = "no engine follows it here")]
mod node;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use node::cri;
use pleg::cri::raw;
use prost::Message;

const PODS: usize = 1000;

fn lists(bench: &mut Criterion) {
    let (sandboxes, containers) = (node::sandboxes(PODS), node::containers(PODS));
    let mut group = bench.benchmark_group("list of 1,000 pods x 3");
    let bytes = (sandboxes.len() + containers.len()) as u64;
    group.throughput(Throughput::Bytes(bytes));
    group.bench_function("prost alone, subset messages", |bench| {
        bench.iter(|| {
            let sandboxes = cri::ListPodSandboxResponse::decode(black_box(&*sandboxes)).unwrap();
            let containers = cri::ListContainersResponse::decode(black_box(&*containers)).unwrap();
            (sandboxes, containers)
        });
    });
    group.bench_function("first", |bench| {
        bench.iter(|| {
            let mut lists = raw::Lists::default();
            let read = lists.read([black_box(&*sandboxes)], [black_box(&*containers)]);
            read.unwrap()
        });
    });
    let mut known = raw::Lists::default();
    group.bench_function("unchanged", |bench| {
        bench.iter(|| {
            let read = known.read([black_box(&*sandboxes)], [black_box(&*containers)]);
            read.unwrap()
        });
    });
    group.finish();
}

fn events(bench: &mut Criterion) {
    let message = node::event(7, 1, 2, 2);
    let mut group = bench.benchmark_group("event of a pod with 3 containers");
    group.throughput(Throughput::Bytes(message.len() as u64));
    group.bench_function("prost alone, subset messages", |bench| {
        bench.iter(|| cri::ContainerEventResponse::decode(black_box(&*message)).unwrap());
    });
    group.bench_function("read", |bench| {
        bench.iter(|| raw::event(black_box(&message)).unwrap());
    });
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
