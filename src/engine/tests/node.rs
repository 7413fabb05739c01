//! What a test does to a node and asks of it.

use super::{
    Duration, EventKind, Freshness, Health, Input, LifecycleEvent, LifecycleKind, Mark, Mode, Node,
    PodStatus, ReaderId, ReportedState, RuntimeEvent, StreamEnd, unavailable,
};

impl Node {
    /// The runtime sends a message about what it has just done, with the statuses as they are.
    pub(super) fn tell(&mut self, kind: EventKind, id: &str) {
        let event = self.event(kind, id);
        self.send(event);
    }

    /// The message that the runtime would send now.
    pub(super) fn event(&self, kind: EventKind, id: &str) -> RuntimeEvent {
        self.world.event(kind, id, &self.world.sandbox_of(id))
    }

    /// A container is deleted, and the runtime says so; its sandbox is in the message.
    pub(super) fn delete(&mut self, id: &str) {
        let sandbox = self.world.sandbox_of(id);
        self.world.remove(id);
        let event = self.world.event(EventKind::Deleted, id, &sandbox);
        self.send(event);
    }

    /// A message reaches us.
    pub(super) fn send(&mut self, event: RuntimeEvent) {
        let session = self.session.expect("a stream is open");
        self.handle(Input::StreamMessage { session, event });
    }

    pub(super) fn end_stream(&mut self, end: StreamEnd) {
        let session = self.session.take().expect("a stream is open");
        self.handle(Input::StreamEnded { session, end });
    }

    pub(super) fn break_stream(&mut self) {
        self.end_stream(StreamEnd::Broken(unavailable()));
    }

    /// One full relist, now.
    pub(super) fn relist(&mut self) {
        self.handle(Input::RequestRelist { uid: None });
    }

    pub(super) fn request_relist(&mut self, pod: &str) {
        self.handle(Input::RequestRelist {
            uid: Some(pod.into()),
        });
    }

    pub(super) fn request_reinspect(&mut self, pod: &str) {
        self.handle(Input::RequestReinspect { uid: pod.into() });
    }

    pub(super) fn mark(&mut self) -> Mark {
        self.engine.mark(self.now())
    }

    /// Somebody wants a pod's status from now on, with details.
    pub(super) fn read(&mut self, pod: &str) -> ReaderId {
        let mark = self.mark();
        self.read_newer_than(pod, mark, Freshness::Details)
    }

    pub(super) fn read_newer_than(
        &mut self,
        pod: &str,
        newer_than: Mark,
        freshness: Freshness,
    ) -> ReaderId {
        self.readers += 1;
        let reader = ReaderId(self.readers);
        self.handle(Input::Read {
            reader,
            uid: pod.into(),
            newer_than,
            freshness,
        });
        reader
    }

    /// What a reader was told, in the notation of [`Node::shows`]; `None` while it waits.
    pub(super) fn answer(&self, reader: ReaderId) -> Option<String> {
        let reading = self.answers.get(&reader)?;
        Some(
            reading
                .status
                .as_ref()
                .map_or("-".into(), |status| written(status)),
        )
    }

    /// Everything delivered since the last call.
    pub(super) fn take_told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// The same, where the order is not what the case is about.
    pub(super) fn take_told_sorted(&mut self) -> Vec<String> {
        let mut told = self.take_told();
        told.sort();
        told
    }

    /// Every question since the last call, but the heartbeats.
    pub(super) fn take_asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }

    /// How many full relists were asked since the last call of this or of `take_asked`.
    pub(super) fn take_relists(&mut self) -> usize {
        let asked = self.take_asked();
        asked.iter().filter(|asked| *asked == "Relist").count()
    }

    /// A pod in the cache: its addresses, then each sandbox and container, newest first, as
    /// `id=state`. C is created, R running or ready, X ended (with the exit code, if there is one), U
    /// unknown. `-` is no entry.
    pub(super) fn shows(&self, pod: &str) -> String {
        self.cache
            .get(pod)
            .map_or("-".into(), |status| written(status))
    }

    /// The last event of a kind about an id.
    pub(super) fn last(&self, kind: LifecycleKind, id: &str) -> &LifecycleEvent {
        let about = |event: &&std::sync::Arc<LifecycleEvent>| {
            let subject = event.subject.as_ref().map(|subject| subject.id());
            event.kind == kind && subject.is_some_and(|subject| subject.as_str() == id)
        };
        self.events.iter().rev().find(about).expect("it was told")
    }

    /// The exit code that a Died carried.
    pub(super) fn exit_code(&self, id: &str) -> Option<i32> {
        let died = self.last(LifecycleKind::ContainerDied, id);
        died.exit.as_ref().map(|exit| exit.exit_code)
    }

    /// When the read began that vouches for a pod's phases, as the cache was told.
    pub(super) fn observed(&self, pod: &str) -> Option<Mark> {
        let by_relist = self.observed_all.as_ref();
        let by_relist = by_relist.filter(|(_, except)| !except.contains(pod));
        self.observed
            .get(pod)
            .copied()
            .max(by_relist.map(|(mark, _)| *mark))
    }

    pub(super) fn mode(&self) -> String {
        self.engine.mode().to_string()
    }

    /// The relist period in seconds.
    pub(super) fn period(&self) -> f64 {
        match self.engine.mode() {
            Mode::Evented { audit_period } => audit_period.as_secs_f64(),
            Mode::Connecting | Mode::Polling { .. } => 1.0,
        }
    }

    pub(super) fn health(&self) -> Health {
        self.engine.health(self.now())
    }

    /// Misses counted so far.
    pub(super) fn misses(&self) -> u64 {
        self.engine.counters().missed.values().sum()
    }

    pub(super) fn takes(&mut self, call: super::Call, seconds: f64) {
        self.latency.insert(call, Duration::from_secs_f64(seconds));
    }
}

fn written(status: &PodStatus) -> String {
    let letter = |state| match state {
        ReportedState::Unknown => "U",
        ReportedState::Created => "C",
        ReportedState::Running => "R",
        ReportedState::Exited => "X",
    };
    let mut parts = vec![format!("[{}]", status.ips.join(" "))];
    for sandbox in &status.sandboxes {
        parts.push(format!("{}={}", sandbox.id, letter(sandbox.state)));
    }
    for container in &status.containers {
        let code = container.exit_code.map(|code| format!("({code})"));
        let code = code.unwrap_or_default();
        parts.push(format!(
            "{}={}{code}",
            container.id,
            letter(container.state)
        ));
    }
    if let Some(error) = &status.error {
        parts.push(format!("error: {error}"));
    }
    parts.join(" ")
}
