//! `--scheduler partition`: templates listed, picked by hand, and searched by measuring.

use std::collections::BTreeMap;

use decompose_common::interrupt;
use decompose_common::progress::Screen;
use decompose_core::autoschedule::SearchLimits;
use decompose_core::autoschedule::partition::{BanditConfig, Listed, Listing, Point};
use decompose_core::contract::{RaceReport, RaceTime, Sampling, sample};
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Value, counted};

use crate::failure::Failure;
use crate::schedule::args::{PartitionArgs, ScheduleArgs, Search, SearchArgs};
use crate::schedule::choose::{Chooser, How, Selection};
use crate::schedule::measure::{check_memory, compiler};

/// The templates of a request, with what was measured.
pub(crate) struct Templates {
    listing: Listing,
    /// The measured seconds of the best schedule of each template, by its place.
    measured: BTreeMap<usize, f64>,
}

/// Tells whether the templates are searched.
pub(crate) fn is_asked(args: &SearchArgs) -> bool {
    args.scheduler == Some(Search::Named("partition"))
}

/// Refuses options of templates for another scheduler.
pub(crate) fn check(args: &PartitionArgs, search: &SearchArgs) -> Result<(), Failure> {
    let asked = args.templates || args.take.is_some() || args.exhaustive || args.sampling_seed != 0;
    if asked && !is_asked(search) {
        let why = "--templates, --take, --exhaustive and --sampling-seed are options of partition templates";
        return Err(Failure::input(why).help("add --scheduler partition"));
    }
    Ok(())
}

impl Templates {
    /// Lists and picks the templates of the request; returns them with their schedules, the best predicted first.
    pub(crate) fn new(
        args: &ScheduleArgs,
        chooser: &Chooser<'_>,
        screen: &mut Screen,
    ) -> Result<(Templates, Selection), Failure> {
        let (listing, _) = screen.phase("search", || chooser.listing(&SearchLimits::all()));
        let mut listing = listing?;
        if listing.is_empty() {
            let why = "no partition template is generated for this expression";
            return Err(Failure::input(why)
                .help("partition lists templates of up to six loops; take another scheduler"));
        }
        if let Some(rows) = &args.partition.take {
            let places = listing.table(|_| None).take(rows);
            let places = places.map_err(|why| {
                Failure::input(format!("--take {rows}: {why}")).help("see --templates")
            })?;
            listing.take(&places);
        }
        let mut best: Vec<&Listed> = listing.schedules().collect();
        best.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let selection = chooser.of_listing(best);
        let kept = counted(listing.len(), "schedule", "schedules");
        let templates = counted(listing.templates.len(), "template", "templates");
        screen.line(format!("search   partition: {kept} of {templates}"));
        for (why, count) in &listing.refused {
            screen.line(format!("         {count} not generated: {why}"));
        }
        Ok((Templates { listing, measured: BTreeMap::new() }, selection))
    }

    /// Measures the schedules: what ran stands in the selection, the fastest of the last round first.
    pub(crate) fn measure<V: Value>(
        &mut self,
        args: &ScheduleArgs,
        tensors: &[(usize, Coo<V>)],
        chooser: &Chooser<'_>,
        screen: &mut Screen,
    ) -> Result<Selection, Failure> {
        let all = chooser.of_listing(self.listing.schedules().collect());
        check_memory(&all.picks, tensors, &chooser.machine)?;
        let config = BanditConfig {
            seed: args.partition.sampling_seed,
            budget_seconds: args.budget,
            ..BanditConfig::default()
        };
        let how = match args.partition.exhaustive {
            true => Sampling::Exhaustive,
            false => Sampling::Thompson,
        };
        let toolchain = Toolchain::Native(compiler()?);
        let stopped = &interrupt::requested;
        let run = || sample(tensors, &self.listing, &toolchain, (&config, how), stopped);
        let (sampled, seconds) = screen.phase("measure", run);
        let sampled = sampled?;
        screen.line(format!("measure  {}; {seconds:.2} s in all", sampled.report));
        let Some(halving) = sampled.report.last.clone() else {
            return Err(Failure::input("no schedule ran").help("give more time with --budget"));
        };
        // Of those that were measured again the best median is first, then come the others.
        let finalists = &sampled.report.finalists;
        let median =
            |point: &Point| sampled.time(*point).map_or(f64::INFINITY, |t| t.median_seconds);
        let mut first = finalists.clone();
        first.sort_by(|a, b| median(a).total_cmp(&median(b)));
        let mut rest: Vec<Point> =
            sampled.runs.keys().copied().filter(|point| !finalists.contains(point)).collect();
        rest.sort_by(|a, b| median(a).total_cmp(&median(b)));
        let points: Vec<Point> = first.into_iter().chain(rest).collect();
        let times: Vec<Option<RaceTime>> =
            points.iter().map(|&point| sampled.time(point)).collect();
        let (_, listed) = self.listing.arms();
        let mut plan = chooser.of_listing(points.iter().map(|&point| listed(point)).collect());
        self.measured = self.best_of_templates(&points, &times);
        plan.how = How::Measured(Box::new(RaceReport { times, winner: 0, halving }));
        Ok(plan)
    }

    /// The least median of each template, by its place.
    fn best_of_templates(
        &self,
        points: &[Point],
        times: &[Option<RaceTime>],
    ) -> BTreeMap<usize, f64> {
        let mut first: Vec<usize> = Vec::new();
        for (at, template) in self.listing.templates.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| self.listing.templates[at].split);
            if before != Some(template.split) {
                first.push(at);
            }
        }
        let mut best = BTreeMap::new();
        for (point, time) in points.iter().zip(times) {
            let Some(time) = time else { continue };
            let place = first[point.split] + point.template;
            let least = best.entry(place).or_insert(f64::INFINITY);
            *least = f64::min(*least, time.median_seconds);
        }
        best
    }

    /// Returns the table of templates.
    pub(crate) fn table(&self) -> String {
        self.listing.table(|place| self.measured.get(&place).copied()).to_string()
    }
}
