//! `--scheduler partition`: templates listed, picked by hand, and searched by measuring.

use std::path::Path;

use decompose_common::interrupt;
use decompose_common::progress::Screen;
use decompose_core::autoschedule::partition::{
    BanditConfig, Listed, ListedTemplate, Listing, Point,
};
use decompose_core::autoschedule::{HalvingConfig, SearchLimits};
use decompose_core::contract::{Choices, RaceReport, RaceTime, Sampling, sample};
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Value, counted};
use decompose_plot::Figure;
use serde_json::{Value as Json, json};

use crate::cli::Done;
use crate::failure::Failure;
use crate::schedule::args::{PartitionArgs, ScheduleArgs, Search, SearchArgs};
use crate::schedule::choose::{Chooser, How, Selection};
use crate::schedule::figures::{self, TEMPLATES};
use crate::schedule::measure::{check_memory, compiler, keep};
use crate::schedule::template_figures::{self, Measured};

/// The templates of a request, with what was measured.
pub(crate) struct Templates {
    listing: Listing,
    measured: Measured,
}

/// Tells whether the templates are searched.
pub(crate) fn is_asked(args: &SearchArgs) -> bool {
    args.scheduler == Some(Search::Named("partition"))
}

/// Refuses options of templates for another scheduler.
pub(crate) fn check(args: &PartitionArgs, search: &SearchArgs) -> Result<(), Failure> {
    let asked = args.templates
        || args.take.is_some()
        || args.exhaustive
        || args.sampling_seed != 0
        || args.plot_templates.is_some();
    if asked && !is_asked(search) {
        let why = "--templates, --take, --exhaustive, --sampling-seed and --plot-templates are options of partition \
                   templates";
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
        Ok((Templates { listing, measured: Measured::new() }, selection))
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
            // Schedules near the fastest differ by less than two runs of one do.
            last: HalvingConfig { budget_seconds: args.budget / 2.0, ..HalvingConfig::default() },
            ..BanditConfig::default()
        };
        let how = match args.partition.exhaustive {
            true => Sampling::Exhaustive,
            false => Sampling::Thompson,
        };
        let compiler = compiler()?;
        let choices = Choices::within(compiler.cache().folder());
        let toolchain = Toolchain::Native(compiler);
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
        for (&point, time) in points.iter().zip(&times) {
            let place = self.listing.place(point);
            self.measured.extend(time.map(|time| ((place, point.setting), time)));
        }
        // What was taken by hand is not the best of all.
        let whole = args.partition.take.is_none() && !interrupt::requested();
        if let Some(time) = times.first().copied().flatten().filter(|_| whole) {
            keep(chooser, &choices, (plan.choice(), time), screen);
        }
        plan.how = How::Measured(Box::new(RaceReport { times, winner: 0, halving }));
        Ok(plan)
    }

    /// Draws the space of schedules, what trimming leaves of it, and the times of what was measured.
    pub(crate) fn draw(&self, title: &str, file: &Path, screen: &Screen) -> Done {
        let space = template_figures::space(title, &self.listing, &self.measured);
        let trimming = template_figures::trimming(title, &self.listing);
        let times = template_figures::times(title, &self.listing, &self.measured);
        let all: [&dyn Figure; 3] = [&space, &trimming, &times];
        let drawn = if self.measured.is_empty() { 2 } else { 3 };
        let all: Vec<_> = TEMPLATES.into_iter().zip(all).take(drawn).collect();
        figures::draw_templates(file, &all, screen)
    }

    /// Returns all templates with their schedules, for programs.
    pub(crate) fn json(&self) -> Json {
        let schedule = |place: usize, (setting, listed): (usize, &Listed)| {
            let time = self.measured.get(&(place, setting));
            json!({
                "factors": listed.setting.factors,
                "predicted_seconds": listed.seconds,
                "measured_seconds": time.map(|time| time.median_seconds),
                "runs": time.map(|time| time.runs),
            })
        };
        let template = |(place, one): (usize, &ListedTemplate)| {
            let schedules = one.schedules.iter().enumerate().map(|two| schedule(place, two));
            json!({
                "number": one.number,
                "split": one.split + 1,
                "template": one.template.to_string(),
                "schedules": schedules.collect::<Vec<_>>(),
            })
        };
        self.listing.templates.iter().enumerate().map(template).collect()
    }

    /// Returns the table of templates.
    pub(crate) fn table(&self) -> String {
        let best = |place: usize| {
            let own = self.measured.range((place, 0)..(place + 1, 0));
            own.map(|(_, time)| time.median_seconds).reduce(f64::min)
        };
        self.listing.table(best).to_string()
    }
}
