//! What a node that does not change, and one event, may cost in allocations. Times are for benchmarks;
//! counts are the same on every machine, so they are held here.

mod counting;
#[path = "../../benches/node/mod.rs"]
mod node;

use std::collections::BTreeMap;
use std::time::Duration;

use counting::allocations;
use pleg::cri::raw;
use pleg::engine::{
    Answer, Engine, Failure, FailureKind, Input, Inspection, Output, Question, RequestId,
    SessionId, Settings,
};
use pleg::lifecycle::{Mono, Now, UnixNanos};

const PODS: usize = 1000;
const CONTAINERS: u64 = 3 * PODS as u64;

/// An engine that follows a node of 1,000 pods with 3 containers each.
struct Followed {
    engine: Engine,
    now: Now,
    lists: raw::Lists,
    sandboxes: Vec<u8>,
    containers: Vec<u8>,
    pods: BTreeMap<String, usize>,
    calls: BTreeMap<RequestId, Question>,
    session: Option<SessionId>,
    delivered: u64,
}

impl Followed {
    /// Listed, inspected and quiet.
    fn begin() -> Self {
        let mut followed = Self {
            engine: Engine::new(Settings::default()),
            now: Now {
                mono: Mono(0),
                wall: UnixNanos(1_768_210_306_000_000_000),
            },
            lists: raw::Lists::default(),
            sandboxes: node::sandboxes(PODS),
            containers: node::containers(PODS),
            pods: (0..PODS).map(|pod| (node::sandbox_id(pod), pod)).collect(),
            calls: BTreeMap::new(),
            session: None,
            delivered: 0,
        };
        followed.give(Input::Start);
        followed.settle();
        followed.pass(Duration::from_secs(30));
        followed
    }

    fn give(&mut self, input: Input) {
        self.engine.handle(self.now, input);
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Ask { request, question } => {
                    self.calls.insert(request, question);
                }
                Output::OpenStream { session } => self.session = Some(session),
                Output::Deliver(_) => self.delivered += 1,
                _ => {}
            }
        }
    }

    fn relist(&mut self) {
        let list = self.lists.read([&*self.sandboxes], [&*self.containers]);
        let list = list.expect("the bytes are a list");
        let waiting = self.calls.iter();
        let request = waiting
            .filter(|(_, question)| **question == Question::FullRelist)
            .map(|(request, _)| *request)
            .next()
            .expect("a list is asked for");
        self.calls.remove(&request);
        let answer = Answer::Listed(Ok(list));
        self.give(Input::Answered { request, answer });
    }

    /// Answers until nothing is asked any more.
    fn settle(&mut self) {
        while let Some((request, question)) = self.calls.pop_first() {
            let answer = match question {
                Question::FullRelist => {
                    self.calls.insert(request, question);
                    self.relist();
                    continue;
                }
                Question::Version => no_version(),
                Question::PodRelist { uid } => panic!("nothing of {uid} is unclear"),
                Question::Inspect {
                    sandboxes,
                    containers,
                    ..
                } => Answer::Inspected(self.inspect(&sandboxes, containers.len())),
            };
            self.give(Input::Answered { request, answer });
        }
    }

    /// The statuses of a pod: all of them are asked for at once.
    fn inspect(&self, sandboxes: &[pleg::lifecycle::SandboxId], containers: usize) -> Inspection {
        let mut inspection = Inspection::default();
        for id in sandboxes {
            let pod = self.pods[id.as_str()];
            let (status, _) = raw::sandbox(&node::sandbox_answer(pod)).expect("complete");
            inspection.sandboxes.push((id.clone(), Ok(status)));
            for number in 0..containers {
                let status = raw::container(&node::container_answer(pod, number));
                let status = status.expect("complete");
                inspection.containers.push((status.id.clone(), Ok(status)));
            }
        }
        inspection
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now.mono.after(time);
        while let Some(timeout) = self.engine.poll_timeout()
            && timeout <= until
        {
            self.advance(timeout.max(self.now.mono));
            self.give(Input::Wake);
            self.settle();
        }
        self.advance(until);
    }

    fn advance(&mut self, to: Mono) {
        let passed = to.since(self.now.mono).as_nanos();
        self.now.wall.0 += i64::try_from(passed).expect("seconds");
        self.now.mono = to;
    }

    fn hear(&mut self, message: &[u8]) {
        let session = self.session.expect("a stream is open");
        let event = raw::event(message).expect("a message");
        self.give(Input::StreamMessage { session, event });
    }

    /// Lets time pass until a full relist is asked for.
    fn until_a_relist_is_asked_for(&mut self) {
        while !self
            .calls
            .values()
            .any(|call| *call == Question::FullRelist)
        {
            let timeout = self.engine.poll_timeout().expect("it runs");
            self.advance(timeout.max(self.now.mono));
            self.give(Input::Wake);
            let others = |question: &Question| *question != Question::FullRelist;
            let waiting: Vec<RequestId> = self
                .calls
                .iter()
                .filter(|(_, question)| others(question))
                .map(|(request, _)| *request)
                .collect();
            for request in waiting {
                self.calls.remove(&request);
                let answer = no_version();
                self.give(Input::Answered { request, answer });
            }
        }
    }
}

fn no_version() -> Answer {
    Answer::Version(Err(Failure {
        kind: FailureKind::Other,
        message: "not told here".into(),
    }))
}

/// One allocation more for each container, or for each tenth of them, fails this.
#[test]
fn an_unchanged_relist_allocates_for_one_container_in_ten_at_most() {
    let mut node = Followed::begin();
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
fn an_event_allocates_less_than_sixty_times() {
    let mut node = Followed::begin();
    let stopped = node::event(7, 1, 2, 2);
    // The first event of a kind makes room that the next ones find.
    node.hear(&node::event(8, 1, 2, 2));
    let delivered = node.delivered;
    let (event, read) = allocations(|| raw::event(&stopped));
    drop(event);
    let ((), all) = allocations(|| node.hear(&stopped));
    assert_eq!(node.delivered, delivered + 1);
    println!("an event: {all} allocations, {read} to read it");
    assert!(all <= 60, "{all} allocations");
}
