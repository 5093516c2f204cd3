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
    fill(claim.work(), &["history.csv", "model.npz.tmp", ".figure-1.svg"], "half");
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
    assert!(why.contains("--overwrite"), "{why}");
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
        assert!(why.contains("--overwrite"), "{why}");
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
