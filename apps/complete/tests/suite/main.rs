//! Tests of completion: gradients, descent, planted models, ridges that are chosen, reference
//! errors on real data.

mod common;
mod descent;
mod gradients;
mod losses;
mod options;
mod planted;
mod reference;
mod resume;
mod ridge;
mod units;
