//! Plays a recording: the same inputs at the same moments into the same engine.
//!
//! The engine is driven directly, without client, transport or tokio: the recording *is* what those
//! made of a real run, and anything between it and the engine could only make it less exact. Time is
//! what the entries say; nothing waits.
//!
//! As long as the engine asks exactly what the recorded one asked, at the same points, the two are in
//! step, and the replay is exact, to the counter and the stamp. Once it asks anything else (it is a newer
//! version, has other settings, or the recording is an excerpt) it has left the step for good. From there
//! it keeps its own timers; recorded messages still come when they came; a question that was
//! recorded as well gets the recorded answer when that came; any other is answered from what the
//! recording [knows](Known) at that moment of each id, else as soon as it knows, else as
//! unrecorded. Each of those is counted.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use super::deliveries::Deliveries;
use super::error::ReadError;
use super::format::{Entry, Header, Record};
use super::known::{Known, StreamState};
use super::read::{Reader, open};
use crate::cri::Tapped;
use crate::engine::{
    Answer, Counters, Engine, Failure, FailureKind, Input, Inspection, Mode, Output, Question,
    RequestId, SessionId, Settings, StreamEnd,
};
use crate::lifecycle::{Mono, Now, UnixNanos};
use crate::scenario::trace::{Trace, TraceRecorder};

/// How long an answer takes that was not recorded.
const LATENCY: Duration = Duration::from_millis(1);

/// How far a question may lie before the recorded one that it is taken for.
const SAME_QUESTION: Duration = Duration::from_secs(1);

/// The deadline of all calls but `Version`, as live.
const CALL_DEADLINE: Duration = Duration::from_secs(120);
const VERSION_DEADLINE: Duration = Duration::from_secs(5);

/// How close to the recorded run a replay was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// The engine asked what was recorded and got what was recorded, all at the recorded moments.
    Exact,
    /// It did not, so often.
    Approximate(Deviations),
}

/// Where and how a replay left the recorded run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deviations {
    /// The line at which it left the step.
    pub line: u64,
    /// Questions answered from what the recording knew of each id.
    pub answered_otherwise: u64,
    /// Questions that the recording had no answer to.
    pub unrecorded: u64,
    /// Things of the stream that came while the engine had none open.
    pub untaken: u64,
    /// Entries that the recording lacks.
    pub missing: u64,
    /// Stretches between two entries that were too long to be lived through timer by timer. A
    /// recorded engine never was silent for so long: the file is damaged, or was written by hand.
    pub leaps: u64,
}

impl Deviations {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.answered_otherwise + self.unrecorded + self.untaken + self.missing + self.leaps
    }
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Approximate(deviations) => write!(f, "approximate: {}", deviations.total()),
        }
    }
}

/// What came of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The recording's header.
    pub header: Header,
    /// How close it was.
    pub fidelity: Fidelity,
    /// Entries read.
    pub entries: u64,
    /// The time that they span.
    pub span: Duration,
    /// Whether the file ends within a line.
    pub is_cut_off: bool,
    /// Events delivered.
    pub delivered: u64,
    /// The engine's mode at the end.
    pub mode: Mode,
    /// What the engine counted.
    pub counters: Counters,
}

