//! The stream protocol against numbers computed elsewhere: buffers, training steps and what is left over.

use crate::stream::Arrivals;

#[test]
fn golden_protocol() {
    for case in super::reference::cases("protocol.json") {
        let batch: usize = case.input("batch");
        let mut buffer = Arrivals::new(batch / 2, case.input("updates_per_sample"));
        let mut buffers = Vec::new();
        for sample in 0..case.input::<usize>("samples") {
            buffers.extend(buffer.push(sample).map(|due| due.updates));
        }
        let first: Vec<usize> = case.expected("iterations_of_first_buffers");

        case.check("buffers", buffers.len());
        case.check("iterations", buffers.iter().sum::<usize>());
        case.check("iterations_of_first_buffers", &buffers[..first.len().min(buffers.len())]);
        case.check("samples_left", buffer.items().len());
        case.check("credit_left", buffer.credit_left());
    }
}
