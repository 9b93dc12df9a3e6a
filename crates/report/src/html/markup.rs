//! HTML and SVG as values. Text and attributes are escaped when written, by the one place that writes them, so a
//! class called `<script>` is a class called `<script>`. Knows tags, nothing of what they show.

use std::fmt::{Display, Write};

use crate::format;

/// One tag with its attributes and what is inside it.
#[derive(Clone, Debug)]
pub struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Element(Element),
    Text(String),
    Own(&'static str),
}

/// Elements HTML forbids to have children.
const VOID: [&str; 6] = ["br", "hr", "img", "input", "link", "meta"];
/// Elements inside which space between tags would show.
const INLINE: [&str; 21] = [
    "a",
    "abbr",
    "b",
    "code",
    "dd",
    "dt",
    "em",
    "figcaption",
    "h1",
    "h2",
    "h3",
    "h4",
    "li",
    "p",
    "pre",
    "span",
    "style",
    "summary",
    "td",
    "text",
    "th",
];

/// An empty element.
pub fn tag(name: &'static str) -> Element {
    Element { name, attributes: Vec::new(), children: Vec::new() }
}

impl Element {
    pub fn with(mut self, attribute: &'static str, value: impl Display) -> Self {
        self.attributes.push((attribute, value.to_string()));
        self
    }

    /// Adds to the classes it has.
    pub fn class(mut self, names: impl Display) -> Self {
        match self.attributes.iter_mut().find(|(name, _)| *name == "class") {
            Some((_, value)) => *value = format!("{value} {names}"),
            None => return self.with("class", names),
        }
        self
    }

    pub fn text(mut self, text: impl Display) -> Self {
        self.children.push(Node::Text(text.to_string()));
        self
    }

    /// Text of this program's own that must not be escaped; nothing read from a record lives long enough to pass.
    pub fn own(mut self, text: &'static str) -> Self {
        self.children.push(Node::Own(text));
        self
    }

    pub fn child(mut self, child: Element) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    pub fn children(mut self, children: impl IntoIterator<Item = Element>) -> Self {
        self.children.extend(children.into_iter().map(Node::Element));
        self
    }

    /// What a pointer resting on an SVG element shows.
    pub fn tooltip(self, text: impl Display) -> Self {
        self.child(tag("title").text(text))
    }

    pub fn write(&self, out: &mut String) {
        let _ = write!(out, "<{}", self.name);
        for (name, value) in &self.attributes {
            let _ = write!(out, " {name}=\"");
            escape(value, out);
            out.push('"');
        }
        if VOID.contains(&self.name) {
            out.push_str(" />");
            return;
        }
        out.push('>');
        let spaced = !INLINE.contains(&self.name)
            && self.children.iter().any(|child| matches!(child, Node::Element(_)));
        for child in &self.children {
            if spaced {
                out.push('\n');
            }
            match child {
                Node::Element(element) => element.write(out),
                Node::Text(text) => escape(text, out),
                Node::Own(text) => out.push_str(text),
            }
        }
        if spaced {
            out.push('\n');
        }
        let _ = write!(out, "</{}>", self.name);
    }
}

/// Control characters have no place in XML and are shown as the replacement character.
fn escape(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
}

/// A coordinate: one decimal is a tenth of a pixel, which nobody sees, and short numbers keep the page small.
pub fn px(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0 + 0.0;
    if rounded.is_finite() { rounded.to_string() } else { "0".into() }
}

/// Room a text takes, a little more than most fonts need.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|letter| letter_width(letter, size)).sum()
}

fn letter_width(letter: char, size: f64) -> f64 {
    size * if letter >= '\u{1100}' { 1.05 } else { 0.6 }
}

/// The text and a mark behind it; the text is cut in its middle if both take more room than there is.
pub fn fit(text: &str, mark: &str, size: f64, room: f64) -> String {
    format::cut(text, mark, room, |letter| letter_width(letter, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(element: &Element) -> String {
        let mut out = String::new();
        element.write(&mut out);
        out
    }

    #[test]
    fn text_and_attributes_are_escaped() {
        let element = tag("p").with("title", "\"a\" & <b>").text("<script>alert('&')</script>\u{0}");
        assert_eq!(
            written(&element),
            "<p title=\"&quot;a&quot; &amp; &lt;b&gt;\">&lt;script&gt;alert('&amp;')&lt;/script&gt;\u{fffd}</p>"
        );
    }

    #[test]
    fn only_void_elements_close_themselves() {
        assert_eq!(
            written(&tag("div").child(tag("img")).child(tag("path"))),
            "<div>\n<img />\n<path></path>\n</div>"
        );
        assert_eq!(written(&tag("p").text("a ").child(tag("b").text("c"))), "<p>a <b>c</b></p>");
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        let found = [1.0, 2.34, -0.01, f64::NAN, f64::INFINITY].map(px);
        assert_eq!(found, ["1", "2.3", "0", "0", "0"]);
    }

    #[test]
    fn text_too_long_for_its_room_has_an_ellipsis_in_its_middle() {
        assert_eq!(fit("short", "", 10.0, 100.0), "short");
        // Four letters of 6 and an ellipsis of 10.5; a fifth letter would make it 40.5.
        assert_eq!(fit("a long name", "", 10.0, 40.0), "a …me");
        assert!(text_width(&fit("a long name", "", 10.0, 40.0), 10.0) <= 40.0);
        // A mark of 6 takes the room of one letter.
        assert_eq!(fit("a long name", "§", 10.0, 40.0), "a…me§");
    }
}
