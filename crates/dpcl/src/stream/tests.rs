//! The rules of all scenarios, on the counts published for 100 classes of 500 samples and on sets of any shape.

use proptest::prelude::*;

use super::*;
use crate::config::Value as _;

/// 100 classes of 500 samples, class after class, as CIFAR-100 has them but for the order.
fn hundred_classes() -> Vec<usize> {
    (0..50_000).map(|position| position % 100).collect()
}

/// The superclass of each CIFAR-100 class, by class number.
fn cifar_superclasses() -> Vec<usize> {
    const MEMBERS: [[usize; 5]; 20] = [
        [4, 30, 55, 72, 95],
        [1, 32, 67, 73, 91],
        [54, 62, 70, 82, 92],
        [9, 10, 16, 28, 61],
        [0, 51, 53, 57, 83],
        [22, 39, 40, 86, 87],
        [5, 20, 25, 84, 94],
        [6, 7, 14, 18, 24],
        [3, 42, 43, 88, 97],
        [12, 17, 37, 68, 76],
        [23, 33, 49, 60, 71],
        [15, 19, 21, 31, 38],
        [34, 63, 64, 66, 75],
        [26, 45, 77, 79, 99],
        [2, 11, 35, 46, 98],
        [27, 29, 44, 78, 93],
        [36, 50, 65, 74, 80],
        [47, 52, 56, 59, 96],
        [8, 13, 48, 58, 90],
        [41, 69, 81, 85, 89],
    ];
    let mut superclasses = vec![usize::MAX; 100];
    for (superclass, members) in MEMBERS.into_iter().enumerate() {
        members.into_iter().for_each(|class| superclasses[class] = superclass);
    }
    superclasses
}

fn settings(scenario: Scenario) -> StreamSettings {
    StreamSettings { scenario, ..StreamSettings::default() }
}

fn stream_of(labels: &[usize], classes: usize, settings: &StreamSettings, seed: u64) -> Result<Schedule> {
    let parts = cut(labels, classes, settings)?;
    let superclasses: Vec<usize> =
        if classes == 100 { cifar_superclasses() } else { (0..classes).map(|class| class / 3).collect() };
    let names: Vec<String> = (0..classes).map(|class| format!("c{class}")).collect();
    let mut schedule = generate(&names, Some(&superclasses), &parts, settings, seed)?;
    schedule.tasks.truncate(settings.first_tasks.unwrap_or(settings.tasks));
    Ok(schedule)
}

fn hundred(settings: &StreamSettings, seed: u64) -> Schedule {
    stream_of(&hundred_classes(), 100, settings, seed).unwrap()
}

/// For each task: samples, classes met, and samples of classes that are not its own.
fn counts(schedule: &Schedule, labels: &[usize]) -> Vec<(usize, usize, usize)> {
    schedule
        .tasks
        .iter()
        .map(|task| {
            let mut met: Vec<usize> = task.samples.iter().map(|&position| labels[position]).collect();
            let minor = met.iter().filter(|class| !task.classes.contains(class)).count();
            met.sort_unstable();
            met.dedup();
            (task.samples.len(), met.len(), minor)
        })
        .collect()
}

fn all_samples(schedule: &Schedule) -> Vec<usize> {
    let mut all: Vec<usize> = schedule.tasks.iter().flat_map(|task| task.samples.clone()).collect();
    all.sort_unstable();
    all
}

#[test]
fn disjoint_tasks_share_nothing_and_miss_nothing() {
    let schedule = hundred(&settings(Scenario::Disjoint), 1);
    assert_eq!(counts(&schedule, &hundred_classes()), [(10_000, 20, 0); 5]);
    assert_eq!(all_samples(&schedule), (0..50_000).collect::<Vec<_>>());
    assert_eq!(
        schedule.tasks.iter().flat_map(|task| task.classes.clone()).collect::<Vec<_>>(),
        schedule.class_order
    );
    // Shuffled inside the task: the first 100 samples are not of a few classes only.
    let mut early: Vec<usize> =
        schedule.tasks[0].samples[..100].iter().map(|position| position % 100).collect();
    early.sort_unstable();
    early.dedup();
    assert!(early.len() > 15, "{early:?}");
}

#[test]
fn uneven_classes_go_to_the_first_tasks() {
    let labels: Vec<usize> = (0..110).map(|position| position % 11).collect();
    let three = StreamSettings { tasks: 3, ..settings(Scenario::Disjoint) };
    let schedule = stream_of(&labels, 11, &three, 1).unwrap();
    let sizes: Vec<usize> = schedule.tasks.iter().map(|task| task.classes.len()).collect();
    assert_eq!(sizes, [4, 4, 3]);
}