/// Plays a recording to its end, with the recorded settings or others. `show` is shown what a tap on a
/// live run is: every input that the replayed engine takes, and every output.
///
/// # Errors
///
/// If a line cannot be read. What was shown before it stands.
pub fn play<R: BufRead>(
    reader: &mut Reader<R>,
    settings: Option<Settings>,
    show: &mut dyn FnMut(Tapped<'_>),
) -> Result<Replayed, ReadError> {
    let header = reader.header().clone();
    let settings = settings.unwrap_or_else(|| header.settings.clone());
    show(Tapped::Begun {
        now: header.began,
        settings: &settings,
    });
    let mut player = Player::new(Engine::new(settings), &header, show);
    let mut entries = 0;
    while let Some(entry) = reader.next_entry()? {
        entries += 1;
        player.line = reader.line();
        player.enter(entry);
    }
    player.deviations.unrecorded += player.unanswerable();
    Ok(Replayed {
        fidelity: if player.in_step {
            Fidelity::Exact
        } else {
            Fidelity::Approximate(player.deviations)
        },
        entries,
        span: player.now.mono.since(header.began.mono),
        is_cut_off: reader.is_cut_off(),
        delivered: player.delivered,
        mode: player.engine.mode(),
        counters: player.engine.counters().clone(),
        header,
    })
}

/// A recording that was played, with what came of it.
#[derive(Clone, Debug)]
pub struct PlayedRecording {
    /// How it went.
    pub replayed: Replayed,
    /// What was delivered.
    pub deliveries: Deliveries,
    /// All that went into the engine and came out of it, if it was to be kept.
    pub trace: Option<Trace>,
}

/// Opens a recording and plays it with its own settings. A trace is as long as the recording: it is
/// kept only if it is wanted.
///
/// # Errors
///
/// If the file cannot be read, or no further than some line.
pub fn play_file(path: &Path, keep_trace: bool) -> Result<PlayedRecording, ReadError> {
    let mut reader = open(path)?;
    let mut deliveries = Deliveries::default();
    let tracer = keep_trace.then(TraceRecorder::default);
    let replayed = play(&mut reader, None, &mut |tapped| {
        if let Tapped::Output(Output::Deliver(event)) = tapped {
            deliveries.push(event);
        }
        if let Some(tracer) = &tracer {
            tracer.take(tapped);
        }
    })?;
    Ok(PlayedRecording {
        replayed,
        deliveries,
        trace: tracer.map(|tracer| tracer.finish()),
    })
}

/// Timers and answers that one stretch between two entries may have. A recorded engine asked for
/// something every few seconds; this is hours of an engine that polls.
const MOST_TURNS: u64 = 50_000;

/// What each entry gives back of them, so that a damaged file costs time in step with its length.
const TURNS_PER_ENTRY: u64 = 1_000;

/// What the engine wants of the runtime, as the recording has it too.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    Ask(RequestId, Question),
    Open(SessionId),
    Close(SessionId),
}

/// A question of the engine's that has no answer yet.
#[derive(Clone, Debug)]
struct Pending {
    question: Question,
    asked: Mono,
    answer: Awaited,
}

/// Where its answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The answer to this recorded question.
    Recorded(RequestId),
    /// What the recording knows, at this moment.
    Known(Mono),
    /// The next that the recording tells of it.
    Next,
}

struct Player<'t> {
    engine: Engine,
    /// What the engine may still do by its own timers.
    turns: u64,
    show: &'t mut dyn FnMut(Tapped<'_>),
    now: Now,
    line: u64,
    started: bool,
    in_step: bool,
    deviations: Deviations,
    delivered: u64,
    known: Known,
    /// Recorded questions without an answer so far.
    recorded: BTreeMap<RequestId, (Question, Mono)>,
    /// While in step: what the engine wants and the recording must show next.
    wishes: VecDeque<Wish>,
    pending: BTreeMap<RequestId, Pending>,
    /// The engine's open stream.
    session: Option<SessionId>,
    /// When that stream ends which the engine asked for while the recorded one had none.
    refusal: Option<(Mono, StreamEnd)>,
}

