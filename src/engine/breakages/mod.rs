#![allow(warnings)]
use std::time::Duration;
use super::model::*;
use crate::law::Law;
const SANDBOX: Subject = Subject(0);
const CONTAINER: Subject = Subject(1);
const L: &[Law] = {
    use Law::*;
    &[
EventsReplaceNothing,FurtherPhaseWins,DetailsInDoubtStay,StepBackSettles,StepBackIsConfirmed,SupportCancelsDoubt,StepBackIsToldAsSync,AbsenceNeedsOlderNews,EventNewsSettles,UnjudgedAbsenceIsAskedAgain,FailedReadsProveNothing,FiltersSpeakOfTheirOwn,TombstonesAreKept,TombstonesOutlastTheirProof,OnlyReadsProveRemoval,StaleNewsIsNotTaken,StaleReadsAreNotTaken,ClockStepsAreGuarded,UnknownDeletedChangesNothing,ContradictionsAreNotMerged,WishesNeedLaterReads,AbsurdStampsAreRefused,MarksAreHonoured,HearsayVouchesForNothing,OnlyAgreementVouches,ReadersCauseReads,CacheFirst,ToldOnce,FoldsKeepOwedEnds,EventsWaitForDetails,OneRelistAtATime,LateAnswersKeepTheirWindow,MissesHaveGrace,MissesRestartTheRamp,SilenceEarnsLittle,GapsAreNoDistrust,UnsettledAreWatched,BackoffOutlivesConnecting,HealthIsNotWashedClean,
    ]
};
fn habits(faults: &'static [Fault], in_flight: usize, sc: bool, late: bool, lingers: &'static [u32]) -> Habits {
    Habits { in_flight, addresses_late: late, sandboxes_change: sc, faults, lingers }
}
fn budget(faults: u8, failures: u8, readers: u8, requests: u8, wakes: u8, lingers: u8) -> Budget {
    Budget { faults, failures, readers, requests, wakes, lingers }
}
type S = (&'static str, fn() -> Result<Run, Violation>);
const S1: &[(Subject, Stage)] = &[(SANDBOX, Stage::Running)];
const C1: &[(Subject, Stage)] = &[(SANDBOX, Stage::Running), (CONTAINER, Stage::Created), (CONTAINER, Stage::Running)];
fn searches() -> Vec<S> {
    vec![
        ("delay", || Run::settled(ONE_CONTAINER, habits(&[], 2, false, false, &[1100]), budget(0,0,0,1,1,1), S1)),
        ("failures", || Run::settled(ONE_CONTAINER, habits(&[], 1, false, false, &[1100]), budget(0,2,1,1,1,1), C1)),
        ("readers", || Run::settled(ONE_CONTAINER, habits(&[Fault::FalseDeleted], 1, false, false, &[1100]), budget(1,0,1,0,1,1), C1)),
        ("dup", || Run::settled(ONE_CONTAINER, habits(&[Fault::Duplicate, Fault::Reorder], 3, false, false, &[1100]), budget(2,0,0,1,1,1), S1)),
        ("late", || Run::settled(ONE_CONTAINER, habits(&[Fault::Lateness, Fault::BadSnapshot], 2, false, false, &[1100,70_000]), budget(2,0,0,1,1,1), C1)),
        ("loss", || Run::settled(ONE_CONTAINER, habits(&[Fault::Loss], 1, false, false, &[1100,70_000]), budget(2,0,0,1,1,2), C1)),
        ("false", || Run::settled(ONE_CONTAINER, habits(&[Fault::FalseDeleted], 2, false, false, &[1100]), budget(1,0,0,1,1,2), C1)),
        ("clock", || Run::settled(ONE_CONTAINER, habits(&[Fault::ClockStep, Fault::Lateness, Fault::Loss], 1, false, false, &[70_000]), budget(3,0,0,2,1,2), C1)),
        ("addresses", || Run::settled(ONE_CONTAINER, habits(&[Fault::Lateness, Fault::BadSnapshot], 2, true, true, &[1100]), budget(2,0,0,1,1,1), &[])),
        ("unlabelled", || Run::settled(UNLABELLED, habits(&[Fault::Loss], 1, false, false, &[1100]), budget(1,0,1,1,1,1), C1)),
        ("cold", || Run::cold(ONE_CONTAINER, habits(&[], 1, true, false, &[1100]), budget(0,1,1,1,1,2), Truth::NOTHING.with(SANDBOX, Stage::Running))),
    ]
}
#[test]
fn experiment() {
    let states: usize = std::env::var("ST").ok().and_then(|t| t.parse().ok()).unwrap_or(2000);
    let only = std::env::var("LAW").unwrap_or_default();
    let onlys = std::env::var("SEARCH").unwrap_or_default();
    let mut laws: Vec<Option<Law>> = L.iter().copied().map(Some).collect();
    laws.insert(0, None);
    for law in laws {
        if !format!("{law:?}").contains(&only) { continue; }
        for (name, start) in searches() {
            if !name.contains(&onlys) { continue; }
            let _g = law.map(Law::suspend);
            let t = std::time::Instant::now();
            let start = match start() { Ok(run) => run, Err(v) => { println!("{law:?} {name}: AT START {} {}", v.property, &v.detail[..v.detail.len().min(150)]); continue } };
            let b = t.elapsed();
            let r = explore(name, &start, Bounds { states, depth: usize::MAX, time: None }, &|_| false);
            match r {
                Ok(e) => println!("{law:?} {name}: - ({} states depth {} {:?} {:?})", e.states, e.depth, b, t.elapsed()),
                Err(c) => println!("{law:?} {name}: {} len {} ({:?}) {}", c.violation.property, c.steps.len(), t.elapsed(), &c.violation.detail[..c.violation.detail.len().min(150)]),
            }
        }
    }
}
