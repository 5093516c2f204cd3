//! The schedules of all templates of a problem, with their predicted seconds, and the scheduler that ranks them.

use std::time::Instant;

use crate::autoschedule::level_orders::ordered;
use crate::autoschedule::partition::bandit::{Arm, Arms, Point};
use crate::autoschedule::partition::cuts::{PartitionConfig, split_schedules};
use crate::autoschedule::partition::generated::{Base, Generated};
use crate::autoschedule::partition::mapping::Target;
use crate::autoschedule::partition::parameters::{Parameters, Setting, Sizes};
use crate::autoschedule::partition::split_schedule::SplitSchedule;
use crate::autoschedule::partition::table::{Row, TemplateTable};
use crate::autoschedule::partition::templates::{Template, templates};
use crate::autoschedule::partition::trimming::Trimmed;
use crate::autoschedule::paths::no_schedule;
use crate::autoschedule::{
    Breadth, Candidate, OrdersFound, Scheduler, SearchLimits, SearchOutcome, SearchReport,
    StopReason, Storage, default_scheduler,
};
use crate::cost::{Cost, Machine, estimate, on_threads};
use crate::error::CoreError;
use crate::path::{Path, unfactorised};
use crate::schedule::Problem;

/// Split schedules with more loops than that are not listed: six have 720 orders.
const MOST_LOOPS: usize = 6;

/// A schedule of a template.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The values of the factors.
    pub setting: Setting,
    /// The schedule.
    pub generated: Generated,
    /// Its predicted cost on one core.
    pub cost: Cost,
    /// Its predicted seconds on all threads.
    pub seconds: f64,
}

/// A template with the schedules that it makes.
#[derive(Clone, Debug)]
pub struct ListedTemplate {
    /// Its number in the whole listing, from 1.
    pub number: usize,
    /// The number of its split schedule, from 0.
    pub split: usize,
    /// The template.
    pub template: Template,
    /// Its schedules, of which there are some.
    pub schedules: Vec<Listed>,
}

/// A split schedule of a listing.
#[derive(Clone, Debug)]
pub struct ListedSplit {
    /// The split schedule.
    pub split: SplitSchedule,
    /// What the trimming passes leave of its mappings.
    pub trimmed: Trimmed,
    /// Templates with a legal setting; not all of them are generated.
    pub legal: usize,
}

/// All templates of a problem that are generated.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The split schedules; templates name them by their places.
    pub splits: Vec<ListedSplit>,
    /// The templates, split schedule by split schedule.
    pub templates: Vec<ListedTemplate>,
    /// Schedules that are not generated, by the reason.
    pub refused: Vec<(String, usize)>,
    /// The paths among which that of the products was chosen.
    pub breadth: Option<Breadth>,
    /// Whether some were left out, since there are more than may be priced.
    pub cut: bool,
}

impl Listing {
    /// Lists the schedules of `problem`, its operands stored as there, computed in the products of the default scheduler's
    /// choice.  Of more than `limits` allow, every so manieth is priced.
    pub fn of(problem: &Problem, machine: &Machine, limits: &SearchLimits) -> Listing {
        let (path, breadth) = path(problem, machine);
        let base = Base { problem, path: &path, machine };
        let sizes = Sizes { machine, value_bytes: problem.value_bytes as u64 };
        let space = base.space();
        if space.indices().len() - space.pinned.len() > MOST_LOOPS {
            return Listing { cut: true, breadth: Some(breadth), ..Listing::default() };
        }
        let parameters = Parameters::cpu().with_sizes(&space, &problem.extents, &sizes);
        let config = PartitionConfig { most_loops: MOST_LOOPS, ..PartitionConfig::default() };
        let all = templates(&space, &config, Target::Cpu, &parameters);
        let count: usize =
            all.iter().flat_map(|own| &own.templates).map(|(_, settings)| settings.len()).sum();
        let most = (limits.max_work / SearchLimits::NEST_CHOICES).max(1) as usize;
        let step = count.div_ceil(most).max(1);
        let left_out = split_schedules(&space, &PartitionConfig::default()).len() > all.len();
        let mut listing =
            Listing { cut: left_out || step > 1, breadth: Some(breadth), ..Listing::default() };
        let mut settings_seen = 0;
        for (split, own) in all.into_iter().enumerate() {
            let legal = own.templates.len();
            listing.splits.push(ListedSplit { split: own.split, trimmed: own.trimmed, legal });
            for (template, settings) in own.templates {
                let mut schedules = Vec::new();
                for setting in settings {
                    settings_seen += 1;
                    if (settings_seen - 1) % step == 0 {
                        schedules.extend(listing.price(&base, &template, setting));
                    }
                }
                if !schedules.is_empty() {
                    let number = listing.templates.len() + 1;
                    listing.templates.push(ListedTemplate { number, split, template, schedules });
                }
            }
        }
        listing
    }

