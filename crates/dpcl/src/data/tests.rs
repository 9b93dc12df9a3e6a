//! The registry: every name opens, and what lies at a path is recognised.

use super::*;

#[test]
fn the_built_in_set_needs_nothing() {
    let set = open("fashion-mini", None, None).unwrap();
    assert_eq!(set.train.labels.len(), 2_500);
    assert_eq!(format!("{set:?}").split(',').next(), Some("Dataset { name: \"fashion-mini\""));
}

#[test]
fn every_name_opens_or_says_where_it_looked() {
    for info in list() {
        match open(info.name, Some(Path::new("nowhere")), None) {
            Ok(set) => assert_eq!((set.name.as_str(), info.needs_directory), ("fashion-mini", false)),
            Err(error @ Error::NoData { .. }) => {
                let expected = format!("no {} data found; looked for nowhere", info.name);
                assert!(error.to_string().starts_with(&expected), "{error}");
                let hint = error.hint().unwrap();
                assert!(hint.contains("--data-dir"), "{hint}");
                let command = format!("dpcl data fetch {}", info.name);
                assert_eq!(hint.contains(&command), info.fetchable, "{hint}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_called_fetchable_is_fetched() {
    let root = tempfile::tempdir().unwrap();
    for info in list() {
        let error = fetch_from(Some("http://127.0.0.1:1"), info.name, root.path(), &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string().contains("no answer"), info.fetchable, "{error}");
    }
}

#[test]
fn the_listed_facts_are_those_of_the_set() {
    let info = info("fashion-mini").unwrap();
    let set = open("fashion-mini", None, Some(info.size)).unwrap();
    assert_eq!(Some(set.classes.len()), info.classes);
    assert_eq!(Some(set.train.labels.len()), info.train);
    assert_eq!(Some(set.test.labels.len()), info.test);
    assert_eq!(set.size, info.size);
}

#[test]
fn unknown_names_and_sizes_are_refused() {
    let error = open("cifar", None, None).unwrap_err();
    assert_eq!(error.to_string(), "there is no data set called `cifar`");
    assert!(error.hint().unwrap().contains("cifar10, cifar100"), "{error:?}");
    let error = open("cifar100", Some(Path::new("x")), Some(64)).unwrap_err();
    assert_eq!(error.to_string(), "configuration key `size`: is 64, but cifar100 has images of 32 × 32");
    let error = open("mnist", None, None).unwrap_err();
    assert_eq!(error.hint().unwrap(), "say where it is with `--data-dir`");
}

#[test]
fn a_path_is_recognised_by_what_it_holds() {
    let root = tempfile::tempdir().unwrap();
    for (file, name) in [
        ("a/train.bin", "cifar100"),
        ("b/data_batch_1.bin", "cifar10"),
        ("mnist/train-images-idx3-ubyte.gz", "mnist"),
        ("fetched/cifar-100-binary.tar.gz", "cifar100"),
        ("fashion-mnist/train-images-idx3-ubyte", "fashion-mnist"),
        ("d/train/n01440764/x.JPEG", "folder"),
        ("photos/cat/x.webp", "folder"),
        ("cifar-10-binary.tar.gz", "cifar10"),
    ] {
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        let place = if file.contains('/') { root.path().join(file.split('/').next().unwrap()) } else { path };
        assert_eq!(recognise(&place).unwrap().name, name);
    }
    for half in ["train", "val"] {
        std::fs::create_dir_all(root.path().join("mine").join(half)).unwrap();
    }
    assert_eq!(recognise(&root.path().join("mine")).unwrap().name, "folder");

    let error = recognise(root.path()).unwrap_err();
    assert!(error.to_string().ends_with("is no data set of a known kind"), "{error}");
    assert!(error.hint().unwrap().contains("mine (folder)"), "{error:?}");
    let neutral = root.path().join("c");
    std::fs::create_dir(&neutral).unwrap();
    std::fs::write(neutral.join("train-images-idx3-ubyte.gz"), "").unwrap();
    let error = recognise(&neutral).unwrap_err();
    assert!(error.to_string().ends_with("which may be MNIST or Fashion-MNIST"), "{error}");
    assert!(error.hint().unwrap().contains("`--data-dir`"), "{error:?}");

    std::fs::write(root.path().join("fetched/cifar-10-binary.tar.gz"), "").unwrap();
    let error = recognise(&root.path().join("fetched")).unwrap_err();
    assert!(error.hint().unwrap().contains("cifar-100-binary.tar.gz (cifar100)"), "{error:?}");

    assert!(recognise(Path::new("nowhere")).unwrap_err().hint().unwrap().contains("CIFAR binary files"));
}

#[test]
fn a_few_classes_of_imagenet_are_a_folder_of_images() {
    let root = tempfile::tempdir().unwrap();
    let add = |id: &str| {
        for half in ["train", "val"] {
            let folder = root.path().join(half).join(id);
            std::fs::create_dir_all(&folder).unwrap();
            image::RgbImage::new(9, 9).save(folder.join("1.png")).unwrap();
        }
    };
    // Two classes of Imagenette, one of which is in ImageNet-100.
    ["n01440764", "n02102040"].into_iter().for_each(add);
    let info = recognise(root.path()).unwrap();
    assert_eq!(info.name, "folder");
    assert_eq!(open(info.name, Some(root.path()), None).unwrap().classes, ["n01440764", "n02102040"]);
    WORDNET_IDS.into_iter().for_each(add);
    assert_eq!(recognise(root.path()).unwrap().name, "imagenet100");
}
