//! Search by a person: a table of templates, and those that the person picks (section 2.6).

use std::fmt;

/// A template in the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// By which number it is picked, from 1.
    pub number: usize,
    /// Which split schedule, from 1.
    pub split: usize,
    /// The commands.
    pub template: String,
    /// Legal settings of its factors.
    pub settings: usize,
    /// Predicted seconds of the best setting.
    pub predicted: Option<f64>,
    /// Measured seconds of the best setting.
    pub measured: Option<f64>,
}

/// The templates of a search, numbered from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateTable {
    /// The rows.
    pub rows: Vec<Row>,
}

impl TemplateTable {
    /// Returns the places of the rows that `text` picks: numbers and ranges, such as `2,5-7`; `all` picks all.
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    ///
    /// # Example
    ///
    /// ```
    /// use decompose_core::autoschedule::partition::{Row, TemplateTable};
    ///
    /// let row = Row { number: 1, split: 1, template: String::new(), settings: 1, predicted: None, measured: None };
    /// let table = TemplateTable { rows: vec![row; 7] };
    /// assert_eq!(table.take("2,5-7"), Ok(vec![1, 4, 5, 6]));
    /// assert!(table.take("8").is_err());
    /// ```
    pub fn take(&self, text: &str) -> Result<Vec<usize>, String> {
        let rows = self.rows.len();
        if text.trim() == "all" {
            return Ok((0..rows).collect());
        }
        let number = |word: &str| {
            let number = word.trim().parse::<usize>().ok().filter(|n| (1..=rows).contains(n));
            number.ok_or_else(|| {
                format!("`{}` is no template; they are numbered 1 to {rows}", word.trim())
            })
        };
        let mut taken = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("`{}` runs backwards", part.trim()));
            }
            taken.extend(first - 1..last);
        }
        taken.sort_unstable();
        taken.dedup();
        Ok(taken)
    }
}

impl fmt::Display for TemplateTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>4} {:>5} {:>8} {:>11} {:>11}  template",
            "row", "split", "settings", "predicted", "measured"
        )?;
        for row in &self.rows {
            let seconds = |seconds: Option<f64>| {
                seconds.map_or("-".to_owned(), |seconds| format!("{:.4} ms", seconds * 1e3))
            };
            let (predicted, measured) = (seconds(row.predicted), seconds(row.measured));
            let Row { number, split, settings, .. } = row;
            writeln!(
                f,
                "{number:>4} {split:>5} {settings:>8} {predicted:>11} {measured:>11}  {}",
                row.template
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, TemplateTable};

    fn table(rows: usize) -> TemplateTable {
        let row = |place: usize| Row {
            number: place + 1,
            split: place / 2 + 1,
            template: format!(".reorder({{x{place}}})"),
            settings: 3,
            predicted: (place == 0).then_some(1e-3),
            measured: None,
        };
        TemplateTable { rows: (0..rows).map(row).collect() }
    }

    #[test]
    fn rows_are_numbered_and_lined_up() {
        let expected = " row split settings   predicted    measured  template\n   \
                        1     1        3   1.0000 ms           -  .reorder({x0})\n   \
                        2     1        3           -           -  .reorder({x1})\n";
        assert_eq!(table(2).to_string(), expected);
    }

    #[test]
    fn what_is_no_row_is_refused() {
        let table = table(9);
        assert_eq!(table.take("all").unwrap().len(), 9);
        assert_eq!(table.take("3,1-3"), Ok(vec![0, 1, 2]));
        for (text, why) in [
            ("0", "`0` is no template; they are numbered 1 to 9"),
            ("1-x", "`x` is no template; they are numbered 1 to 9"),
            ("", "`` is no template; they are numbered 1 to 9"),
            ("5-2", "`5-2` runs backwards"),
        ] {
            assert_eq!(table.take(text), Err(why.to_owned()));
        }
    }
}