    /// Lists the schedules of `problem` on the one of `storages` that the default scheduler chooses.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::search_storages`].
    pub fn on_best_storage(
        problem: &Problem,
        storages: &[Storage],
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<Listing, CoreError> {
        let whole = SearchLimits { tiles: false, ..SearchLimits::default() };
        let found = default_scheduler().search_storages(problem, storages, machine, &whole)?;
        let best = found.candidates.first().ok_or_else(|| no_schedule(problem))?;
        Ok(Listing::of(&best.problem(problem), machine, limits))
    }

    /// Generates and prices one schedule, or notes why there is none.
    fn price(&mut self, base: &Base<'_>, template: &Template, setting: Setting) -> Option<Listed> {
        match base.generate(template, &setting) {
            Ok(generated) => {
                let Generated { problem, schedule } = &generated;
                let cost = estimate(problem, schedule, base.machine);
                let threads = base.machine.threads;
                let seconds = on_threads(problem, schedule, &cost, base.machine, threads).seconds;
                Some(Listed { setting, generated, cost, seconds })
            }
            Err(why) => {
                match self.refused.iter_mut().find(|(reason, _)| *reason == why) {
                    Some((_, count)) => *count += 1,
                    None => self.refused.push((why, 1)),
                }
                None
            }
        }
    }

    /// Returns how many schedules there are.
    pub fn len(&self) -> usize {
        self.templates.iter().map(|template| template.schedules.len()).sum()
    }

    /// Tells whether there is no schedule.
    pub fn is_empty(&self) -> bool {
        self.templates.is_empty()
    }

    /// Keeps the templates in these places.
    pub fn take(&mut self, places: &[usize]) {
        let all = std::mem::take(&mut self.templates).into_iter().enumerate();
        self.templates = all.filter(|(at, _)| places.contains(at)).map(|(_, one)| one).collect();
    }

    /// Iterates over the templates of each split schedule that has some.
    pub fn by_split(&self) -> impl Iterator<Item = &[ListedTemplate]> {
        self.templates.chunk_by(|one, next| one.split == next.split)
    }

    /// Returns the place of the template of a schedule that a search by measuring names.
    pub fn place(&self, point: Point) -> usize {
        self.by_split().take(point.split).map(<[_]>::len).sum::<usize>() + point.template
    }

    /// Returns the schedules as a search by measuring knows them, with the place of each in the listing.
    pub fn arms<'a>(&'a self) -> (Arms, impl Fn(Point) -> &'a Listed + use<'a>) {
        let splits: Vec<&[ListedTemplate]> = self.by_split().collect();
        let arm = |listed: &Listed| Arm {
            values: listed.setting.factors.clone(),
            predicted: Some(listed.seconds),
        };
        let of = |own: &&[ListedTemplate]| {
            own.iter().map(|template| template.schedules.iter().map(arm).collect()).collect()
        };
        let arms = Arms { splits: splits.iter().map(of).collect() };
        (arms, move |at: Point| &splits[at.split][at.template].schedules[at.setting])
    }

