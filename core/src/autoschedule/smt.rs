//! Questions in SMT-LIB, put to a `z3` process.
//!
//! Nothing is linked: where there is no such program, [`solver`] says so, and [`require`] names the remedy.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

use crate::error::CoreError;
use crate::runtime::run_program;

/// The program that is asked.
pub(super) const PROGRAM: &str = "z3";

/// How long the program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// How much longer than its own limit the program may run until it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// A solver that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smt {
    version: String,
}

/// What a solver says to a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The assertions hold with these values.
    Sat(Model),
    /// They hold with none.
    Unsat,
    /// The solver cannot tell, or not in time.
    Unknown,
}

/// The values of the constants of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    values: BTreeMap<String, f64>,
}

impl Model {
    /// Returns the value of a constant; `None` if the solver gave none that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// Returns the value of a constant that is a whole number from zero on.
    pub fn place(&self, name: &str) -> Option<usize> {
        let whole =
            |value: &f64| value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(value);
        self.number(name).filter(whole).map(|value| value as usize)
    }
}

/// Returns the solver of this machine; `None` if there is none.
pub fn solver() -> Option<Smt> {
    require().ok()
}

/// Returns the solver of this machine.
///
/// # Errors
///
/// [`CoreError::Solver`] with the remedy if there is none.
pub fn require() -> Result<Smt, CoreError> {
    let absent = |why: String| CoreError::Solver {
        solver: PROGRAM.to_owned(),
        why: format!("{why}; install it (apt-get install z3, or pip install z3-solver)"),
    };
    let output = run_program(Command::new(PROGRAM).arg("--version"), VERSION_LIMIT);
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => absent("there is no such program in PATH".to_owned()),
        _ => failed(&format!(
            "asked for its version: {error}; put another `{PROGRAM}` first in PATH"
        )),
    })?;
    let version = output.out.trim().to_owned();
    match output.success && !version.is_empty() {
        true => Ok(Smt { version }),
        false => Err(absent("it does not say its version".to_owned())),
    }
}

impl Smt {
    /// Returns what the program says of itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Asks whether the assertions of `script` can hold.
    ///
    /// The script declares and asserts; the commands that check it are added.
    ///
    /// # Errors
    ///
    /// [`CoreError::Solver`] if the program fails, or refuses the script.
    pub fn ask(&self, script: &str, seconds: f64) -> Result<Answer, CoreError> {
        let mut answers = self.ask_all(&[script.to_owned()], seconds)?;
        Ok(answers.pop().unwrap_or(Answer::Unknown))
    }

    /// Asks of each script by itself, within `seconds` for all of them; one answer a script.
    ///
    /// # Errors
    ///
    /// As [`Smt::ask`].
    pub fn ask_all(&self, scripts: &[String], seconds: f64) -> Result<Vec<Answer>, CoreError> {
        let mut text = String::from("(set-option :pp.decimal true)\n");
        for script in scripts {
            text += &format!("(push)\n{script}\n(check-sat)\n(get-model)\n(pop)\n");
        }
        let whole = seconds.max(0.0).ceil().clamp(1.0, f64::from(i32::MAX));
        let output = file(&text).and_then(|file| {
            let mut command = Command::new(PROGRAM);
            command.arg(format!("-T:{whole}")).arg("-smt2").arg(file.path());
            run_program(&mut command, Duration::from_secs_f64(whole) + GRACE)
        });
        let said = match output {
            Ok(output) => output.out,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => String::new(),
            Err(error) => return Err(failed(&error.to_string())),
        };
        answers(&said, scripts.len()).map_err(|why| failed(&why))
    }
}

fn failed(why: &str) -> CoreError {
    CoreError::Solver { solver: PROGRAM.to_owned(), why: why.to_owned() }
}

