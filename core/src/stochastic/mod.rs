//! One pass of stochastic gradient steps over the entries of a tensor, in parallel without races.
//!
//! A step at entry `(i, j, k)` reads and writes the rows `A(i,:)`, `B(j,:)`, `C(k,:)` of a CP model:
//!
//! ```text
//! m = sum_r A(i,r) B(j,r) C(k,r) + offset,   d = dloss/dm (x, m)
//! A(i,r) -= step * (d * B(j,r) C(k,r) + decay_i A(i,r)),   and B, C alike from the old rows
//! ```
//!
//! Each step needs what the one before it wrote, so this is no contraction and cannot be scheduled
//! as one.  [`Strata`] cuts every mode into as many parts as there are threads; blocks of entries
//! that share no part in any mode form a stratum and run at the same time, the strata one after
//! another (Gemulla, Nijkamp, Haas, Sismanis, "Large-scale matrix factorization with distributed
//! stochastic gradient descent", KDD 2011, for matrices; here for any order).  The result depends
//! on the seed and the number of threads only.  Steps on squared distances are compiled for order and
//! rank ([`Steps`](crate::runtime::Steps)).

mod step;
mod strata;

pub use step::{PassRule, Slope};
pub use strata::Strata;
