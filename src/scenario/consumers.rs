//! The generator under test and those who use it: subscribers, readers, askers.
//!
//! It is set up and used as any embedder would. Each subscriber holds what it is told against the
//! laws that hold always: the cache is written first, and a subject is told each thing once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::action::{Action, Ask, Subscribe};
use super::file::Settings;
use super::judge::Told;
use super::names::Names;
use super::trace::TraceRecorder;
use crate::cache::Cache;
use crate::clock::Clock;
use crate::engine::{Freshness, Reading};
use crate::feed::{Subscription, WatchFrom};
use crate::lifecycle::{
    EventSubject, LifecycleEvent, LifecycleKind, Mark, Mono, ReportedState, SubjectId,
};
use crate::simulate::SimulatedRuntime;
use crate::{Builder, Pleg};

/// The subscriber that is always there.
pub(super) const MAIN: &str = "main";

/// An event, and when the subscriber took it.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) at: Mono,
    pub(super) event: Arc<LifecycleEvent>,
}

/// What was promised for always and was not kept.
#[derive(Clone, Debug)]
pub(super) struct Breach {
    pub(super) at: Mono,
    pub(super) law: &'static str,
    pub(super) event: Arc<LifecycleEvent>,
    pub(super) got: String,
}

/// Where the reading tasks write.
#[derive(Debug, Default)]
struct Notes {
    heard: Vec<Heard>,
    told: BTreeMap<SubjectId, LifecycleKind>,
    breaches: Vec<Breach>,
}

#[derive(Debug)]
struct Subscriber {
    notes: Arc<Mutex<Notes>>,
    awake: watch::Sender<bool>,
    task: JoinHandle<()>,
    /// How many of its events were looked at.
    looked_at: usize,
    /// What is to be judged of it.
    told: Told,
    /// Its name in the feed, and which generator's.
    feed_id: u64,
    generation: usize,
    /// How many events it had heard from generators before that.
    heard_before: usize,
}

/// What became of a question.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Pending,
    Answered(Reading),
    Failed,
}

#[derive(Debug)]
struct Question {
    answer: Arc<Mutex<Asked>>,
    task: JoinHandle<()>,
}

/// The generator and its users.
#[derive(Debug)]
pub(super) struct Consumers {
    settings: Settings,
    clock: Clock,
    runtime: SimulatedRuntime,
    recorder: TraceRecorder,
    running: Option<Running>,
    /// How many generators there have been.
    generations: usize,
    subscribers: BTreeMap<String, Subscriber>,
    questions: BTreeMap<String, Question>,
    marks: BTreeMap<String, Mark>,
    breaches: Vec<Breach>,
}

#[derive(Debug)]
struct Running {
    pleg: Pleg,
    driver: JoinHandle<Result<(), crate::cri::StartError>>,
}

impl Consumers {
    pub(super) fn new(
        settings: Settings,
        clock: &Clock,
        runtime: &SimulatedRuntime,
        recorder: TraceRecorder,
    ) -> Self {
        Self {
            settings,
            clock: clock.clone(),
            runtime: runtime.clone(),
            recorder,
            running: None,
            generations: 0,
            subscribers: BTreeMap::new(),
            questions: BTreeMap::new(),
            marks: BTreeMap::new(),
            breaches: Vec::new(),
        }
    }

    /// Starts the generator, with the subscriber `main`.
    pub(super) fn start(&mut self) -> Result<(), String> {
        if self.running.is_some() {
            return Err("the generator runs already".into());
        }
        let (pleg, driver) = self.builder().build().map_err(|error| error.to_string())?;
        self.generations += 1;
        self.subscribe_to(&pleg, MAIN, WatchFrom::Now, true)?;
        self.running = Some(Running {
            pleg,
            driver: tokio::spawn(driver.run()),
        });
        Ok(())
    }

