//! Claims, replacements, moves that were cut short.

use super::*;

/// Writes a file in `folder` for each of `names`, with `text`.
fn fill(folder: &Path, names: &[&str], text: &str) {
    fs::create_dir_all(folder).unwrap();
    names.iter().for_each(|name| fs::write(folder.join(name), text).unwrap());
}

fn sorted(folder: &Path) -> Vec<String> {
    let mut names = names(folder).unwrap();
    names.sort();
    names
}

#[test]
fn a_claim_leaves_no_trace_and_excludes_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/run");
    let claim = RunFolder::claim(&path, Existing::Refuse).unwrap();
    fill(claim.work(), &["history.csv", ".decompose-1.part", ".decompose-2.part.svg"], "half");
    for existing in [Existing::Refuse, Existing::Replace] {
        let why = RunFolder::claim(&path, existing).unwrap_err().to_string();
        assert!(why.contains("another run is writing"), "{why}");
    }
    drop(claim);
    assert!(sorted(dir.path()).is_empty());
    let claim = RunFolder::claim(&path, Existing::Refuse).unwrap();
    fill(claim.work(), &["model.npz", "run.json"], "1");
    claim.publish().unwrap();
    let why = RunFolder::claim(&path, Existing::Refuse).unwrap_err().to_string();
    assert!(why.contains("is not empty"), "{why}");
    assert_eq!(sorted(&path), ["model.npz", "run.json"]);
    let why = RunFolder::claim(&path, Existing::Resume).unwrap_err().to_string();
    assert!(why.contains("cannot open"), "{why}");
}

#[test]
fn an_earlier_run_stays_until_the_new_one_takes_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    for foreign in [&[][..], &["notes.txt"]] {
        fill(&path, &["model.npz", "mode12.mat", "run.json", "timing.svg"], "old");
        fill(&path, foreign, "mine");
        let before = sorted(&path);
        let claim = RunFolder::claim(&path, Existing::Replace).unwrap();
        fill(claim.work(), &["model.npz", "run.json"], "new");
        drop(claim);
        assert_eq!((sorted(&path), sorted(dir.path())), (before, vec!["run".into()]));
        let claim = RunFolder::claim(&path, Existing::Replace).unwrap();
        fill(claim.work(), &["model.npz", "run.json"], "new");
        fill(&claim.work().join("restart-1"), &["model.npz"], "new");
        claim.publish().unwrap();
        let mut expected = vec!["model.npz", "restart-1", "run.json"];
        expected.splice(1..1, foreign.iter().copied());
        assert_eq!(sorted(&path), expected);
        assert_eq!(fs::read_to_string(path.join("model.npz")).unwrap(), "new");
        assert_eq!(sorted(dir.path()), ["run"]);
    }
}

#[test]
fn a_move_that_was_cut_short_is_completed_by_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let (path, aside) = (dir.path().join("run"), dir.path().join(".run.partial"));
    let new = ["history.csv", "model.npz", "run.json"];
    // Cut short after none, some or all of the new files were moved.
    for moved in 0..=new.len() {
        let _ = fs::remove_dir_all(&path);
        fill(&path, &["notes.txt"], "mine");
        fill(&path, &new[..moved], "new");
        fill(&aside, &new[moved..], "new");
        if moved == 0 {
            fill(&path, &["model.npz", "run.json", "lambda.mat"], "old");
        }
        fs::write(aside.join(MOVING), new.join("\n") + "\n").unwrap();
        let why = RunFolder::claim(&path, Existing::Refuse).unwrap_err().to_string();
        assert!(why.contains("is not empty"), "{why}");
        assert_eq!(sorted(&path), ["history.csv", "model.npz", "notes.txt", "run.json"]);
        for name in new {
            assert_eq!(fs::read_to_string(path.join(name)).unwrap(), "new", "{moved}: {name}");
        }
        assert!(!aside.exists());
    }
}

