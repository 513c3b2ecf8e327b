//! The index of patterns, its groups and what it remembers, against a model.

use super::super::Interest;
use super::super::group::ToGroups;
use super::super::interest::Place;
use super::odds;
use crate::interface::limits::{SUBJECT_CACHE_ENTRIES_MAX, SUBJECT_CACHE_LEAVES_MAX};
use std::collections::{BTreeMap, BTreeSet};

/// The subjects and patterns that the model is asked about.
const WORDS: [&str; 3] = ["a", "b", "c"];

fn matches(pattern: &str, subject: &str) -> bool {
    let (pattern, subject): (Vec<_>, Vec<_>) =
        (pattern.split('.').collect(), subject.split('.').collect());
    let tail = pattern.last() == Some(&">");
    let fixed = if tail { &pattern[..pattern.len() - 1] } else { &pattern[..] };
    let long_enough = if tail { subject.len() > fixed.len() } else { subject.len() == fixed.len() };
    long_enough && fixed.iter().zip(&subject).all(|(word, other)| *word == "*" || word == other)
}

#[test]
fn remembered_subjects_follow_what_comes_and_goes() {
    let mut random = odds(1);
    let mut interest = Interest::new(7);
    let mut listed = BTreeMap::new();
    for round in 0..20_000_u32 {
        let mut words: Vec<&str> = (0..1 + random(3)).map(|_| WORDS[random(3)]).collect();
        match random(4) {
            0 if listed.len() < 40 => {
                if random(2) == 0 {
                    let at = random(words.len());
                    words[at] = "*";
                }
                if random(4) == 0 {
                    words.push(">");
                }
                let pattern = words.join(".");
                let place = interest.add(&pattern, None, round);
                listed.insert(round, (pattern, place));
            }
            1 if !listed.is_empty() => {
                let subscriber = *listed.keys().nth(random(listed.len())).unwrap();
                let (_, place) = listed.remove(&subscriber).unwrap();
                if let Some(moved) = interest.remove(place, None) {
                    listed.get_mut(&moved).unwrap().1 = place;
                }
            }
            _ => {
                let subject = words.join(".");
                let mut leaves = Vec::new();
                interest.find(&subject, &mut leaves);
                let mut found: Vec<u32> = leaves
                    .iter()
                    .flat_map(|leaf| interest.leaf(*leaf).unwrap().all.iter().copied())
                    .collect();
                found.sort_unstable();
                let expected = listed.iter().filter(|(_, (pattern, _))| matches(pattern, &subject));
                let expected: Vec<u32> = expected.map(|(subscriber, _)| *subscriber).collect();
                assert_eq!(found, expected, "{subject} in round {round}");
            }
        }
    }
    while let Some((_, (_, place))) = listed.pop_first() {
        if let Some(moved) = interest.remove(place, None) {
            listed.get_mut(&moved).unwrap().1 = place;
        }
    }
    assert!(interest.is_empty());
}

/// Patterns that overlap, and a subject that all but the last match.
const OVERLAPPING: [&str; 5] = ["a.b", "a.*", "*.b", "a.>", "b.*"];

/// Members of `names` groups come and go; each group is gathered once, with all its members that hear it.
fn check_groups(names: usize, members_max: usize, seed: u64) {
    let mut random = odds(seed);
    let mut interest = Interest::new(seed);
    let mut listed = BTreeMap::new();
    for round in 0..6_000_u32 {
        // Now many come, now many go.
        let comes = random(10) < if round / 1_000 % 2 == 0 { 7 } else { 3 };
        if comes && listed.len() < members_max {
            let (pattern, name) = (OVERLAPPING[random(5)], format!("g{}", random(names)));
            let place = interest.add(pattern, Some(&name), round);
            listed.insert(round, (pattern, name, place));
        } else if !listed.is_empty() {
            let member = *listed.keys().nth(random(listed.len())).unwrap();
            let (_, _, place) = listed.remove(&member).unwrap();
            if let Some(moved) = interest.remove(place, None) {
                listed.get_mut(&moved).unwrap().2 = place;
            }
        }
        if round % 10 == 0 {
            let mut expected = BTreeMap::<String, BTreeSet<u32>>::new();
            for (member, (pattern, name, _)) in &listed {
                if *pattern != "b.*" {
                    expected.entry(name.clone()).or_default().insert(*member);
                }
            }
            assert_eq!(gathered(&mut interest, "a.b"), expected, "in round {round}");
        }
    }
    while let Some((_, (_, _, place))) = listed.pop_first() {
        if let Some(moved) = interest.remove(place, None) {
            listed.get_mut(&moved).unwrap().2 = place;
        }
    }
    assert!(interest.is_empty());
}

