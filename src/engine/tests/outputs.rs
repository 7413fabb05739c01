//! The other half of a node: carries out what the engine wants, writes down what it says, and checks
//! what must hold in every story.

use super::*;

impl Node {
    pub(super) fn carry_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Ask { request, question } => self.ask(request, &question),
                Output::OpenStream { session } => {
                    assert_eq!(self.session, None, "two streams are open");
                    self.session = Some(session);
                    self.opened.push(self.time());
                    if let Some(end) = self.world.stream_end() {
                        self.schedule(Duration::from_millis(1), Coming::End(session, end));
                    }
                }
                Output::CloseStream { session } => {
                    assert_eq!(self.session.take(), Some(session));
                }
                Output::Publish {
                    uid,
                    revision,
                    status,
                } => {
                    self.grow_to(revision);
                    match status {
                        Some(status) => self.cache.insert(uid.as_str().into(), status),
                        None => self.cache.remove(uid.as_str()),
                    };
                }
                Output::Observed { uid, mark } => {
                    let before = self.observed.insert(uid.as_str().into(), mark);
                    assert!(before < Some(mark), "freshness of {uid} goes back");
                }
                Output::ObservedAll { mark, except } => {
                    let except = except.iter().map(|uid| uid.as_str().into()).collect();
                    let before = self.observed_all.replace((mark, except));
                    assert!(before.is_none_or(|(before, _)| before < mark));
                }
                Output::Deliver(event) => self.delivered(event),
                Output::Answer { reader, reading } => {
                    let before = self.answers.insert(reader, reading);
                    assert_eq!(before, None, "a reader is answered twice");
                }
                Output::ModeChanged(change) => {
                    self.modes.push(format!("{} -> {}", change.from, change.to));
                }
                Output::Note(_) => self.notes += 1,
            }
        }
    }

    fn ask(&mut self, request: RequestId, question: &Question) {
        let call = match question {
            Question::Version => {
                self.heartbeats += 1;
                Call::Version
            }
            Question::FullRelist => {
                self.rpcs += 2;
                self.asked.push("Relist".into());
                Call::FullRelist
            }
            Question::PodRelist { uid } => {
                self.rpcs += 2;
                self.asked.push(format!("Relist({uid})"));
                Call::PodRelist
            }
            Question::Inspect {
                sandboxes,
                containers,
                ..
            } => {
                self.rpcs += sandboxes.len() + containers.len();
                let sandboxes = sandboxes.iter().map(ToString::to_string);
                let ids = sandboxes.chain(containers.iter().map(ToString::to_string));
                let ids = ids.collect::<Vec<_>>().join(" ");
                self.asked.push(format!("Inspect({ids})"));
                Call::Inspect
            }
        };
        self.in_flight.insert(request, call);
        let of_pods = |call: &&Call| matches!(**call, Call::PodRelist | Call::Inspect);
        let out = self.in_flight.values().filter(of_pods).count();
        self.most_in_flight = self.most_in_flight.max(out);
        if let Question::Inspect { uid, .. } = question
            && self.hanging.contains(uid.as_str())
        {
            return self.hang(request, question);
        }
        let answer = self.world.answer(question);
        if self.holding.contains(&call) {
            self.held.push((request, answer));
        } else {
            let latency = self.latency.get(&call).copied().unwrap_or_default();
            self.schedule(latency, Coming::Answer(request, answer));
        }
    }

    /// Nothing comes until the shell's deadline.
    fn hang(&mut self, request: RequestId, question: &Question) {
        let Answer::Inspected(mut answer) = self.world.answer(question) else {
            unreachable!("only inspections hang here");
        };
        let late = || failure(FailureKind::DeadlineExceeded, "no answer within 120 s");
        for (_, result) in &mut answer.sandboxes {
            *result = Err(late());
        }
        for (_, result) in &mut answer.containers {
            *result = Err(late());
        }
        let deadline = Duration::from_secs(120);
        self.schedule(deadline, Coming::Answer(request, Answer::Inspected(answer)));
    }

    fn delivered(&mut self, event: Arc<LifecycleEvent>) {
        self.grow_to(event.revision);
        let id = event.subject.as_ref().map(EventSubject::id);
        if let Some(id) = &id {
            self.check_once(id, event.kind);
            self.check_cache_first(id, &event);
        }
        let id = id.map_or_else(|| event.pod.uid.to_string(), |id| id.to_string());
        assert_ne!(id, "", "something is told of an empty id");
        let kind = event.kind.to_string();
        let kind = kind.trim_start_matches("Container");
        self.told.push(format!("{kind}({id})"));
        self.events.push(event);
    }

    fn check_once(&mut self, id: &SubjectId, kind: LifecycleKind) {
        let before = self.told_of.entry(id.clone()).or_default();
        let last = before.last();
        assert!(last < Some(&kind), "{kind} of {id} after {before:?}");
        before.push(kind);
    }

    /// The cache shows what is told, or a further phase, or no longer the subject.
    fn check_cache_first(&self, id: &SubjectId, event: &LifecycleEvent) {
        let Some(status) = self.cache.get(event.pod.uid.as_str()) else {
            return;
        };
        let shown = match id {
            SubjectId::Sandbox(id) => {
                let mut sandboxes = status.sandboxes.iter();
                sandboxes.find(|it| it.id == *id).map(|it| it.state)
            }
            SubjectId::Container(id) => {
                let mut containers = status.containers.iter();
                containers.find(|it| it.id == *id).map(|it| it.state)
            }
        };
        let least = match event.kind {
            LifecycleKind::ContainerStarted => ReportedState::Running,
            LifecycleKind::ContainerDied => ReportedState::Exited,
            LifecycleKind::ContainerRemoved | LifecycleKind::PodSync => {
                assert_eq!(shown, None, "{id} is told removed and still in the cache");
                return;
            }
        };
        assert!(
            shown.is_none_or(|shown| shown >= least),
            "{} of {id} is told while the cache shows {shown:?}",
            event.kind
        );
    }

    fn grow_to(&mut self, revision: Revision) {
        assert!(revision > self.revision, "{revision:?} comes twice");
        self.revision = revision;
    }
}
