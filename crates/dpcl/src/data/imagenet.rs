//! ImageNet-100: the first 100 classes of ILSVRC-2012 in the order of their WordNet ids, over an ILSVRC tree.
//!
//! The tree has `train/<id>/` and `val/<id>/`; folders of other classes are left alone. Images are resized directly,
//! without cropping, and decoded when asked for. The classes are called by their ids.

use std::path::Path;

use super::{
    Dataset, Findings, Fit, PUBLISHED_PADDING, Statistics, decode::check_size, folder, layout::Passed,
    places::Wanted,
};
use crate::error::{Error, Result};

/// Side of the images when none is asked for.
pub(super) const DEFAULT_SIZE: usize = 224;

/// Folders below the named one that ILSVRC trees are kept in; the last is the layout of the challenge's archive.
const FOLDERS: &[&str] =
    &["imagenet100", "imagenet-100", "imagenet", "ImageNet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC"];

/// Of all of ImageNet, as everyone uses them.
const STATISTICS: Statistics = Statistics { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };

/// How many missing folders an error names.
const MOST_NAMED: usize = 8;

/// The classes; a label is a position in this list.
#[rustfmt::skip]
pub const WORDNET_IDS: [&str; 100] = [
    "n01440764", "n01443537", "n01484850", "n01491361", "n01494475", "n01496331", "n01498041", "n01514668",
    "n01514859", "n01518878", "n01530575", "n01531178", "n01532829", "n01534433", "n01537544", "n01558993",
    "n01560419", "n01580077", "n01582220", "n01592084", "n01601694", "n01608432", "n01614925", "n01616318",
    "n01622779", "n01629819", "n01630670", "n01631663", "n01632458", "n01632777", "n01641577", "n01644373",
    "n01644900", "n01664065", "n01665541", "n01667114", "n01667778", "n01669191", "n01675722", "n01677366",
    "n01682714", "n01685808", "n01687978", "n01688243", "n01689811", "n01692333", "n01693334", "n01694178",
    "n01695060", "n01697457", "n01698640", "n01704323", "n01728572", "n01728920", "n01729322", "n01729977",
    "n01734418", "n01735189", "n01737021", "n01739381", "n01740131", "n01742172", "n01744401", "n01748264",
    "n01749939", "n01751748", "n01753488", "n01755581", "n01756291", "n01768244", "n01770081", "n01770393",
    "n01773157", "n01773549", "n01773797", "n01774384", "n01774750", "n01775062", "n01776313", "n01784675",
    "n01795545", "n01796340", "n01797886", "n01798484", "n01806143", "n01806567", "n01807496", "n01817953",
    "n01818515", "n01819313", "n01820546", "n01824575", "n01828970", "n01829413", "n01833805", "n01843065",
    "n01843383", "n01847000", "n01855032", "n01855672",
];

/// Whether a folder is an ILSVRC tree with all of the hundred classes.
pub(super) fn is_in(directory: &Path) -> bool {
    let train = directory.join("train");
    WORDNET_IDS.iter().all(|id| train.join(id).is_dir())
}

/// Whether it has any of them: what is missing can then be named.
fn is_begun_in(directory: &Path) -> bool {
    let train = directory.join("train");
    WORDNET_IDS.iter().any(|id| train.join(id).is_dir())
}

/// Opens the hundred classes of the tree at `directory` or just below it.
///
/// # Errors
/// When there is no such tree, or when some of the class folders are missing or empty; they are named.
pub(super) fn open(directory: &Path, size: usize, fit: Fit) -> Result<Dataset> {
    check_size(size)?;
    let wanted = Wanted {
        name: "imagenet100",
        folders: FOLDERS,
        archive: None,
        holds: &is_begun_in,
        any_child: false,
        fetchable: false,
    };
    let tree = wanted.find(directory)?;
    let classes: Vec<String> = WORDNET_IDS.iter().map(ToString::to_string).collect();
    let [train, val] = ["train", "val"].map(|half| tree.join(half));
    for half in [&train, &val] {
        all_there(half)?;
    }
    let mut passed = Passed::default();
    let mut list = |half: &Path| folder::list(half, &tree, &classes, size, fit, &mut passed);
    let (train, test) = (list(&train)?, list(&val)?);
    Ok(Dataset {
        name: "imagenet100".into(),
        superclasses: None,
        size,
        mean: STATISTICS.mean,
        std: STATISTICS.std,
        policy: folder::policy_for(size),
        padding: PUBLISHED_PADDING,
        train,
        test,
        classes,
        findings: Findings { notes: passed.notes(), ..Findings::default() },
    })
}

fn all_there(half: &Path) -> Result<()> {
    let missing: Vec<&str> = WORDNET_IDS.iter().copied().filter(|id| !half.join(id).is_dir()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let more = if missing.len() > MOST_NAMED { ", …" } else { "" };
    let named = missing[..missing.len().min(MOST_NAMED)].join(", ");
    let problem = format!("{} of the 100 class folders are missing: {named}{more}", missing.len());
    let hint = "unpack these classes there, one folder a class named by its WordNet id; the validation images come \
                in one heap and have to be sorted into such folders too";
    Err(Error::bad_data(half, problem, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(root: &Path, half: &str, ids: &[&str]) {
        for id in ids {
            let folder = root.join(half).join(id);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("{id}_1.JPEG")), "").unwrap();
        }
    }

    #[test]
    fn the_hundred_classes_open_and_others_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("ILSVRC2012");
        tree(&place, "train", &WORDNET_IDS);
        tree(&place, "val", &WORDNET_IDS);
        tree(&place, "train", &["n02085620"]);
        for directory in [root.path(), &place] {
            let set = open(directory, 224, Fit::Squash).unwrap();
            assert_eq!(set.train.labels, (0..100).collect::<Vec<_>>());
            assert_eq!(set.test.labels.len(), 100);
            assert_eq!(set.classes[99], "n01855672");
            assert_eq!(set.mean, [0.485, 0.456, 0.406]);
            assert_eq!(set.policy, super::super::Policy::Imagenet);
            assert_eq!(set.padding, 4);
        }
    }

    #[test]
    fn missing_folders_are_named() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path(), "train", &WORDNET_IDS);
        tree(root.path(), "val", &WORDNET_IDS[2..]);
        let error = open(root.path(), 224, Fit::Squash).unwrap_err();
        let text = error.to_string();
        assert!(
            text.ends_with("val: 2 of the 100 class folders are missing: n01440764, n01443537"),
            "{text}"
        );
        assert!(error.hint().unwrap().contains("sorted into such folders"), "{error:?}");

        let error = open(Path::new("nowhere"), 224, Fit::Squash).unwrap_err();
        assert!(error.hint().unwrap().contains("--data-dir"), "{error:?}");
    }
}
