//! The dynamic program over sections, for whatever is asked of the nests: their number, their costs, the best ones.

use crate::autoschedule::sparseauto::sections::{Around, Inner, Space};
use crate::autoschedule::work::Work;
use crate::cost::symbolic::Monomial;
use crate::einsum::IndexSet;
use crate::small_map::SmallMap;

/// What is asked of nests.
pub(super) trait Question {
    /// The answer for a set of nests.
    type Answer: Clone;

    /// For no nest at all.
    fn none(&self) -> Self::Answer;

    /// Tells whether the answer is that for no nest at all.
    fn is_none(&self, answer: &Self::Answer) -> bool;

    /// Tells whether it matters how innermost loops run.
    fn asks_inner(&self) -> bool {
        false
    }

    /// For a term that runs `iterations` times inside so many loops.
    fn term(&mut self, iterations: Monomial, loops: usize, inner: Inner) -> Self::Answer;

    /// Tells whether a result may be stored over these indices.
    fn may_store(&self, stored: IndexSet) -> bool;

    /// For nests whose result is stored over `stored`.
    fn stored(&mut self, nests: &Self::Answer, stored: IndexSet) -> Self::Answer;

    /// For each nest of the ones beside each nest of the others.
    fn both(&mut self, a: &Self::Answer, b: &Self::Answer) -> Self::Answer;

    /// For the nests of the ones and of the others.
    fn either(&mut self, a: &mut Self::Answer, b: &Self::Answer);

    /// Keeps what later answers need.
    fn settle(&mut self, _: &mut Self::Answer) {}

    /// One of the nests, where no work is left for all.
    fn one(&self, answer: &Self::Answer) -> Self::Answer {
        answer.clone()
    }

    /// How many choices it takes to put each of the ones beside each of the others.
    fn work(&self, a: &Self::Answer, b: &Self::Answer) -> u64;
}

/// A section or a component inside loops.
pub(super) type Key = (usize, Around);

/// The answers for all sections.
pub(super) struct Solver<'s, 'a, Q: Question> {
    pub(super) space: &'s Space<'a>,
    pub(super) question: Q,
    pub(super) work: Work,
    pub(super) sections: SmallMap<Key, Q::Answer>,
    pub(super) components: SmallMap<Key, Q::Answer>,
}

impl<'s, 'a, Q: Question> Solver<'s, 'a, Q> {
    pub(super) fn new(space: &'s Space<'a>, question: Q, work: Work) -> Solver<'s, 'a, Q> {
        let (sections, components) = (SmallMap::default(), SmallMap::default());
        Solver { space, question, work, sections, components }
    }

    /// The answer for all nests; where the work ends first, for those that were looked at.
    pub(super) fn solve(&mut self) -> Q::Answer {
        self.section(self.space.all(), self.outside())
    }

    /// No loops, as the question sees them.
    pub(super) fn outside(&self) -> Around {
        let inner = if self.question.asks_inner() { Inner::Scalar } else { Inner::Any };
        Around { inner, ..Around::NOTHING }
    }

    /// How many sections and components were answered.
    pub(super) fn solved(&self) -> usize {
        self.sections.len() + self.components.len()
    }

    /// The answer for a section inside loops.
    pub(super) fn section(&mut self, sources: usize, around: Around) -> Q::Answer {
        let key = (sources, around);
        if let Some(known) = self.sections.get(&key) {
            return known.clone();
        }
        let space = self.space;
        let mut all = self.question.none();
        for number in 0..space.lists[sources].partitions.len() {
            // With no work left the first nest that is found will do.
            if !self.work.spend() && !self.question.is_none(&all) {
                break;
            }
            if let Some(found) = self.partition(sources, number, around) {
                self.question.either(&mut all, &found);
            }
        }
        self.question.settle(&mut all);
        self.sections.insert(key, all.clone());
        all
    }

    /// The answer for one way to cut a section; `None` if no nest is cut so.
    pub(super) fn partition(
        &mut self,
        sources: usize,
        number: usize,
        around: Around,
    ) -> Option<Q::Answer> {
        let space = self.space;
        let partition = &space.lists[sources].partitions[number];
        let fits = |result: IndexSet| {
            around.loops.is_subset(result) && self.question.may_store(result - around.loops)
        };
        if !partition.parts.iter().all(|part| fits(part.result)) {
            return None;
        }
        let mut found = self.component(partition.root, around);
        for part in &partition.parts {
            if self.question.is_none(&found) {
                return None;
            }
            let made = self.section(part.sources, around);
            let mut made = self.question.stored(&made, part.result - around.loops);
            if !self.work.spend_all(self.question.work(&found, &made)) {
                (found, made) = (self.question.one(&found), self.question.one(&made));
            }
            found = self.question.both(&found, &made);
        }
        (!self.question.is_none(&found)).then_some(found)
    }

    /// The answer for a component inside loops.
    pub(super) fn component(&mut self, sources: usize, around: Around) -> Q::Answer {
        let key = (sources, around);
        if let Some(known) = self.components.get(&key) {
            return known.clone();
        }
        let space = self.space;
        let indices = space.lists[sources].indices;
        let mut all = self.question.none();
        if indices == around.loops {
            let iterations = Monomial { extents: around.loops, walked: around.walked };
            all = self.question.term(iterations, indices.len(), around.inner);
        }
        for index in (indices - around.loops).iter() {
            if !self.work.spend() && !self.question.is_none(&all) {
                break;
            }
            if let Some(inside) = space.inside(sources, around, index) {
                let found = self.section(sources, inside);
                self.question.either(&mut all, &found);
            }
        }
        self.question.settle(&mut all);
        self.components.insert(key, all.clone());
        all
    }
}
