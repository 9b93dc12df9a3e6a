//! One line a group for spreadsheets and scripts: unrounded, shares as 0..1, empty where not measured.

use crate::against::Difference;
use crate::group::{Group, Run, Setting};
use crate::statistics::Estimate;
use crate::{Report, costs, values};

pub fn export(report: &Report) -> String {
    let mut text = line(&[heading(), compared_heading(report)].concat());
    for setting in &report.settings {
        for group in &setting.groups {
            text.push_str(&line(&[row(setting, group), compared(report, setting, group)].concat()));
        }
    }
    text
}

fn heading() -> Vec<String> {
    let mut names: Vec<String> = [
        "setting",
        "dataset",
        "scenario",
        "model",
        "label",
        "name",
        "method",
        "knowledge",
        "answers",
        "seeds",
        "altered",
    ]
    .map(str::to_owned)
    .to_vec();
    for (name, _) in values(&Default::default()) {
        names.extend([format!("{name}_mean"), format!("{name}_std")]);
    }
    names.extend(["updates", "samples", "train_seconds", "eval_seconds"].map(str::to_owned));
    names.extend(costs::COSTS.map(|cost| cost.key.to_owned()));
    names
}

/// Columns that only a comparison has.
fn compared_heading(report: &Report) -> Vec<String> {
    let Some(compared) = report.compared() else { return Vec::new() };
    let mut names = ["against", "margin"].map(str::to_owned).to_vec();
    for metric in &compared.metrics {
        let parts = ["pairs", "mean", "std", "low", "high", "outcome", "needed"];
        names.extend(parts.map(|part| format!("{metric}_difference_{part}")));
    }
    names
}

/// Empty for the row that the others are compared with.
fn compared(report: &Report, setting: &Setting, group: &Group) -> Vec<String> {
    let Some(compared) = report.compared() else { return Vec::new() };
    let mut fields = vec![compared.against.clone(), (compared.margin / 100.0).to_string()];
    let comparison = report.comparison(setting);
    let rival = comparison
        .as_ref()
        .and_then(|comparison| comparison.rivals.iter().find(|rival| rival.group.name == group.name));
    match rival {
        Some(rival) => fields.extend(rival.differences.iter().flat_map(difference)),
        None => fields.extend(compared.metrics.iter().flat_map(|_| [const { String::new() }; 7])),
    }
    fields
}

fn difference(found: &Difference) -> [String; 7] {
    let Some(estimate) = found.estimate else {
        let mut fields = [const { String::new() }; 7];
        fields[0] = "0".to_owned();
        return fields;
    };
    [
        estimate.count.to_string(),
        estimate.mean.to_string(),
        number(estimate.deviation),
        number(found.interval.map(|(low, _)| low)),
        number(found.interval.map(|(_, high)| high)),
        found.outcome.word().to_owned(),
        found.needed.map(|needed| needed.to_string()).unwrap_or_default(),
    ]
}

fn row(setting: &Setting, group: &Group) -> Vec<String> {
    let result = &group.first().result;
    let mut fields = vec![setting.name.clone()];
    fields.extend([&result.dataset, &result.scenario, &result.model, &result.label].map(Clone::clone));
    fields.push(group.name.clone());
    fields.extend([&result.method, &result.knowledge, &result.answers].map(Clone::clone));
    fields.push(group.runs.iter().map(|run| run.result.seed.to_string()).collect::<Vec<_>>().join(" "));
    // How many of the records are not as their runs left them.
    fields.push(group.runs.iter().filter(|run| run.record.altered).count().to_string());
    for (index, _) in values(&Default::default()).iter().enumerate() {
        let estimate = mean(group, |run| values(&run.metrics)[index].1);
        fields.push(number(estimate.map(|estimate| estimate.mean)));
        fields.push(number(estimate.and_then(|estimate| estimate.deviation)));
    }
    let amounts: [fn(&Run) -> f64; 4] = [
        |run| run.result.updates as f64,
        |run| run.result.samples as f64,
        |run| run.result.train_seconds,
        |run| run.result.eval_seconds,
    ];
    fields.extend(
        amounts.map(|amount| number(mean(group, |run| Some(amount(run))).map(|estimate| estimate.mean))),
    );
    fields.extend(costs::COSTS.map(|cost| number(cost.mean(group))));
    fields
}

fn mean(group: &Group, value: impl Fn(&Run) -> Option<f64>) -> Option<Estimate> {
    Estimate::of(&group.runs.iter().filter_map(value).collect::<Vec<_>>())
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn line(fields: &[String]) -> String {
    fields.iter().map(|field| quote(field)).collect::<Vec<_>>().join(",") + "\n"
}

/// Quotes a field where commas, quotes or line ends would break the line (RFC 4180). One that a spreadsheet would take for
/// a formula begins with an apostrophe, which tells it that this is text.
fn quote(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err();
    let field = &if formula { format!("'{field}") } else { field.to_owned() };
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_would_break_the_line_are_quoted() {
        assert_eq!(line(&["a,b".into(), "say \"c\"".into(), "d".into()]), "\"a,b\",\"say \"\"c\"\"\",d\n");
    }

    #[test]
    fn no_field_is_a_formula_and_numbers_stay_numbers() {
        let fields = ["=1+1", "@sum(a1)", "+er", "-er,x", "-0.25", "-1e-7", "er"].map(String::from);
        assert_eq!(line(&fields), "'=1+1,'@sum(a1),'+er,\"'-er,x\",-0.25,-1e-7,er\n");
    }
}