#[test]
fn superclasses_stay_whole() {
    let superclasses = cifar_superclasses();
    assert!((0..20).all(|one| superclasses.iter().filter(|&&other| other == one).count() == 5));
    for (tasks, order) in [(5, SuperclassOrder::Seeded), (10, SuperclassOrder::B), (20, SuperclassOrder::E)] {
        let settings = StreamSettings { tasks, superclass_order: order, ..settings(Scenario::Superclass) };
        let schedule = hundred(&settings, 2);
        assert_eq!(counts(&schedule, &hundred_classes()), vec![(50_000 / tasks, 100 / tasks, 0); tasks]);
        for task in &schedule.tasks {
            let mut groups: Vec<usize> = task.classes.iter().map(|&class| superclasses[class]).collect();
            groups.sort_unstable();
            groups.dedup();
            assert_eq!(groups.len(), 20 / tasks);
        }
    }
    let published =
        StreamSettings { tasks: 20, superclass_order: SuperclassOrder::B, ..settings(Scenario::Superclass) };
    assert_eq!(hundred(&published, 7).tasks[0].classes, [27, 29, 44, 78, 93]);
}

#[test]
fn iblurry_has_the_published_counts() {
    let labels = hundred_classes();
    for (n, classes, expected) in [(50.0, 60, 400), (0.0, 100, 800)] {
        let settings = StreamSettings { n, ..settings(Scenario::IBlurry) };
        let schedule = hundred(&settings, 1);
        assert_eq!(all_samples(&schedule), (0..50_000).collect::<Vec<_>>());
        for (size, met, minor) in counts(&schedule, &labels) {
            assert_eq!((size, met), (10_000, classes));
            assert!(minor.abs_diff(expected) <= expected / 20, "{minor}");
        }
    }
    let none = StreamSettings { n: 100.0, m: 0.0, ..settings(Scenario::IBlurry) };
    assert_eq!(counts(&hundred(&none, 1), &labels), [(10_000, 20, 0); 5]);
    let blurry = hundred(&settings(Scenario::Blurry), 3);
    let zero = hundred(&StreamSettings { n: 0.0, ..settings(Scenario::IBlurry) }, 3);
    assert_eq!(blurry, zero);
}

#[test]
fn straying_samples_are_drawn_whatever_their_class() {
    let labels = hundred_classes();
    let schedule = hundred(&settings(Scenario::Blurry), 1);
    let mut strays = vec![0.0_f64; 100];
    for task in &schedule.tasks {
        for &position in task.samples.iter().filter(|&&position| !task.classes.contains(&labels[position])) {
            strays[labels[position]] += 1.0;
        }
    }
    let mean = strays.iter().sum::<f64>() / 100.0;
    let variance = strays.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 99.0;
    assert!((mean - 40.0).abs() < 2.0, "{mean}");
    // Equal numbers from every class would give 8.
    assert!((18.0..50.0).contains(&variance), "{variance}");
}

#[test]
fn chunk_last_puts_strays_at_the_end() {
    let labels = hundred_classes();
    let order = BlurryOrder::ChunkLast;
    let schedule = hundred(&StreamSettings { blurry_order: order, ..settings(Scenario::Blurry) }, 1);
    for task in &schedule.tasks {
        let own = |position: &usize| task.classes.contains(&labels[*position]);
        assert!(task.samples[..9_000].iter().all(own));
        let minor = task.samples[9_000..].iter().filter(|position| !own(position)).count();
        assert!((700..900).contains(&minor), "{minor}");
    }
    let shuffled = hundred(&settings(Scenario::Blurry), 1);
    assert_eq!(all_samples(&schedule), all_samples(&shuffled));
    assert_eq!(schedule.class_order, shuffled.class_order);
}

#[test]
fn rm_blurry_gives_the_full_share_to_others() {
    let labels = hundred_classes();
    let schedule = hundred(&settings(Scenario::RmBlurry), 1);
    // 9,000 stay, and each of the other four tasks gives a quarter of its 1,000.
    assert_eq!(counts(&schedule, &labels), [(10_000, 100, 1_000); 5]);
    let mut all = all_samples(&schedule);
    all.dedup();
    assert!(all.len() < 50_000, "independent draws repeat some samples and lose others");
}

