//! Numbers as people read them: percent with two decimals, thousands apart, units that fit the size; and names short
//! enough for their place.

/// 0.5312 as `53.12`.
pub fn percent(share: f64) -> String {
    // Adding zero turns a negative zero, which would print its sign, into a plain one.
    format!("{:.2}", (share * 1e4).round() / 1e2 + 0.0)
}

/// A difference of 0.0312 as `+3.12`, one of -0.0312 as `−3.12`, with a minus as wide as the plus.
pub fn signed(share: f64) -> String {
    let text = percent(share.abs());
    match share {
        _ if text == "0.00" => text,
        share if share < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// 0.5312 as `53.1`, for documents: a second decimal is less than one test image in most of them.
pub fn tenths(share: f64) -> String {
    // Counts of images often end on exactly half a tenth; the nudge rounds all of these the same way.
    format!("{:.1}", (share * 1e3 + 1e-9).round() / 1e1 + 0.0)
}

/// About three significant digits, without an exponent in the usual range.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e7 => format!("{value:.1e}"),
        size if size >= 100.0 => thousands_signed(value.round()),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{:.2}", value + 0.0),
        _ => format!("{value:.1e}"),
    }
}

/// 3_500_000_000 as `3.26 GiB`.
pub fn bytes(count: f64) -> String {
    let mebibytes = count / f64::from(1 << 20);
    if mebibytes < 1000.0 { format!("{mebibytes:.0} MiB") } else { format!("{:.2} GiB", mebibytes / 1024.0) }
}

/// 12345 as `12,345`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for start in (first..digits.len()).step_by(3) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&digits[start..start + 3]);
    }
    text
}

fn thousands_signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", thousands(value.abs() as u64))
}

/// The text with the mark behind it. What is more than the room is cut out of the text's middle, with an ellipsis: names
/// of one family begin alike and differ at their ends, and a mark tells what a method is told or when it answers.
pub fn cut(text: &str, mark: &str, room: f64, width: impl Fn(char) -> f64) -> String {
    let taken = |text: &str| text.chars().map(&width).sum::<f64>();
    let room = room - taken(mark);
    if taken(text) <= room {
        return format!("{text}{mark}");
    }
    let letters: Vec<char> = text.chars().collect();
    let (mut start, mut end) = (0, letters.len());
    let mut left = room - width('…');
    while start < end {
        // The end gets the first letter, so that one letter more of it is shown.
        let from_end = letters.len() - end <= start;
        let next = if from_end { letters[end - 1] } else { letters[start] };
        left -= width(next);
        if left < 0.0 {
            break;
        }
        if from_end {
            end -= 1;
        } else {
            start += 1;
        }
    }
    let [head, tail] = [&letters[..start], &letters[end..]].map(|part| part.iter().collect::<String>());
    format!("{head}…{tail}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_has_two_decimals_and_no_negative_zero() {
        assert_eq!(percent(0.53125), "53.13");
        assert_eq!(percent(1.0), "100.00");
        assert_eq!(percent(-0.000_001), "0.00");
        assert_eq!(percent(-0.125), "-12.50");
        assert_eq!([0.0312, -0.0312, -0.000_01].map(signed), ["+3.12", "−3.12", "0.00"]);
        assert_eq!([0.5312, 0.338_75, -0.000_01].map(tenths), ["53.1", "33.9", "0.0"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        let found = [0, 7, 999, 1000, 12_345, 1_000_000].map(thousands);
        assert_eq!(found, ["0", "7", "999", "1,000", "12,345", "1,000,000"]);
    }

    #[test]
    fn short_keeps_about_three_digits() {
        let found = [0.0, 0.0003, 0.123_4, 1.0, 42.55, 123.4, -1234.5, 3e9].map(short);
        assert_eq!(found, ["0.00", "3.0e-4", "0.12", "1.00", "42.5", "123", "-1,235", "3.0e9"]);
    }

    #[test]
    fn names_are_cut_and_marks_are_not() {
        let found = [("er", 3.0), ("er", 2.0), ("er-long", 5.0), ("er-long", 8.0), ("er-long", 0.0)];
        let found = found.map(|(name, room)| cut(name, "†", room, |_| 1.0));
        assert_eq!(found, ["er†", "…†", "e…ng†", "er-long†", "…†"]);
        // An ellipsis as wide as two letters leaves room for one letter less.
        let wide = |letter| if letter == '…' { 2.0 } else { 1.0 };
        assert_eq!(cut("er-long", "", 5.0, wide), "e…ng");
        assert_eq!(cut("er-memory=50-lr=0.001", "", 12.0, |_| 1.0), "er-me…=0.001");
    }

    #[test]
    fn bytes_take_the_unit_that_fits() {
        assert_eq!(bytes(512.0 * 1024.0 * 1024.0), "512 MiB");
        assert_eq!(bytes(3.5e9), "3.26 GiB");
    }
}
