//! What was measured of a learner: right answers by class, how sure they were, how many numbers it holds, and the metrics
//! that follow.

use serde::{Deserialize, Serialize};

/// Right answers and test images of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// The class, an index into the data set's list.
    pub class: usize,
    /// Right answers.
    pub correct: u64,
    /// Test images.
    pub total: u64,
}

/// How sure a learner was of its answers to the test images of all classes met, and how rightly. Calibration and
/// risk–coverage curves are computed from it; single answers are not on record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// Stream samples seen so far.
    pub samples: u64,
    /// Answers by confidence, the probability of the class answered: bins of equal width over 0..1, lowest first. A
    /// bin holds its upper edge.
    pub calibration: Vec<ConfidenceBin>,
    /// What is left when only the most confident answers are kept: about a twentieth of the images more at each
    /// entry, all of them at the last. Equally sure answers are kept or left together, so an entry can be further from
    /// the one before, and where all are alike there is only the last.
    pub by_confidence: Vec<Kept>,
    /// The same, least entropy of the probabilities first.
    pub by_entropy: Vec<Kept>,
    /// The same, least disagreement of the heads first; one entry where only one head answers.
    pub by_disagreement: Vec<Kept>,
}

/// Answers of about the same confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceBin {
    /// How many.
    pub count: u64,
    /// Sum of their confidences.
    pub confidence: f64,
    /// How many of them are right.
    pub correct: u64,
}

/// The answers on one side of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// How many.
    pub kept: u64,
    /// How many of them are right.
    pub correct: u64,
}

/// How many numbers a learner holds at its end, stored images and optimiser moments left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Learned by gradients: encoder, heads and what else a method trains.
    pub network: u64,
    /// Kept beside them at a fixed size: copies of weights, running means and squares, importances.
    pub state: u64,
    /// Past values kept one by one, such as the deviation columns of a covariance. The paper's model sizes leave them
    /// out.
    pub history: u64,
}

/// The numbers a run is judged by, each 0..1, `None` where not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Mean over tasks of the final accuracy on each task's test set.
    pub acc: Option<f64>,
    /// Forgetting by the paper's formula: mean |a_ii − a_Ti|.
    pub fm: Option<f64>,
    /// Forgetting, signed: mean a_ii − a_Ti.
    pub fm_signed: Option<f64>,
    /// Forgetting from the best earlier value: mean max_t a_ti − a_Ti.
    pub fm_max: Option<f64>,
    /// Mean accuracy over the periodic evaluations.
    pub a_auc: Option<f64>,
    /// Mean of the accuracies at task ends.
    pub a_avg: Option<f64>,
    /// Accuracy over all met classes at the end.
    pub a_last: Option<f64>,
    /// Mean over classes of best earlier accuracy at task ends minus final.
    pub f_last: Option<f64>,
    /// Accuracy of predicting each stream sample before learning it.
    pub online_acc: Option<f64>,
    /// `acc` of answers that were told the task of every image.
    pub acc_task_ids: Option<f64>,
    /// `fm` of answers that were told the task of every image.
    pub fm_task_ids: Option<f64>,
    /// `acc` of the weights that learn, where their average answers.
    pub acc_unaveraged: Option<f64>,
    /// `fm` of the weights that learn, where their average answers.
    pub fm_unaveraged: Option<f64>,
    /// `a_auc` of the weights that learn, where their average answers.
    pub a_auc_unaveraged: Option<f64>,
    /// `ece` of the weights that learn, where their average answers.
    pub ece_unaveraged: Option<f64>,
    /// Expected calibration error at the end: mean over answers of |confidence − accuracy|, bin by bin.
    pub ece: Option<f64>,
    /// Area under the risk–coverage curve at the end, most confident answers first.
    pub aurc_confidence: Option<f64>,
    /// The same, answers with the least disagreement first; `None` where the heads never disagree.
    pub aurc_disagreement: Option<f64>,
}