/// Writes a script to a file that lives as long as what is returned.
fn file(text: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().suffix(".smt2").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Reads what the program said to `scripts` scripts; those without an answer were not met in time.
///
/// # Errors
///
/// The first complaint of the program, unless it is that a script has no model.
fn answers(said: &str, scripts: usize) -> Result<Vec<Answer>, String> {
    let mut answers = Vec::with_capacity(scripts);
    for term in terms(said) {
        match term {
            Term::Word(word) => match word.as_str() {
                "sat" => answers.push(Answer::Sat(Model::default())),
                "unsat" => answers.push(Answer::Unsat),
                "unknown" | "timeout" => answers.push(Answer::Unknown),
                _ => return Err(format!("it says `{word}`")),
            },
            Term::List(list) => match (list.first(), answers.last_mut()) {
                (Some(Term::Word(word)), _) if word == "error" => complaint(&list)?,
                (_, Some(Answer::Sat(model))) => model.read(&list),
                _ => {}
            },
        }
    }
    if answers.len() > scripts {
        return Err(format!("it gives {} answers to {scripts} scripts", answers.len()));
    }
    answers.resize(scripts, Answer::Unknown);
    Ok(answers)
}

fn complaint(list: &[Term]) -> Result<(), String> {
    match list.get(1) {
        Some(Term::Word(why)) if why.contains("model is not available") => Ok(()),
        Some(Term::Word(why)) => Err(why.clone()),
        _ => Err("it complains without a word".to_owned()),
    }
}

impl Model {
    /// Reads definitions: `(define-fun NAME () SORT VALUE)`.
    fn read(&mut self, list: &[Term]) {
        for term in list {
            let Term::List(definition) = term else { continue };
            let [Term::Word(word), Term::Word(name), _, _, value] = definition.as_slice() else {
                continue;
            };
            if let ("define-fun", Some(value)) = (word.as_str(), number(value)) {
                self.values.insert(name.clone(), value);
            }
        }
    }
}

/// Returns the number that a term stands for: `3`, `1.5?`, `(- 2)`, `(/ 1.0 3.0)`.
fn number(term: &Term) -> Option<f64> {
    match term {
        Term::Word(word) => word.trim_end_matches('?').parse().ok(),
        Term::List(list) => match list.as_slice() {
            [Term::Word(sign), one] if sign == "-" => Some(-number(one)?),
            [Term::Word(sign), a, b] if sign == "/" => Some(number(a)? / number(b)?),
            _ => None,
        },
    }
}

/// A term of SMT-LIB.
#[derive(Clone, Debug, PartialEq)]
enum Term {
    Word(String),
    List(Vec<Term>),
}

/// Reads all terms of a text; a list that the text does not end is left out.
fn terms(text: &str) -> Vec<Term> {
    let (mut open, mut rest): (Vec<Vec<Term>>, &str) = (vec![Vec::new()], text);
    while let Some(first) = rest.trim_start().chars().next() {
        rest = rest.trim_start();
        let quoted = |quote: char| rest[1..].find(quote).map_or(rest.len(), |at| at + 2);
        let end = match first {
            '(' | ')' => 1,
            '"' | '|' => quoted(first),
            _ => {
                rest.find(|c: char| c.is_whitespace() || c == '(' || c == ')').unwrap_or(rest.len())
            }
        };
        let word = &rest[..end];
        match first {
            '(' => open.push(Vec::new()),
            ')' => {
                let list = open.pop().unwrap_or_default();
                if open.is_empty() {
                    open.push(Vec::new());
                }
                open.iter_mut()
                    .last()
                    .into_iter()
                    .for_each(|outer| outer.push(Term::List(list.clone())));
            }
            _ => {
                let word = Term::Word(word.trim_matches(['"', '|']).to_owned());
                open.iter_mut().last().into_iter().for_each(|outer| outer.push(word.clone()));
            }
        }
        rest = &rest[end..];
    }
    open.swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Smt, answers, solver};

    /// The solver; skips a test with a word where there is none.
    fn asked() -> Option<Smt> {
        let found = solver();
        if found.is_none() {
            eprintln!("skipped: no z3");
        }
        found
    }

    #[test]
    fn answers_are_read_with_their_values() {
        let said = "sat\n(\n  (define-fun b () Real\n    (- (/ 1.0 4.0)))\n  (define-fun |a b| () Int\n    3)\n)\n\
                    unsat\n(error \"line 11 column 10: model is not available\")\ntimeout\n";
        let read = answers(said, 4).unwrap();
        let Answer::Sat(model) = &read[0] else { panic!("{read:?}") };
        assert_eq!((model.number("b"), model.place("b")), (Some(-0.25), None));
        assert_eq!((model.place("a b"), model.number("c")), (Some(3), None));
        assert_eq!(read[1..], [Answer::Unsat, Answer::Unknown, Answer::Unknown]);
        // Older programs name the list.
        let named = answers("sat (model (define-fun a () Int 7))", 1).unwrap();
        assert!(matches!(&named[0], Answer::Sat(model) if model.place("a") == Some(7)));
    }

    #[test]
    fn complaints_are_errors() {
        let why = answers("(error \"line 1 column 9: unknown constant q\")\nsat\n", 1).unwrap_err();
        assert!(why.contains("unknown constant q"), "{why}");
        assert!(answers("Segmentation", 1).unwrap_err().contains("Segmentation"));
        assert!(answers("sat\nsat\n", 1).is_err());
    }

    #[test]
    fn broken_lists_do_no_harm() {
        for text in [")", "(", "(()", "sat (a", "\"x", "|", "((a) b))) sat"] {
            let _ = answers(text, 1);
        }
    }

    #[test]
    fn a_solver_answers() {
        let Some(smt) = asked() else { return };
        let declared = "(declare-const x Int)(declare-const |y z| Real)";
        let script = format!("{declared}(assert (and (> x 4) (< x 6) (= (* 2 |y z|) 1.0)))");
        let Answer::Sat(model) = smt.ask(&script, 10.0).unwrap() else { panic!("no solution") };
        assert_eq!((model.place("x"), model.number("y z")), (Some(5), Some(0.5)));
        let none = format!("{declared}(assert (< x x))");
        let root = format!("{declared}(assert (and (> |y z| 0.0) (= (* |y z| |y z|) 2.0)))");
        let all = smt.ask_all(&[none, root, script], 10.0).unwrap();
        assert_eq!(all[0], Answer::Unsat);
        let Answer::Sat(model) = &all[1] else { panic!("{all:?}") };
        assert!((model.number("y z").unwrap() - 2_f64.sqrt()).abs() < 1e-6, "{model:?}");
        assert!(matches!(all[2], Answer::Sat(_)));
        assert!(smt.ask("(assert q)", 10.0).unwrap_err().to_string().contains("unknown constant"));
        assert!(smt.version().contains('.'));
    }

    #[test]
    fn a_question_without_an_end_is_given_up() {
        let Some(smt) = asked() else { return };
        // Pigeons: 12 whole numbers below 11 that differ, said pair by pair.
        let names: Vec<String> = (0..12).map(|n| format!("p{n}")).collect();
        let mut script = String::new();
        for (at, name) in names.iter().enumerate() {
            script +=
                &format!("(declare-const {name} Int)(assert (and (<= 0 {name}) (< {name} 11)))\n");
            for other in &names[..at] {
                script += &format!("(assert (or (< {name} {other}) (> {name} {other})))\n");
            }
        }
        let start = std::time::Instant::now();
        assert_eq!(smt.ask(&script, 1.0).unwrap(), Answer::Unknown);
        assert!(start.elapsed().as_secs_f64() < 60.0);
    }
}
