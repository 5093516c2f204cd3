//! What the values of a model say: by which loss it was fitted, on which scale it is, which of its
//! components are offsets.
//!
//! Arrays in `model.npz`, beside those of the model; models without them are of no loss, on the scale
//! of the data, and have no offsets:
//!
//! | array | content |
//! |---|---|
//! | `loss` | the name of the loss, as bytes of ASCII |
//! | `link` | `identity` or `logit`, as bytes of ASCII |
//! | `biases` | how many of the last components of a CP model are offsets |

use std::io;

use crate::error::CommonError;
use crate::npz::{NpzIn, NpzOut};

/// How a model's values become those of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// They are on the scale of the data.
    #[default]
    Identity,
    /// They are logarithms of odds; the data are probabilities, or zeros and ones.
    Logit,
}

impl Link {
    /// All of them.
    const ALL: [Link; 2] = [Link::Identity, Link::Logit];

    /// Returns its name in model files.
    pub fn name(self) -> &'static str {
        match self {
            Link::Identity => "identity",
            Link::Logit => "logit",
        }
    }

    /// Returns what the model's value `value` is on the scale of the data.
    pub fn mean(self, value: f64) -> f64 {
        match self {
            Link::Identity => value,
            // The exponent is never positive: it cannot overflow.
            Link::Logit if value >= 0.0 => 1.0 / (1.0 + (-value).exp()),
            Link::Logit => value.exp() / (1.0 + value.exp()),
        }
    }
}

/// What the values of a model say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// The loss that it was fitted by, if the file names one.
    pub loss: Option<String>,
    /// From its values to those of the data.
    pub link: Link,
    /// How many of the last components of a CP model are offsets.
    pub biases: usize,
}

impl Meaning {
    /// Adds its arrays to the file of a model; nothing for a model without a loss.
    pub(super) fn add(&self, out: &mut NpzOut<'_>) -> io::Result<()> {
        let Some(loss) = &self.loss else { return Ok(()) };
        out.numbers("loss", loss.as_bytes())?;
        out.numbers("link", self.link.name().as_bytes())?;
        out.numbers("biases", &[self.biases as u64])
    }

    /// Reads what [`Meaning::add`] wrote.
    pub(super) fn read(archive: &mut NpzIn) -> Result<Meaning, CommonError> {
        let mut text = |name: &str| -> Result<Option<String>, CommonError> {
            if !archive.has(name) {
                return Ok(None);
            }
            let bytes: Vec<u8> = archive.numbers(name)?;
            let why = || CommonError::content(archive.path(), format!("array `{name}` is no text"));
            String::from_utf8(bytes).map(Some).map_err(|_| why())
        };
        let (loss, link) = (text("loss")?, text("link")?);
        let known = |name: &String| Link::ALL.into_iter().find(|link| link.name() == name);
        let link = match &link {
            None => Link::Identity,
            Some(name) => known(name).ok_or_else(|| {
                let why =
                    format!("array `link` is `{name}`; this program knows identity and logit");
                CommonError::content(archive.path(), why)
            })?,
        };
        let biases = match archive.has("biases") {
            true => archive.numbers::<u64>("biases")?.first().copied().unwrap_or(0) as usize,
            false => 0,
        };
        Ok(Meaning { loss, link, biases })
    }
}

#[cfg(test)]
mod tests {
    use super::Link;

    #[test]
    fn odds_become_probabilities() {
        for (value, want) in [(0.0, 0.5), (3.0_f64.ln(), 0.75), (-(3.0_f64.ln()), 0.25)] {
            assert!((Link::Logit.mean(value) - want).abs() < 1e-15, "{value}");
        }
        assert_eq!([-800.0, 800.0].map(|value| Link::Logit.mean(value)), [0.0, 1.0]);
        assert_eq!(Link::Identity.mean(-7.5), -7.5);
    }
}
