//! Tests of completion: gradients, descent, planted models, reference errors on real data.

mod common;
mod descent;
mod gradients;
mod options;
mod planted;
mod reference;
mod resume;