    /// Shuts the generator down and waits until it has ended.
    pub(super) async fn stop(&mut self) -> Result<(), String> {
        let running = self.running.take().ok_or("the generator does not run")?;
        running.pleg.shutdown().await;
        match running.driver.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the driver ended with an error: {error}")),
            Err(error) => Err(format!("the driver broke off: {error}")),
        }
    }

    /// The generator's handle.
    pub(super) fn pleg(&self) -> Result<&Pleg, String> {
        match &self.running {
            Some(running) => Ok(&running.pleg),
            None => Err("the generator does not run".into()),
        }
    }

    /// Does `action` if it is a consumer's; gives whether it was.
    pub(super) async fn perform(&mut self, action: &Action, names: &Names) -> Result<bool, String> {
        match action {
            Action::Subscribe(subscribe) => self.subscribe(subscribe)?,
            Action::StopReading(name) => self.set_awake(name, false)?,
            Action::ResumeReading(name) => self.set_awake(name, true)?,
            Action::Mark(name) => {
                let mark = self
                    .pleg()?
                    .mark()
                    .await
                    .map_err(|error| error.to_string())?;
                self.marks.insert(name.clone(), mark);
            }
            Action::Ask(ask) => self.ask(ask, names).await?,
            Action::GiveUp(name) => {
                let question = self
                    .questions
                    .get(name)
                    .ok_or_else(|| format!("nothing was asked as {name}"))?;
                question.task.abort();
            }
            Action::Relist(pod) => {
                let request = self.pleg()?.request_relist(names.uid(pod)?).await;
                request.map_err(|error| error.to_string())?;
            }
            Action::RelistAll => {
                let request = self.pleg()?.request_full_relist().await;
                request.map_err(|error| error.to_string())?;
            }
            Action::Reinspect(pod) => {
                let request = self.pleg()?.request_reinspect(names.uid(pod)?).await;
                request.map_err(|error| error.to_string())?;
            }
            Action::StopPleg => self.stop().await?,
            Action::StartPleg => self.start()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What a subscriber was told since this was last asked.
    pub(super) fn news(&mut self, name: &str) -> Result<Vec<Heard>, String> {
        let subscriber = self
            .subscribers
            .get_mut(name)
            .ok_or_else(|| format!("there is no subscriber {name}"))?;
        let notes = lock(&subscriber.notes);
        let news = notes
            .heard
            .get(subscriber.looked_at..)
            .unwrap_or_default()
            .to_vec();
        subscriber.looked_at = notes.heard.len();
        Ok(news)
    }

    /// The subscribers' names.
    pub(super) fn subscribers(&self) -> Vec<String> {
        self.subscribers.keys().cloned().collect()
    }

    /// What became of a question.
    pub(super) fn asked(&self, name: &str) -> Result<Asked, String> {
        self.questions
            .get(name)
            .map(|question| lock(&question.answer).clone())
            .ok_or_else(|| format!("nothing was asked as {name}"))
    }

    /// What each subscriber of the present generator was told, to be judged.
    pub(super) async fn told(&self) -> Result<Vec<Told>, String> {
        let stats = self.pleg()?.stats().await;
        let stats = stats.map_err(|error| error.to_string())?;
        let of_now = self.subscribers.values();
        let of_now = of_now.filter(|subscriber| subscriber.generation == self.generations);
        Ok(of_now
            .map(|subscriber| {
                let counters = stats.feed.subscribers.iter();
                let counters = counters
                    .filter(|stats| stats.id == subscriber.feed_id)
                    .map(|stats| stats.counters);
                let notes = lock(&subscriber.notes);
                let heard = notes.heard.iter().skip(subscriber.heard_before);
                Told {
                    is_awake: *subscriber.awake.borrow(),
                    folded_whole: counters.map(|counters| counters.folded_whole).sum(),
                    heard: heard
                        .map(|heard| (heard.at, Arc::clone(&heard.event)))
                        .collect(),
                    ..subscriber.told.clone()
                }
            })
            .collect())
    }

    /// Every event that `main` was told, in order.
    pub(super) fn all_heard(&self) -> Vec<Heard> {
        self.subscribers
            .get(MAIN)
            .map(|main| lock(&main.notes).heard.clone())
            .unwrap_or_default()
    }

    /// The breaches since this was last asked.
    pub(super) fn breaches(&mut self) -> Vec<Breach> {
        let mut breaches = std::mem::take(&mut self.breaches);
        for subscriber in self.subscribers.values() {
            breaches.append(&mut lock(&subscriber.notes).breaches);
        }
        breaches
    }

    fn builder(&self) -> Builder {
        let runtime = self.runtime.clone();
        let recorder = self.recorder.clone();
        let settings = &self.settings;
        let mut builder = Pleg::builder()
            .connector(move || runtime.channel())
            .stream_thread(false)
            .clock(self.clock.clone())
            .seed(settings.seed)
            .tap(move |tapped| recorder.take(tapped));
        if let Some(evented) = settings.evented {
            builder = builder.evented_pleg(evented);
        }
        if let Some(period) = settings.relist_period {
            builder = builder.relist_period(period.0);
        }
        if let Some(threshold) = settings.relist_threshold {
            builder = builder.relist_threshold(threshold.0);
        }
        if let Some(period) = settings.evented_relist_period {
            builder = builder.evented_relist_period(period.0);
        }
        if let Some(threshold) = settings.evented_relist_threshold {
            builder = builder.evented_relist_threshold(threshold.0);
        }
        if let Some(capacity) = settings.channel_capacity {
            builder = builder.channel_capacity(capacity);
        }
        if let Some(bytes) = settings.max_message_size {
            builder = builder.max_message_size(bytes);
        }
        if let Some(bytes) = settings.stream_inbox_bytes {
            builder = builder.stream_inbox_bytes(bytes);
        }
        builder
    }

    fn subscribe(&mut self, subscribe: &Subscribe) -> Result<(), String> {
        let pleg = self.pleg()?.clone();
        let from = if subscribe.with_snapshot {
            WatchFrom::Snapshot
        } else {
            WatchFrom::Now
        };
        if self.subscribers.contains_key(&subscribe.name) {
            return Err(format!("there is a subscriber {} already", subscribe.name));
        }
        self.subscribe_to(&pleg, &subscribe.name, from, !subscribe.asleep)
    }

    fn subscribe_to(
        &mut self,
        pleg: &Pleg,
        name: &str,
        from: WatchFrom,
        awake: bool,
    ) -> Result<(), String> {
        let subscription = pleg.watch(from).map_err(|error| error.to_string())?;
        let notes = match self.subscribers.get(name) {
            // It was told by another generator before: what it heard stays, what that knew does not.
            Some(before) => {
                lock(&before.notes).told.clear();
                Arc::clone(&before.notes)
            }
            None => Arc::default(),
        };
        let looked_at = self
            .subscribers
            .get(name)
            .map_or(0, |before| before.looked_at);
        let told = Told {
            name: name.to_owned(),
            since: self.recorder.len(),
            with_snapshot: from == WatchFrom::Snapshot || name == MAIN,
            ..Told::default()
        };
        let heard_before = lock(&notes).heard.len();
        let feed_id = subscription.stats().id;
        let (sender, receiver) = watch::channel(awake);
        let task = tokio::spawn(read(
            subscription,
            pleg.cache().clone(),
            self.clock.clone(),
            Arc::clone(&notes),
            receiver,
        ));
        self.subscribers.insert(
            name.to_owned(),
            Subscriber {
                notes,
                awake: sender,
                task,
                looked_at,
                told,
                feed_id,
                generation: self.generations,
                heard_before,
            },
        );
        Ok(())
    }

    fn set_awake(&mut self, name: &str, awake: bool) -> Result<(), String> {
        let subscriber = self
            .subscribers
            .get(name)
            .ok_or_else(|| format!("there is no subscriber {name}"))?;
        subscriber.awake.send_replace(awake);
        Ok(())
    }

    async fn ask(&mut self, ask: &Ask, names: &Names) -> Result<(), String> {
        let pleg = self.pleg()?.clone();
        let uid = names.uid(&ask.pod)?;
        let mark = match &ask.newer_than {
            None => pleg.mark().await.map_err(|error| error.to_string())?,
            Some(name) => *self
                .marks
                .get(name)
                .ok_or_else(|| format!("there is no mark {name}"))?,
        };
        let freshness = if ask.phases_only {
            Freshness::Phases
        } else {
            Freshness::Details
        };
        let answer = Arc::new(Mutex::new(Asked::Pending));
        let written = Arc::clone(&answer);
        let task = tokio::spawn(async move {
            let asked = match pleg.get_newer_than(uid, mark, freshness).await {
                Ok(reading) => Asked::Answered(reading),
                Err(_) => Asked::Failed,
            };
            *lock(&written) = asked;
        });
        let question = Question { answer, task };
        if let Some(before) = self.questions.insert(ask.name.clone(), question) {
            before.task.abort();
        }
        Ok(())
    }
}

impl Drop for Consumers {
    fn drop(&mut self) {
        for subscriber in self.subscribers.values() {
            subscriber.task.abort();
        }
        for question in self.questions.values() {
            question.task.abort();
        }
    }
}

/// Reads while awake, and writes down what it is told.
async fn read(
    mut events: Subscription,
    cache: Cache,
    clock: Clock,
    notes: Arc<Mutex<Notes>>,
    mut awake: watch::Receiver<bool>,
) {
    loop {
        if awake.wait_for(|awake| *awake).await.is_err() {
            return;
        }
        tokio::select! {
            biased;
            changed = awake.changed() => if changed.is_err() { return },
            event = events.next() => {
                let Some(event) = event else { return };
                lock(&notes).take(clock.now().mono, event, &cache);
            }
        }
    }
}

impl Notes {
    fn take(&mut self, at: Mono, event: Arc<LifecycleEvent>, cache: &Cache) {
        let mut breach = |law, got| {
            self.breaches.push(Breach {
                at,
                law,
                event: Arc::clone(&event),
                got,
            });
        };
        if let Some(subject) = subject_of(&event) {
            let told = self.told.insert(subject.clone(), event.kind);
            if let Some(told) = told.filter(|told| *told >= event.kind) {
                let got = format!("{told} had been told");
                breach("each thing is told once, and in order", got);
            }
            if let Some(shown) =
                shown(cache, &event, &subject).filter(|shown| !agrees(*shown, event.kind))
            {
                let got = format!("the cache showed {shown}");
                breach("the cache is written first", got);
            }
        }
        self.heard.push(Heard { at, event });
    }
}

fn subject_of(event: &LifecycleEvent) -> Option<SubjectId> {
    match event.kind {
        LifecycleKind::PodSync => None,
        _ => event.subject.as_ref().map(EventSubject::id),
    }
}

/// What the cache shows of the subject; `None`: nothing, which is as far as it gets.
fn shown(cache: &Cache, event: &LifecycleEvent, subject: &SubjectId) -> Option<ReportedState> {
    let status = cache.get(&event.pod.uid)?.status;
    match subject {
        SubjectId::Sandbox(id) => {
            let mut all = status.sandboxes.iter();
            all.find(|sandbox| sandbox.id == *id)
                .map(|sandbox| sandbox.state)
        }
        SubjectId::Container(id) => {
            let mut all = status.containers.iter();
            all.find(|container| container.id == *id)
                .map(|container| container.state)
        }
    }
}

/// Whether the cache is as far as the event, or further. Unknown says nothing.
fn agrees(shown: ReportedState, kind: LifecycleKind) -> bool {
    match kind {
        LifecycleKind::ContainerStarted => shown != ReportedState::Created,
        LifecycleKind::ContainerDied => {
            matches!(shown, ReportedState::Exited | ReportedState::Unknown)
        }
        LifecycleKind::ContainerRemoved => false,
        LifecycleKind::PodSync => true,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds the lock can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