impl<'t> Player<'t> {
    fn new(engine: Engine, header: &Header, show: &'t mut dyn FnMut(Tapped<'_>)) -> Self {
        let mut known = Known::default();
        if let Some(runtime) = &header.runtime {
            known.set_version(runtime.clone());
        }
        Self {
            engine,
            turns: MOST_TURNS,
            show,
            now: header.began,
            line: 1,
            started: false,
            in_step: true,
            deviations: Deviations::default(),
            delivered: 0,
            known,
            recorded: BTreeMap::new(),
            wishes: VecDeque::new(),
            pending: BTreeMap::new(),
            session: None,
            refusal: None,
        }
    }

    fn enter(&mut self, entry: Entry) {
        let Entry { at, record } = entry;
        self.turns = MOST_TURNS.min(self.turns + TURNS_PER_ENTRY);
        if !self.is_expected(&record) {
            // Where it left the step is where it stands, not where the recording goes on.
            self.leave_step();
        }
        if !self.in_step {
            self.run_until(at.mono);
        }
        self.now = at;
        if let Record::Known(known) = record {
            // In the middle of a file it says what was just played.
            if !self.started {
                let version = self.known.version().cloned();
                self.known = *known;
                if let (None, Some(version)) = (self.known.version(), version) {
                    self.known.set_version(version);
                }
            }
            return self.start_in_the_middle();
        }
        if !self.started && record != Record::Taken(Input::Start) {
            self.start_in_the_middle();
        }
        match record {
            Record::Taken(input) => self.taken(input),
            Record::Asked { request, question } => {
                if !self.in_step {
                    self.bind(request, &question);
                }
                self.recorded.insert(request, (question, at.mono));
            }
            Record::StreamOpened { session } => {
                self.known.set_stream(StreamState::Open(session));
                self.refusal = None;
            }
            Record::Marked => {
                (self.show)(Tapped::Marked { now: at });
                self.engine.mark(self.now);
            }
            Record::Gap { dropped } => {
                self.deviations.missing += dropped;
            }
            Record::StreamClosed { .. } | Record::Known(_) => {}
        }
    }

    fn start_in_the_middle(&mut self) {
        self.leave_step();
        if !self.started {
            self.started = true;
            self.handle(Input::Start);
        }
    }

    /// Whether the recorded engine went on as this one did: it wanted the same, and nothing is missing.
    fn is_expected(&mut self, record: &Record) -> bool {
        let wish = match record {
            Record::Asked { request, question } => Wish::Ask(*request, question.clone()),
            Record::StreamOpened { session } => Wish::Open(*session),
            Record::StreamClosed { session } => Wish::Close(*session),
            Record::Taken(_) | Record::Marked => return self.wishes.is_empty(),
            Record::Gap { .. } | Record::Known(_) => return false,
        };
        self.wishes.pop_front() == Some(wish)
    }

    fn taken(&mut self, input: Input) {
        self.learn(&input);
        self.started |= input == Input::Start;
        if self.in_step {
            match &input {
                Input::Answered { request, .. } => {
                    self.recorded.remove(request);
                    self.pending.remove(request);
                }
                Input::StreamEnded { session, .. } if self.session == Some(*session) => {
                    self.session = None;
                }
                _ => {}
            }
            return self.handle(input);
        }
        self.taken_out_of_step(input);
    }

    fn taken_out_of_step(&mut self, input: Input) {
        match input {
            // It has its own timers, and was started.
            Input::Wake | Input::Start => {}
            Input::Answered { request, answer } => {
                self.recorded.remove(&request);
                let bound = self
                    .pending
                    .iter()
                    .find(|(_, pending)| pending.answer == Awaited::Recorded(request))
                    .map(|(request, _)| *request);
                if let Some(request) = bound {
                    self.pending.remove(&request);
                    self.handle(Input::Answered { request, answer });
                }
                self.look_again();
            }
            Input::StreamMessage { event, .. } => {
                self.streamed(|session| Input::StreamMessage { session, event });
                self.look_again();
            }
            Input::StreamGarbage { refusal, .. } => {
                self.streamed(|session| Input::StreamGarbage { session, refusal });
            }
            Input::StreamOverflow { pods, dropped, .. } => {
                self.streamed(|session| Input::StreamOverflow {
                    session,
                    pods,
                    dropped,
                });
            }
            Input::StreamEnded { end, .. } => {
                self.streamed(|session| Input::StreamEnded { session, end });
                self.session = None;
            }
            wish @ (Input::Read { .. }
            | Input::CancelRead { .. }
            | Input::RequestRelist { .. }
            | Input::RequestReinspect { .. }
            | Input::Shutdown) => self.handle(wish),
        }
    }

    fn streamed(&mut self, input: impl FnOnce(SessionId) -> Input) {
        match self.session {
            Some(session) => self.handle(input(session)),
            None => self.deviations.untaken += 1,
        }
    }

    fn learn(&mut self, input: &Input) {
        let at = self.now.mono;
        match input {
            Input::Answered { request, answer } => {
                // The answer to a question of before the recording is of an unknown age.
                let (full, begun) = match self.recorded.get(request) {
                    Some((question, begun)) => (*question == Question::FullRelist, *begun),
                    None => (false, Mono(0)),
                };
                self.known.take_answer(answer, begun, at, full);
            }
            Input::StreamMessage { event, .. } => self.known.take_event(event, at),
            Input::StreamEnded { end, .. } => {
                self.known.set_stream(StreamState::Ended(end.clone()));
            }
            _ => {}
        }
    }

    /// Gives the engine an input now, and carries out what it wants.
    fn handle(&mut self, input: Input) {
        let now = self.now;
        (self.show)(Tapped::Input { now, input: &input });
        self.engine.handle(now, input);
        while let Some(output) = self.engine.poll_output() {
            (self.show)(Tapped::Output(&output));
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Ask { request, question } => self.asked(request, question),
            Output::OpenStream { session } => {
                self.session = Some(session);
                if self.in_step {
                    self.wishes.push_back(Wish::Open(session));
                } else {
                    self.refuse_unless_open();
                }
            }
            Output::CloseStream { session } => {
                self.session = None;
                self.refusal = None;
                if self.in_step {
                    self.wishes.push_back(Wish::Close(session));
                }
            }
            Output::Deliver(_) => self.delivered += 1,
            Output::ModeChanged(_)
            | Output::Publish { .. }
            | Output::Observed { .. }
            | Output::ObservedAll { .. }
            | Output::Answer { .. }
            | Output::Note(_) => {}
        }
    }

    fn asked(&mut self, request: RequestId, question: Question) {
        let answer = if self.in_step {
            self.wishes.push_back(Wish::Ask(request, question.clone()));
            Awaited::Recorded(request)
        } else {
            self.source_of(&question, self.now.mono)
        };
        let pending = Pending {
            question,
            asked: self.now.mono,
            answer,
        };
        self.pending.insert(request, pending);
    }

    /// Where the answer to a question comes from that the engine asks out of step.
    fn source_of(&self, question: &Question, asked: Mono) -> Awaited {
        let is_free = |request: &RequestId| {
            self.pending
                .values()
                .all(|pending| pending.answer != Awaited::Recorded(*request))
        };
        // One that is out in the recording too, and was sent about now.
        let same = self.recorded.iter().find(|(request, (recorded, begun))| {
            recorded == question && asked.since(*begun) <= SAME_QUESTION && is_free(request)
        });
        match same {
            Some((request, _)) => Awaited::Recorded(*request),
            None => Awaited::Known(asked.after(LATENCY)),
        }
    }

    /// A question was recorded that the engine has perhaps just asked as well.
    fn bind(&mut self, request: RequestId, question: &Question) {
        let now = self.now.mono;
        let same = self.pending.values_mut().find(|pending| {
            pending.question == *question
                && !matches!(pending.answer, Awaited::Recorded(_))
                && now.since(pending.asked) <= SAME_QUESTION
        });
        if let Some(pending) = same {
            pending.answer = Awaited::Recorded(request);
        }
    }

    fn refuse_unless_open(&mut self) {
        self.refusal = match self.known.stream() {
            Some(StreamState::Ended(end)) => Some((self.now.mono.after(LATENCY), end.clone())),
            Some(StreamState::Open(_)) | None => None,
        };
    }

    fn leave_step(&mut self) {
        if !self.in_step {
            return;
        }
        self.in_step = false;
        self.deviations.line = self.line;
        self.wishes.clear();
        // In step the numbers agree; what the recording did not ask must be answered otherwise.
        let now = self.now.mono;
        let recorded = &self.recorded;
        for (request, pending) in &mut self.pending {
            let is_recorded = recorded
                .get(request)
                .is_some_and(|(question, _)| *question == pending.question);
            if !is_recorded {
                pending.answer = Awaited::Known(now.after(LATENCY));
            }
        }
        if self.session.is_some() {
            self.refuse_unless_open();
        }
    }

    /// Lets the engine's own time pass, up to the next entry.
    fn run_until(&mut self, end: Mono) {
        loop {
            let answer = self
                .pending
                .iter()
                .map(|(request, pending)| (pending.due(), *request))
                .min();
            let refusal = self.refusal.as_ref().map(|(at, _)| *at);
            let wake = self.engine.poll_timeout();
            let next = [answer.map(|(at, _)| at), refusal, wake]
                .into_iter()
                .flatten()
                .min();
            let Some(next) = next.filter(|next| *next <= end) else {
                return;
            };
            let Some(turns) = self.turns.checked_sub(1) else {
                self.deviations.leaps += 1;
                return self.pass_to(end);
            };
            self.turns = turns;
            self.pass_to(next);
            if let Some((at, request)) = answer
                && at <= next
            {
                self.answer_otherwise(request);
            } else if refusal == Some(next)
                && let Some((_, end)) = self.refusal.take()
                && let Some(session) = self.session.take()
            {
                self.deviations.answered_otherwise += 1;
                self.handle(Input::StreamEnded { session, end });
            } else {
                self.handle(Input::Wake);
                if self.engine.poll_timeout() == wake {
                    // It wants the same again: no engine does, but none shall hang a replay.
                    let later = self.now.mono.after(LATENCY);
                    self.pass_to(later.min(end));
                    if later > end {
                        return;
                    }
                }
            }
        }
    }

    fn pass_to(&mut self, at: Mono) {
        let passed = i64::try_from(at.since(self.now.mono).as_nanos()).unwrap_or(i64::MAX);
        self.now = Now {
            mono: at.max(self.now.mono),
            wall: UnixNanos(self.now.wall.0.saturating_add(passed)),
        };
    }

    /// Answers a question that the recorded engine did not ask.
    fn answer_otherwise(&mut self, request: RequestId) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let answer = if let Some(answer) = answer_from(&self.known, &pending.question) {
            self.deviations.answered_otherwise += 1;
            answer
        } else if pending.answer == Awaited::Next {
            // Its deadline has come.
            self.deviations.unrecorded += 1;
            unrecorded(&self.known, &pending.question)
        } else {
            pending.answer = Awaited::Next;
            return;
        };
        self.pending.remove(&request);
        self.handle(Input::Answered { request, answer });
    }

    /// The recording has told something: perhaps what a question waits for.
    fn look_again(&mut self) {
        let answerable: Vec<RequestId> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.answer == Awaited::Next)
            .filter(|(_, pending)| answer_from(&self.known, &pending.question).is_some())
            .map(|(request, _)| *request)
            .collect();
        for request in answerable {
            self.answer_otherwise(request);
        }
    }

    /// Questions that wait for what never came.
    fn unanswerable(&self) -> u64 {
        let waiting = self.pending.values();
        let waiting = waiting.filter(|pending| pending.answer == Awaited::Next);
        waiting.count() as u64
    }
}

