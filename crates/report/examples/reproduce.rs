//! Writes the documents whose tables come from `results/`: `make reproduce`. Says which of them changed.

use std::path::Path;

use dpcl_report::reproduce::DOCUMENTS;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for document in DOCUMENTS {
        let text = document.text(&root).map_err(|error| match error.hint() {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        })?;
        let path = root.join(document.output);
        let state = if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            "is as it should be"
        } else {
            std::fs::write(&path, text)?;
            "was written"
        };
        #[expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]
        {
            println!("{} {state}", document.output);
        }
    }
    Ok(())
}
