//! Laws whose breakage the model cannot tell, each with the story that does: what lags, what differs,
//! how much a stream is trusted. See `engine::breakages` for the others.

use super::{lawcheck, stream, table, trust, windows};
use crate::law::Law;

#[test]
fn an_event_that_replaces_instead_of_joining_is_missed() {
    Law::EventsReplaceNothing
        .is_missed_by(windows::an_exit_code_that_changes_in_a_late_event_is_settled_by_a_read);
}

#[test]
fn details_overwritten_by_older_ones_is_missed() {
    Law::DetailsInDoubtStay
        .is_missed_by(windows::a_status_from_before_an_event_replaces_nothing_that_the_event_told);
}

#[test]
fn a_step_back_by_a_read_too_soon_is_missed() {
    Law::StepBackSettles
        .is_missed_by(lawcheck::a_reader_is_not_answered_by_a_read_that_awaits_its_confirmation);
}

#[test]
fn a_step_back_by_one_read_is_missed() {
    Law::StepBackIsConfirmed
        .is_missed_by(table::a_container_that_runs_again_is_told_as_pod_sync_once_two_reads_agree);
}

#[test]
fn an_absence_left_unjudged_is_missed() {
    Law::UnjudgedAbsenceIsAskedAgain
        .is_missed_by(windows::a_relist_in_flight_proves_nothing_about_what_events_told_meanwhile);
}

#[test]
fn a_clock_that_steps_back_and_is_believed_is_missed() {
    Law::ClockStepsAreGuarded.is_missed_by(lawcheck::an_event_from_before_a_clock_step_is_stale_though_its_stamp_looks_newer_than_the_list);
}

#[test]
fn a_deleted_of_an_unknown_id_that_changes_something_is_missed() {
    Law::UnknownDeletedChangesNothing
        .is_missed_by(stream::a_deleted_of_an_unknown_id_changes_nothing);
}

#[test]
fn an_absurd_stamp_that_is_believed_is_missed() {
    Law::AbsurdStampsAreRefused
        .is_missed_by(windows::an_absurd_stamp_never_makes_an_entry_win_for_ever);
}

#[test]
fn a_miss_without_grace_is_missed() {
    Law::MissesHaveGrace
        .is_missed_by(trust::an_event_that_comes_within_two_seconds_of_the_read_is_no_miss);
}

#[test]
fn a_ramp_that_a_miss_does_not_begin_anew_is_missed() {
    Law::MissesRestartTheRamp
        .is_missed_by(trust::one_lost_event_is_told_by_the_relist_and_begins_the_ramp_anew);
}

#[test]
fn silence_that_earns_trust_is_missed() {
    Law::SilenceEarnsLittle
        .is_missed_by(trust::the_period_doubles_with_each_clean_relist_up_to_what_was_proven);
}

#[test]
fn a_known_gap_that_is_distrusted_is_missed() {
    Law::GapsAreNoDistrust
        .is_missed_by(trust::a_kind_that_the_runtime_never_sends_becomes_a_known_gap);
}

#[test]
fn unsettled_pods_that_nobody_watches_is_missed() {
    Law::UnsettledAreWatched.is_missed_by(trust::a_start_that_failed_is_found_soon_and_is_no_miss);
}
