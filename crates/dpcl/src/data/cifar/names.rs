//! Class names of CIFAR-10 and CIFAR-100 in the order of their label numbers, for copies without a names file.

/// CIFAR-10.
pub const CIFAR10: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// CIFAR-100's fine labels.
#[rustfmt::skip]
pub const CIFAR100: [&str; 100] = [
    "apple", "aquarium_fish", "baby", "bear", "beaver",
    "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly",
    "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach",
    "couch", "crab", "crocodile", "cup", "dinosaur",
    "dolphin", "elephant", "flatfish", "forest", "fox",
    "girl", "hamster", "house", "kangaroo", "keyboard",
    "lamp", "lawn_mower", "leopard", "lion", "lizard",
    "lobster", "man", "maple_tree", "motorcycle", "mountain",
    "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum",
    "rabbit", "raccoon", "ray", "road", "rocket",
    "rose", "sea", "seal", "shark", "shrew",
    "skunk", "skyscraper", "snail", "snake", "spider",
    "squirrel", "streetcar", "sunflower", "sweet_pepper", "table",
    "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe",
    "whale", "willow_tree", "wolf", "woman", "worm",
];

/// Number of CIFAR-100's coarse labels.
pub const SUPERCLASSES: usize = 20;

/// The coarse label of each of CIFAR-100's fine labels.
#[rustfmt::skip]
pub const SUPERCLASS: [usize; 100] = [
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11,
    6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5,
    5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17,
    10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13,
    16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_superclass_has_five_classes() {
        for superclass in 0..SUPERCLASSES {
            assert_eq!(SUPERCLASS.iter().filter(|&&of| of == superclass).count(), 5, "{superclass}");
        }
    }

    #[test]
    fn people_are_one_superclass() {
        let people: Vec<&str> =
            (0..100).filter(|&class| SUPERCLASS[class] == 14).map(|class| CIFAR100[class]).collect();
        assert_eq!(people, ["baby", "boy", "girl", "man", "woman"]);
    }
}
