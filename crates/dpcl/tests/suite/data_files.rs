//! Data sets on disk, from writing their files to looking at what was read, through the public interface alone.

use std::{fs, path::Path, sync::Arc};

use dpcl::data::{self, Ahead};

/// Writes two images of each class in the CIFAR-10 layout; pixel values tell class and copy.
fn write_cifar10(folder: &Path) {
    let records = |offset: u8| -> Vec<u8> {
        (0..10_u8)
            .flat_map(|class| std::iter::once(class).chain(std::iter::repeat_n(class * 20 + offset, 3072)))
            .collect()
    };
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("data_batch_1.bin"), records(0)).unwrap();
    fs::write(folder.join("data_batch_2.bin"), records(1)).unwrap();
    fs::write(folder.join("test_batch.bin"), records(2)).unwrap();
}

#[test]
fn a_set_is_found_opened_counted_and_shown() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cifar-10-batches-bin");
    write_cifar10(&folder);
    let info = data::recognise(&folder).unwrap();
    assert_eq!(info.name, "cifar10");
    let set = data::open(info.name, Some(root.path()), None).unwrap();

    let facts = data::inspect(&set);
    assert_eq!((facts.train, facts.test, facts.size), (20, 10, 32));
    assert!(facts.classes.iter().all(|class| (class.train, class.test) == (2, 1)));
    assert_eq!(facts.classes[9].name, "truck");

    let sheet = data::contact_sheet(&set, 2, 3);
    // Names of ten letters of eight pixels, with margins and gaps, stand before the images.
    let names = "automobile".len() * 8 + 8 + 4;
    assert_eq!((sheet.height, sheet.width), (3 * 34 + 2, names + 2 * 34 + 2));
    let centre = |row: usize, column: usize| {
        sheet.pixels[((row * 34 + 17) * sheet.width + names + column * 34 + 17) * 3]
    };
    assert_eq!([centre(0, 0), centre(0, 1), centre(2, 0), centre(2, 1)], [0, 1, 40, 41]);
    assert_eq!(data::png(&sheet)[1..4], *b"PNG");
}

#[test]
fn a_folder_of_images_is_read_ahead_in_any_order() {
    let root = tempfile::tempdir().unwrap();
    for (class, value) in [("night", 10_u8), ("noon", 240)] {
        for half in ["train", "test"] {
            let folder = root.path().join(half).join(class);
            fs::create_dir_all(&folder).unwrap();
            for copy in 0..3 {
                let image = data::Image { height: 20, width: 30, pixels: vec![value + copy; 1800].into() };
                fs::write(folder.join(format!("{copy}.png")), data::png(&image)).unwrap();
            }
        }
    }
    let set = data::open("folder", Some(root.path()), Some(16)).unwrap();
    assert_eq!(set.classes, ["night", "noon"]);
    assert_eq!(set.train.labels, [0, 0, 0, 1, 1, 1]);

    let order = vec![5, 0, 3, 3, 1];
    let ahead = Ahead::new(Arc::clone(&set.train.images), order.clone(), 2);
    for (position, image) in order.into_iter().zip(ahead) {
        let image = image.unwrap();
        assert_eq!((image.height, image.width), (16, 16));
        assert_eq!(image, set.train.images.image(position).unwrap());
    }
}
