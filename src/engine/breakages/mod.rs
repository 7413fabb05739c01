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

fn env(n: &str, d: &str) -> String { std::env::var(n).unwrap_or(d.to_owned()) }
fn start() -> Result<Run, Violation> {
    let faults: Vec<Fault> = Fault::ALL.iter().copied().filter(|f| { let e = env("FAULTS", "ALL"); e == "ALL" || e.split(',').any(|n| n == format!("{f:?}")) }).collect();
    let lingers: Vec<u32> = env("LINGERS", "1100,3000,70000").split(',').filter(|s| !s.is_empty()).map(|s| s.parse().unwrap()).collect();
    let h = habits(faults.leak(), env("INFLIGHT", "2").parse().unwrap(), env("SC", "1") == "1", env("LATE", "0") == "1", lingers.leak());
    let b: Vec<u8> = env("BUDGET", "2,1,1,1,1,1").split(',').map(|s| s.parse().unwrap()).collect();
    let b = budget(b[0], b[1], b[2], b[3], b[4], b[5]);
    let cast = match env("CAST", "1").as_str() { "1" => ONE_CONTAINER, "2" => TWO_CONTAINERS, "s" => TWO_SANDBOXES, _ => UNLABELLED };
    const R: (Subject, Stage) = (SANDBOX, Stage::Running);
    const C: (Subject, Stage) = (CONTAINER, Stage::Created);
    const CR: (Subject, Stage) = (CONTAINER, Stage::Running);
    match env("START", "run").as_str() {
        "run" => Run::settled(cast, h, b, &[R, C, CR]),
        "created" => Run::settled(cast, h, b, &[R, C]),
        "ready" => Run::settled(cast, h, b, &[R]),
        "served" => Run::settled(cast, h, b, &[R, C, CR]).and_then(|mut r| { for n in env("PRE","").split(';').filter(|s| !s.is_empty()) { let s = r.steps().into_iter().find(|s| format!("{s:?}") == n).unwrap_or_else(|| panic!("{n} not in {:#?}", r.steps())); r.apply(s)?; } Ok(r) }),
        "none" => Run::settled(cast, h, b, &[]),
        "cold" => Run::cold(cast, h, b, Truth::NOTHING.with(SANDBOX, Stage::Running)),
        _ => Run::cold(cast, h, b, Truth::NOTHING),
    }
}
#[test]
fn experiment() {
    let states: usize = env("ST", "2000").parse().unwrap();
    let walks: u64 = env("WALKS", "0").parse().unwrap();
    let length: usize = env("LEN", "40").parse().unwrap();
    let only = env("LAW", "");
    let mut laws: Vec<Option<Law>> = L.iter().copied().map(Some).collect();
    laws.insert(0, None);
    for law in laws {
        let n = law.map_or("None".into(), |l| format!("{l:?}"));
        if !only.is_empty() && !only.split(',').any(|o| o == n) { continue; }
        let t = std::time::Instant::now();
        let start = match start() { Ok(run) => run, Err(v) => { println!("{n}: AT START {} {}", v.property, &v.detail[..v.detail.len().min(150)]); continue } };
        let _g = law.map(Law::suspend);
        let show = |c: &Counterexample, m: String| println!("{n}: {} len {} ({m} {:?}) {}\n     {:?}", c.violation.property, c.steps.len(), t.elapsed(), &c.violation.detail[..c.violation.detail.len().min(150)], c.steps);
        if walks > 0 {
            let mut found = false;
            for nth in 0..walks {
                if let Err(c) = walk("w", &start, &mut Dice::seeded(nth * 77 + 5), length) {
                    show(&c, format!("walk {nth}")); found = true; break;
                }
            }
            if !found { println!("{n}: - {walks} walks {:?}", t.elapsed()); }
            continue;
        }
        match search("e", &start, Bounds::states(states), &|| true) {
            Ok(e) => println!("{n}: - ({} states depth {} {} {:?})", e.states, e.depth, e.exhausted, t.elapsed()),
            Err(c) => show(&c, String::new()),
        }
    }
}
