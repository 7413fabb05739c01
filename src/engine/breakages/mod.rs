//! The checks are checked: a law is broken on purpose, and the model's search must miss it.
//!
//! Each test names one law, the property whose violation shows that it was broken, and a start from
//! which few steps are enough. The same search finds nothing while the law is kept. What the model
//! cannot tell (when a miss counts, how much a stream is trusted, news that lags, details that
//! differ) is told by stories: `engine::tests::breakages`, and beside `lifecycle::merge`,
//! `engine::supervisor` and `engine::health`.

mod starts;

use super::model::{Bounds, Run, search};
use crate::law::Law;

use starts::{
    created, false_news, just_begun, late_news_of_the_dead, losses, made_by_crictl,
    old_reads_of_the_dead, out_of_order, requests, sandbox_alone, stalled, stepped_back, unborn,
};

/// Searches all that may happen within so many steps, with the law and without it.
fn is_missed(law: Law, property: &str, start: &Run, steps: usize) {
    let bounds = Bounds {
        depth: steps,
        ..Bounds::states(10_000)
    };
    let look = || search("a law is broken", start, bounds, &|| true);
    if let Err(counterexample) = look() {
        panic!("with every law kept: {counterexample}");
    }
    let broken = {
        let _suspension = law.suspend();
        look()
    };
    match broken {
        Ok(explored) => panic!("{law:?} is broken and nothing misses it: {explored:?}"),
        Err(found) => assert_eq!(found.violation.property, property, "{law:?}: {found}"),
    }
}

#[test]
fn a_nearer_phase_that_wins_is_a_regress() {
    is_missed(Law::FurtherPhaseWins, "No regress", &out_of_order(), 4);
}

#[test]
fn a_step_back_that_is_told_by_no_pod_sync_leaves_subscribers_behind() {
    is_missed(Law::StepBackIsToldAsSync, "Complete", &stepped_back(), 2);
}

#[test]
fn absence_from_a_list_older_than_the_first_news_removes_what_is_there() {
    is_missed(Law::AbsenceNeedsOlderNews, "Nothing invented", &unborn(), 4);
}

#[test]
fn a_late_answer_judged_by_its_arrival_removes_what_is_there() {
    is_missed(
        Law::LateAnswersKeepTheirWindow,
        "Nothing invented",
        &unborn(),
        5,
    );
}

#[test]
fn a_failed_list_that_proves_absence_removes_what_is_there() {
    is_missed(
        Law::FailedReadsProveNothing,
        "Nothing invented",
        &requests(),
        2,
    );
}

#[test]
fn a_filtered_list_that_speaks_for_all_removes_what_is_there() {
    is_missed(
        Law::FiltersSpeakOfTheirOwn,
        "Nothing invented",
        &made_by_crictl(),
        1,
    );
}

#[test]
fn without_tombstones_late_news_brings_the_dead_back() {
    is_missed(Law::TombstonesAreKept, "No regress", &out_of_order(), 4);
}

#[test]
fn a_tombstone_that_goes_with_the_next_list_lets_late_news_bring_the_dead_back() {
    is_missed(
        Law::TombstonesOutlastTheirProof,
        "No regress",
        &late_news_of_the_dead(0),
        3,
    );
}

#[test]
fn a_deleted_that_proves_a_removal_has_readers_told_what_is_not_so() {
    is_missed(
        Law::OnlyReadsProveRemoval,
        "Honest freshness",
        &sandbox_alone(),
        4,
    );
}

#[test]
fn stale_news_that_is_merged_brings_the_dead_back() {
    is_missed(
        Law::StaleNewsIsNotTaken,
        "No regress",
        &late_news_of_the_dead(70_000),
        4,
    );
}

#[test]
fn a_stale_read_that_is_merged_brings_the_dead_back() {
    is_missed(
        Law::StaleReadsAreNotTaken,
        "No regress",
        &old_reads_of_the_dead(),
        4,
    );
}

#[test]
fn a_message_that_contradicts_itself_and_is_merged_invents_an_end() {
    is_missed(
        Law::ContradictionsAreNotMerged,
        "Nothing invented",
        &false_news(),
        2,
    );
}

#[test]
fn a_wish_served_by_an_earlier_read_waits_for_ever() {
    is_missed(Law::WishesNeedLaterReads, "Complete", &requests(), 4);
}

#[test]
fn a_mark_that_is_not_honoured_has_readers_told_what_is_old() {
    is_missed(
        Law::MarksAreHonoured,
        "Honest freshness",
        &made_by_crictl(),
        1,
    );
}

#[test]
fn an_event_that_vouches_has_readers_told_what_is_not_so() {
    is_missed(
        Law::HearsayVouchesForNothing,
        "Honest freshness",
        &sandbox_alone(),
        4,
    );
}

#[test]
fn a_read_that_vouches_for_what_it_did_not_say_claims_what_is_not_so() {
    is_missed(
        Law::OnlyAgreementVouches,
        "Honest freshness",
        &false_news(),
        4,
    );
}

#[test]
fn a_reader_who_causes_no_read_waits_for_ever() {
    is_missed(Law::ReadersCauseReads, "Complete", &made_by_crictl(), 1);
}

#[test]
fn an_event_before_its_status_is_seen_by_whoever_looks_it_up() {
    is_missed(Law::CacheFirst, "Cache first", &out_of_order(), 2);
}

#[test]
fn an_event_told_twice_is_told_twice() {
    is_missed(Law::ToldOnce, "Once", &created(), 3);
}

#[test]
fn a_fold_that_drops_the_end_leaves_a_slow_subscriber_behind() {
    is_missed(Law::FoldsKeepOwedEnds, "Complete", &stalled(), 3);
}

#[test]
fn an_event_that_waits_for_no_inspection_lacks_its_exit_code() {
    is_missed(Law::EventsWaitForDetails, "Cache first", &losses(), 1);
}

#[test]
fn a_second_relist_at_a_time_is_one_call_too_many() {
    is_missed(Law::OneRelistAtATime, "Bounded", &just_begun(), 1);
}
