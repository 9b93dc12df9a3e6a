//! Tables with the paper's numbers beside ours, and figures, as files beside the records.

use std::{fs, path::Path};

use anyhow::Context;
use dpcl::folder::write_whole;
use dpcl_report::{figures::Figure, paper::Beside};

use super::Project;
use crate::output;

/// Writes every table in three formats, one page for all, and every figure; the tables go to stdout too.
pub fn write(project: &Project, figures: &[Figure]) -> anyhow::Result<()> {
    let folder = project.wanted.folder();
    let drawings = folder.join("figures");
    fs::create_dir_all(&drawings).with_context(|| format!("cannot create {}", drawings.display()))?;
    let mut tables = Vec::new();
    for sheet in &project.sheets {
        let beside = Beside::of(sheet)?;
        save(&folder.join(format!("{}.md", sheet.id)), &beside.markdown())?;
        save(&folder.join(format!("{}.tex", sheet.id)), &beside.latex())?;
        for (name, svg) in beside.curves() {
            save(&drawings.join(format!("{}-{}-any-time.svg", sheet.id, plain(&name))), &svg)?;
        }
        let own: Vec<Figure> = figures.iter().filter(|figure| figure.id == sheet.id).cloned().collect();
        for (name, svg) in own.iter().flat_map(Figure::drawings) {
            save(&drawings.join(format!("{}-{}.svg", sheet.id, plain(&name))), &svg)?;
        }
        let page = dpcl_report::paper_page(std::slice::from_ref(&beside), &own);
        save(&folder.join(format!("{}.html", sheet.id)), &page)?;
        output::data(&beside.markdown())?;
        output::data("\n")?;
        tables.push(beside);
    }
    let name = |ending: &str| folder.join(format!("{}.{ending}", project.sheets[0].id)).display().to_string();
    if tables.len() > 1 {
        let page = folder.join("paper.html");
        save(&page, &dpcl_report::paper_page(&tables, figures))?;
        output::talk(format!("page: {}", page.display()));
    } else {
        output::talk(format!("page: {}; also {} and {}", name("html"), name("md"), name("tex")));
    }
    output::talk(format!("figures: {}", drawings.display()));
    Ok(())
}

fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    write_whole(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// A name as part of a file's name.
fn plain(name: &str) -> String {
    let letters =
        name.chars().map(|letter| if letter.is_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let text: String = letters.collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_become_parts_of_file_names() {
        assert_eq!(super::plain("Blurry (0, 20)"), "blurry-0-20");
        assert_eq!(super::plain("dpcl, this program's default"), "dpcl-this-program-s-default");
    }
}