#[test]
fn cuts_do_not_change_the_rules() {
    let labels = hundred_classes();
    for scenario in Scenario::ALL {
        let whole = hundred(&settings(scenario), 5);
        let first = hundred(&StreamSettings { first_tasks: Some(2), ..settings(scenario) }, 5);
        assert_eq!(first.tasks, whole.tasks[..whole.tasks.len().min(2)]);
        assert_eq!(first.class_order, whole.class_order);

        let few = StreamSettings { classes: Some(20), per_class: Some(30), tasks: 4, ..settings(scenario) };
        let few = hundred(&few, 5);
        assert_eq!(few.class_order, whole.class_order[..20]);
        let samples = all_samples(&few);
        assert!(
            samples
                .iter()
                .all(|&position| position / 100 < 30 && few.class_order.contains(&labels[position]))
        );
        assert!(scenario == Scenario::RmBlurry || samples.len() == 600);
    }
}

#[test]
fn without_tasks_everything_arrives_mixed() {
    let shuffled = hundred(&settings(Scenario::Shuffled), 3);
    assert_eq!((shuffled.tasks.len(), shuffled.tasks[0].classes.len()), (1, 100));
    assert_eq!(all_samples(&shuffled).len(), 50_000);
    let labels = hundred_classes();
    let early: std::collections::BTreeSet<usize> =
        shuffled.tasks[0].samples[..1_000].iter().map(|&position| labels[position]).collect();
    assert_eq!(early.len(), 100, "no class waits for its turn");
}

#[test]
fn a_cut_through_a_superclass_keeps_exactly_as_many_classes() {
    let cut = StreamSettings { classes: Some(12), tasks: 3, ..settings(Scenario::Superclass) };
    let sizes: Vec<usize> = hundred(&cut, 1).tasks.iter().map(|task| task.classes.len()).collect();
    assert_eq!(sizes, [5, 5, 2]);
}

#[test]
fn seeds_decide_the_order() {
    let settings = settings(Scenario::IBlurry);
    assert_eq!(hundred(&settings, 1), hundred(&settings, 1));
    assert_ne!(hundred(&settings, 1).class_order, hundred(&settings, 2).class_order);
}

#[test]
fn what_does_not_fit_the_data_is_refused() {
    let labels = [0, 0, 0, 1, 1, 2];
    let refusal = |change: &dyn Fn(&mut StreamSettings)| {
        let mut settings = StreamSettings { tasks: 2, ..settings(Scenario::Disjoint) };
        change(&mut settings);
        stream_of(&labels, 4, &settings, 1).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&|settings| settings.tasks = 4),
        "configuration key `tasks`: 4 tasks need at least as many classes, and there are 3"
    );
    assert_eq!(
        refusal(&|settings| settings.classes = Some(4)),
        "configuration key `classes`: 4 classes are asked for, and only 3 have training samples"
    );
    assert_eq!(
        refusal(&|settings| settings.holdout = Some(1)),
        "configuration key `holdout`: leaves no training sample of class `c2` to learn from"
    );
    assert!(refusal(&|settings| settings.m = -1.0).contains("`m`"));
}

#[test]
fn names_find_their_scenario() {
    for scenario in Scenario::ALL {
        assert_eq!(Scenario::find(scenario.name()).unwrap(), scenario);
        assert_eq!(Scenario::read(&scenario.name().into()), Some(scenario));
    }
    let error = Scenario::find("cloudy").unwrap_err();
    assert_eq!(error.to_string(), "there is no scenario called `cloudy`");
    assert!(error.hint().unwrap().contains("i-blurry"));
}

proptest! {
    #[test]
    fn a_schedule_is_a_permutation_of_what_exists(
        labels in prop::collection::vec(0_usize..12, 40..200),
        tasks in 1_usize..5, n in 0.0..=100.0, m in 0.0..=100.0, last in any::<bool>(), seed in 0_u64..50,
    ) {
        for scenario in [Scenario::Disjoint, Scenario::Superclass, Scenario::Blurry, Scenario::IBlurry] {
            let blurry_order = if last { BlurryOrder::ChunkLast } else { BlurryOrder::Shuffled };
            let settings = StreamSettings { tasks, n, m, blurry_order, ..settings(scenario) };
            let Ok(schedule) = stream_of(&labels, 12, &settings, seed) else { continue };
            let expected: Vec<usize> = (0..labels.len())
                .filter(|&position| schedule.class_order.contains(&labels[position]))
                .collect();
            prop_assert_eq!(all_samples(&schedule), expected);
            let mut owned: Vec<usize> = schedule.tasks.iter().flat_map(|task| task.classes.clone()).collect();
            let mut order = schedule.class_order.clone();
            owned.sort_unstable();
            order.sort_unstable();
            prop_assert_eq!(owned, order);
            prop_assert!(schedule.tasks.iter().all(|task| !task.samples.is_empty()));
        }
    }
}