/// The groups that hear a subject, each of which is to be there once and to be found by its name.
#[track_caller]
fn gathered(interest: &mut Interest, subject: &str) -> BTreeMap<String, BTreeSet<u32>> {
    let (mut leaves, mut parts, mut named) = (Vec::new(), Vec::new(), Vec::new());
    interest.find(subject, &mut leaves);
    interest.gather(&leaves, ToGroups::All, &mut parts);
    let (mut rest, mut found) = (&parts[..], BTreeMap::new());
    while let Some(group) = interest.next_group(&mut rest) {
        let name = interest.name(group).to_owned();
        interest.gather_named(&leaves, &name, &mut named);
        assert_eq!(group, named);
        let members = group.iter().flat_map(|part| interest.part_mut(*part).members.clone());
        let members: BTreeSet<u32> = members.collect();
        assert!(found.insert(name, members).is_none(), "a group is gathered twice");
    }
    found
}

#[test]
fn groups_are_gathered_once_from_all_their_patterns() {
    for (names, members_max, seed) in [(1, 5, 1), (3, 20, 2), (12, 40, 3), (300, 1_000, 4)] {
        check_groups(names, members_max, seed);
    }
}

#[test]
fn groups_that_went_leave_their_places_to_others() {
    let mut interest = Interest::new(7);
    let mut places: Vec<Place> =
        (0..1_000).map(|at| interest.add("s", Some(&format!("g{at}")), at)).collect();
    for round in 0..20_000_u32 {
        let place = places.swap_remove(round as usize * 7 % places.len());
        interest.remove(place, None);
        places.push(interest.add("s", Some(&format!("h{round}")), 1_000 + round));
    }
    let mut leaves = Vec::new();
    interest.find("s", &mut leaves);
    let kept = |interest: &Interest| interest.leaf(leaves[0]).unwrap().groups().unwrap().size();
    assert_eq!(kept(&interest), (1_000, 0));
    interest.add("s", None, 0);
    places.drain(1..).for_each(|place| assert_eq!(interest.remove(place, None), None));
    let (groups, vacant) = kept(&interest);
    assert!(groups <= 1_000 && vacant < 1_000, "{groups} {vacant}");
    interest.remove(places[0], None);
    assert!(!interest.leaf(leaves[0]).unwrap().has_groups());
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut interest = Interest::new(7);
    interest.add("x.>", None, 1);
    for number in 0..10 * SUBJECT_CACHE_ENTRIES_MAX {
        let mut leaves = Vec::new();
        interest.find(&format!("x.{number}"), &mut leaves);
        assert_eq!(leaves.len(), 1);
    }
    let (leaves, remembered, ..) = interest.size();
    assert_eq!(leaves, 1);
    assert!(remembered <= SUBJECT_CACHE_ENTRIES_MAX, "{remembered}");
    assert!(remembered > SUBJECT_CACHE_ENTRIES_MAX / 2, "{remembered}");
}

/// Subscribes to `2^bits` patterns, all of which match each of the subjects, and looks these up;
/// the first one after each pattern, too, where asked. Returns how many patterns are remembered of
/// all subjects.
#[track_caller]
fn remembered(bits: u32, subjects: usize, looks_first: bool) -> usize {
    let mut interest = Interest::new(7);
    let prefix = vec!["a"; bits as usize].join(".");
    let find = |interest: &mut Interest, subject: &str| {
        let mut leaves = Vec::new();
        interest.find(subject, &mut leaves);
        leaves.len()
    };
    for number in 0..1_u32 << bits {
        let word = |bit| if number >> bit & 1 == 0 { "a" } else { "*" };
        let words: Vec<&str> = (0..bits).map(word).collect();
        interest.add(&format!("{}.>", words.join(".")), None, number);
        if looks_first {
            assert_eq!(find(&mut interest, &format!("{prefix}.0")), number as usize + 1);
        }
    }
    for subject in 0..subjects {
        assert_eq!(find(&mut interest, &format!("{prefix}.{subject}")), 1 << bits);
        let (.., leaves, room) = interest.size();
        assert!(leaves <= SUBJECT_CACHE_LEAVES_MAX, "{leaves}");
        assert!(room <= 4 * SUBJECT_CACHE_LEAVES_MAX + 64 * SUBJECT_CACHE_ENTRIES_MAX, "{room}");
    }
    interest.size().2
}

#[test]
fn many_patterns_of_many_subjects_are_not_remembered() {
    for (bits, subjects, looks_first, least) in [
        (8, 1_000, false, 64 << 8),
        (8, 2_000, false, 1 << 8),
        (13, 100, false, 1 << 13),
        (15, 10, false, 0),
        (10, 1, true, 1 << 10),
    ] {
        let found = remembered(bits, subjects, looks_first);
        assert!((least..=subjects << bits).contains(&found), "{bits} {subjects}: {found}");
    }
    assert_eq!(remembered(15, 10, false), 0);
}