impl Pending {
    /// When something is to be done about it, if the recording does nothing before.
    fn due(&self) -> Mono {
        match self.answer {
            Awaited::Known(at) => at,
            Awaited::Recorded(_) => Mono(u64::MAX),
            Awaited::Next => self.asked.after(match self.question {
                Question::Version => VERSION_DEADLINE,
                _ => CALL_DEADLINE,
            }),
        }
    }
}

/// What a recording knows in answer to a question; `None` if not all of it.
fn answer_from(known: &Known, question: &Question) -> Option<Answer> {
    Some(match question {
        Question::Version => Answer::Version(Ok(known.version()?.clone())),
        Question::FullRelist => {
            known.is_listed().then_some(())?;
            Answer::Listed(Ok(known.node_list()))
        }
        Question::PodRelist { uid } => {
            known.is_listed().then_some(())?;
            Answer::Listed(Ok(known.pod_list(uid)))
        }
        Question::Inspect {
            uid: _,
            sandboxes,
            containers,
        } => Answer::Inspected(Inspection {
            sandboxes: sandboxes
                .iter()
                .map(|id| Some((id.clone(), known.sandbox(id)?)))
                .collect::<Option<_>>()?,
            containers: containers
                .iter()
                .map(|id| Some((id.clone(), known.container(id)?)))
                .collect::<Option<_>>()?,
        }),
    })
}

/// The answer to a question that the recording has none to: what it knows, and failures for the rest.
fn unrecorded(known: &Known, question: &Question) -> Answer {
    let failure = || Failure {
        kind: FailureKind::Other,
        message: "unrecorded: the recording has no answer to this".into(),
    };
    match question {
        Question::Version => Answer::Version(Err(failure())),
        Question::FullRelist | Question::PodRelist { .. } => Answer::Listed(Err(failure())),
        Question::Inspect {
            uid: _,
            sandboxes,
            containers,
        } => Answer::Inspected(Inspection {
            sandboxes: sandboxes
                .iter()
                .map(|id| {
                    let status = known.sandbox(id).unwrap_or_else(|| Err(failure()));
                    (id.clone(), status)
                })
                .collect(),
            containers: containers
                .iter()
                .map(|id| {
                    let status = known.container(id).unwrap_or_else(|| Err(failure()));
                    (id.clone(), status)
                })
                .collect(),
        }),
    }
}
