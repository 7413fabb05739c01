//! A node of the load, followed by an engine without a runtime between them.

use std::collections::BTreeMap;
use std::time::Duration;

use pleg::cri::raw;
use pleg::engine::{
    Answer, Engine, Failure, FailureKind, Input, Inspection, Output, Question, RequestId,
    SessionId, Settings,
};
use pleg::lifecycle::{ContainerId, Mono, NodeList, Now, RuntimeEvent, SandboxId, UnixNanos};

/// An engine, and the node that it follows.
pub(crate) struct Followed {
    engine: Engine,
    now: Now,
    pub(crate) lists: raw::Lists,
    pub(crate) sandboxes: Vec<u8>,
    pub(crate) containers: Vec<u8>,
    pods: BTreeMap<String, usize>,
    /// Pod and number of each container.
    places: BTreeMap<String, (usize, usize)>,
    /// The state of each, and where it stands in the list.
    states: Vec<(i32, usize)>,
    calls: BTreeMap<RequestId, Question>,
    session: Option<SessionId>,
    pub(crate) delivered: u64,
}

impl Followed {
    /// Listed, inspected and quiet.
    pub(crate) fn begin(pods: usize) -> Self {
        let numbers = 0..super::CONTAINERS_PER_POD;
        let all = (0..pods).flat_map(|pod| numbers.clone().map(move |number| (pod, number)));
        let states = super::places_of_states(pods).into_iter();
        let mut followed = Self {
            engine: Engine::new(Settings::default()),
            now: Now {
                mono: Mono(0),
                wall: UnixNanos(1_768_210_306_000_000_000),
            },
            lists: raw::Lists::default(),
            sandboxes: super::sandboxes(pods),
            containers: super::containers(pods),
            pods: (0..pods).map(|pod| (super::sandbox_id(pod), pod)).collect(),
            places: all
                .map(|(pod, number)| (super::container_id(pod, number), (pod, number)))
                .collect(),
            states: states.map(|place| (super::RUNNING, place)).collect(),
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

    /// Reads the list that is asked for and gives it to the engine.
    pub(crate) fn relist(&mut self) {
        self.relist_with(|_| {});
    }

    /// The same, with something done to the list in between.
    pub(crate) fn relist_with(&mut self, work: impl FnOnce(&NodeList)) {
        let list = self.lists.read([&*self.sandboxes], [&*self.containers]);
        let list = list.expect("the bytes are a list");
        work(&list);
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
    pub(crate) fn settle(&mut self) {
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
                } => Answer::Inspected(self.inspect(&sandboxes, &containers)),
            };
            self.give(Input::Answered { request, answer });
        }
    }

    fn inspect(&self, sandboxes: &[SandboxId], containers: &[ContainerId]) -> Inspection {
        let mut inspection = Inspection::default();
        for id in sandboxes {
            let pod = self.pods[id.as_str()];
            let (status, _) = raw::sandbox(&super::sandbox_answer(pod)).expect("complete");
            inspection.sandboxes.push((id.clone(), Ok(status)));
        }
        for id in containers {
            let (pod, number) = self.places[id.as_str()];
            let (state, _) = self.states[pod * super::CONTAINERS_PER_POD + number];
            let status = raw::container(&super::container_answer(pod, number, state));
            let status = status.expect("complete");
            inspection.containers.push((id.clone(), Ok(status)));
        }
        inspection
    }

    /// From now on the list says that a container has ended, and so does its status.
    pub(crate) fn end_in_the_list(&mut self, pod: usize, number: usize) {
        let (state, place) = &mut self.states[pod * super::CONTAINERS_PER_POD + number];
        *state = super::EXITED;
        self.containers[*place] = super::EXITED.to_le_bytes()[0];
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

    /// Reads a message and gives it to the engine.
    pub(crate) fn hear(&mut self, message: &[u8]) {
        self.merge(raw::event(message).expect("a message"));
    }

    /// Gives the engine a message that was read.
    pub(crate) fn merge(&mut self, event: RuntimeEvent) {
        let session = self.session.expect("a stream is open");
        self.give(Input::StreamMessage { session, event });
    }

    /// Lets time pass until a full relist is asked for.
    pub(crate) fn until_a_relist_is_asked_for(&mut self) {
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
