//! Experience replay with an asymmetric cross-entropy: new classes do not push old ones away.
//!
//! Paper: New Insights on Reducing Abrupt Representation Change in Online Continual Learning (Caccia et al., ICLR 2022).
//!
//! Loss: CE(stream rows, among the classes present in the stream's half) + CE(memory rows, among all classes met), each a
//! mean; in CutMix form half of the time, partners from the same half. Memory: reservoir. Rate: exponential decay that
//! starts over at every new class. It is `er` with `asymmetric` on; CutMix is the protocol's, the paper has none.

use super::{MethodInfo, er};
use crate::method::REHEARSAL;

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "er-ace",
    about: "replay whose stream rows compete only with the classes beside them",
    departures: &["CutMix within each half of the batch, as the protocol has it; the paper has none"],
    section: "er-ace",
    asymmetric: true,
    build: er::INFO.build,
    ..REHEARSAL
};