#[test]
fn a_checkpoint_outlives_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    fill(&path, &["model.npz", "run.json", "checkpoint.npz"], "old");
    fill(&path.join("restart-1"), &["model.npz"], "old");
    assert_eq!(resumable(&path), path);
    let claim = RunFolder::claim(&path, Existing::Replace).unwrap();
    fill(claim.work(), &["history.csv", "checkpoint.npz"], "new");
    let aside = claim.work().to_owned();
    drop(claim);
    assert_eq!(fs::canonicalize(resumable(&path)).unwrap(), aside);
    // The run that resumes it goes on where it is.
    let claim = RunFolder::claim(&path, Existing::Resume).unwrap();
    assert_eq!((claim.work(), sorted(&aside)), (&*aside, vec!["checkpoint.npz".into()]));
    fill(claim.work(), &["model.npz", "run.json"], "new");
    claim.take_checkpoint(&resumable(&path)).unwrap();
    claim.publish().unwrap();
    assert_eq!(sorted(&path), ["checkpoint.npz", "model.npz", "run.json"]);
    assert_eq!(fs::read_to_string(path.join("checkpoint.npz")).unwrap(), "new");
    // One that saves none keeps the one that it has resumed.
    fill(&path.join("restart-1"), &["model.npz"], "new");
    let claim = RunFolder::claim(&path, Existing::Resume).unwrap();
    fill(claim.work(), &["model.npz"], "newer");
    claim.take_checkpoint(&resumable(&path)).unwrap();
    claim.publish().unwrap();
    assert_eq!(sorted(&path), ["checkpoint.npz", "model.npz", "restart-1"]);
    // A new run discards it, once it has ended.
    let claim = RunFolder::claim(&path, Existing::Replace).unwrap();
    fill(claim.work(), &["model.npz"], "newest");
    claim.publish().unwrap();
    assert_eq!(sorted(&path), ["model.npz"]);
}

#[test]
fn figures_stand_beside_a_run_and_measures_replace_measures() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let run = ["convergence.svg", "model.npz", "run.json", "timing.svg"];
    fill(&path, &run, "old");
    let why = RunFolder::claim_for(&path, Existing::Refuse, Contents::Figures).unwrap_err();
    assert!(why.to_string().contains("is not empty"), "{why}");
    let claim = RunFolder::claim_for(&path, Existing::Replace, Contents::Figures).unwrap();
    fill(claim.work(), &["convergence.svg", "convergence-2.svg"], "new");
    let why = RunFolder::claim(&path, Existing::Replace).unwrap_err().to_string();
    assert!(why.contains("another run is writing"), "{why}");
    claim.publish().unwrap();
    let expected = ["convergence-2.svg", "convergence.svg", "model.npz", "run.json", "timing.svg"];
    assert_eq!(
        (sorted(&path), sorted(dir.path())),
        (expected.map(String::from).to_vec(), vec!["run".into()])
    );
    let text = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    assert_eq!(["convergence.svg", "timing.svg", "run.json"].map(text), ["new", "old", "old"]);
    // A move of figures that was cut short takes nothing of the run along either.
    let aside = dir.path().join(".run.partial");
    fill(&aside, &["timing.svg"], "new");
    fs::write(aside.join(MOVING), "# figures\nconvergence.svg\ntiming.svg\n").unwrap();
    RunFolder::claim(&path, Existing::Refuse).unwrap_err();
    assert_eq!(
        (sorted(&path), text("timing.svg"), text("model.npz")),
        (expected.map(String::from).to_vec(), "new".into(), "old".into())
    );
    // A run that can be resumed is not discarded for figures.
    fill(&aside, &["checkpoint.npz"], "half");
    let why = RunFolder::claim_for(&path, Existing::Replace, Contents::Figures).unwrap_err();
    assert!(why.to_string().contains("has left a checkpoint"), "{why}");
    // A dropped claim takes its figures along, and measures those of earlier measures alone.
    let path = dir.path().join("bench");
    let claim = RunFolder::claim_for(&path, Existing::Refuse, Contents::Figures).unwrap();
    fill(claim.work(), &["bench.svg"], "half");
    drop(claim);
    assert!(!path.exists());
    fill(&path, &["bench.json", "raw.csv", "ablation.svg", "notes.txt"], "old");
    let claim = RunFolder::claim_for(&path, Existing::Replace, Contents::Measures).unwrap();
    fill(claim.work(), &["bench.json", "raw.csv"], "new");
    claim.publish().unwrap();
    assert_eq!(sorted(&path), ["bench.json", "notes.txt", "raw.csv"]);
}