    /// Returns the templates as a table; `measured` are the seconds of a template's best schedule, by place.
    pub fn table(&self, measured: impl Fn(usize) -> Option<f64>) -> TemplateTable {
        let row = |(at, template): (usize, &ListedTemplate)| Row {
            number: template.number,
            split: template.split + 1,
            template: template.template.to_string(),
            settings: template.schedules.len(),
            predicted: template.schedules.iter().map(|one| one.seconds).reduce(f64::min),
            measured: measured(at),
        };
        TemplateTable { rows: self.templates.iter().enumerate().map(row).collect() }
    }

    /// Iterates over all schedules.
    pub fn schedules(&self) -> impl Iterator<Item = &Listed> {
        self.templates.iter().flat_map(|template| &template.schedules)
    }
}

/// The products of the default scheduler's choice, or a single one, and the paths among which they were chosen.
fn path(problem: &Problem, machine: &Machine) -> (Path, Breadth) {
    let found = default_scheduler().search(problem, machine).ok();
    let chosen = found.and_then(|found| {
        let best = found.candidates.into_iter().next()?;
        Some((best.schedule.path, found.report.breadth))
    });
    chosen.unwrap_or_else(|| (unfactorised(&problem.expr), Breadth::All))
}

/// The scheduler `partition`: the templates of Wang's thesis, ranked by predicted seconds.
pub(in crate::autoschedule) struct Partition;

impl Partition {
    fn report(listing: &Listing, start: Instant) -> SearchReport {
        SearchReport {
            scheduler: Partition.name(),
            breadth: listing.breadth.unwrap_or(Breadth::AnyDepth),
            paths: 1,
            pruned: 0,
            explored: listing.len(),
            seconds: start.elapsed().as_secs_f64(),
            stop: if listing.cut { StopReason::Work } else { StopReason::Complete },
            solved: None,
        }
    }
}

impl Scheduler for Partition {
    fn name(&self) -> &'static str {
        "partition"
    }

    /// Lists the templates that leave indices whole and operands as they are stored.
    fn search_within(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<SearchOutcome, CoreError> {
        let start = Instant::now();
        let listing = Listing::of(problem, machine, limits);
        let whole =
            listing.schedules().filter(|one| one.generated.schedule.verify(problem).is_ok());
        let candidate =
            |one: &Listed| Candidate { schedule: one.generated.schedule.clone(), cost: one.cost };
        let mut candidates: Vec<Candidate> = whole.map(candidate).collect();
        if candidates.is_empty() {
            return default_scheduler().search_within(problem, machine, limits);
        }
        candidates.sort_by(|a, b| a.cost.seconds.total_cmp(&b.cost.seconds));
        Ok(SearchOutcome { candidates, report: Partition::report(&listing, start) })
    }

    /// Lists the templates on the storage of the default scheduler's choice.
    fn search_storages(
        &self,
        problem: &Problem,
        storages: &[Storage],
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<OrdersFound, CoreError> {
        let start = Instant::now();
        let listing = Listing::on_best_storage(problem, storages, machine, limits)?;
        if listing.is_empty() {
            return default_scheduler().search_storages(problem, storages, machine, limits);
        }
        let mut candidates: Vec<_> = listing
            .schedules()
            .map(|one| {
                let Generated { problem, schedule } = &one.generated;
                let candidate = Candidate { schedule: schedule.clone(), cost: one.cost };
                ordered(problem, &stored(problem), candidate, machine)
            })
            .collect();
        candidates.sort_by(|a, b| a.total().total_cmp(&b.total()));
        Ok(OrdersFound { candidates, report: Partition::report(&listing, start) })
    }
}

/// How the operands of a problem are stored.
fn stored(problem: &Problem) -> Storage {
    let operands = problem.sparse.iter().map(|x| (x.input, x.format.clone()));
    Storage { operands: operands.collect() }
}
