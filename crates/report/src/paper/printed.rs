//! The numbers that the paper prints, from `assets/paper.csv`.

/// One printed number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// Mean over seeds.
    pub mean: f64,
    /// Deviation over seeds, where it is printed.
    pub deviation: Option<f64>,
}

const TABLES: &str = include_str!("../../assets/paper.csv");

/// What the paper prints in a cell of a table; `None` where it has no such cell.
pub fn printed(table: &str, column: &str, row: &str, metric: &str) -> Option<Printed> {
    TABLES.lines().find_map(|line| {
        let mut fields = line.split(';');
        let mut next = || fields.next().unwrap_or_default();
        if [next(), next(), next(), next()] != [table, column, row, metric] {
            return None;
        }
        Some(Printed { mean: next().parse().ok()?, deviation: next().parse().ok() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headline_numbers_are_the_papers() {
        let of = |column: &str, metric: &str| printed("main", column, "DPCL", metric).unwrap();
        assert_eq!(of("CIFAR100", "acc"), Printed { mean: 45.27, deviation: Some(1.32) });
        assert_eq!((of("CIFAR100", "fm").mean, of("CIFAR100-SC", "acc").mean), (37.66, 45.39));
        assert_eq!((of("ImageNet-100", "acc").mean, of("ImageNet-100", "fm").mean), (30.92, 37.33));
        let step = printed("complexity", "CIFAR100", "DPCL", "step").unwrap();
        assert_eq!(step, Printed { mean: 1.4167, deviation: None });
        assert_eq!(printed("main", "CIFAR100", "dpcl", "acc"), None);
    }

    #[test]
    fn every_line_is_a_number_of_a_cell() {
        let lines: Vec<&str> = TABLES.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
        assert_eq!(lines.len(), 353);
        for line in lines {
            let fields: Vec<&str> = line.split(';').collect();
            let found = printed(fields[0], fields[1], fields[2], fields[3]);
            assert!(fields.len() == 6 && found.is_some_and(|found| found.mean.is_finite()), "{line}");
        }
    }
}
