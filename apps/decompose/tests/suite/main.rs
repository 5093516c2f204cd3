//! The program as its users meet it: run, then files, streams and exit codes are looked at.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod bench;
mod cache;
mod commands;
mod common;
mod complete;
mod constraints;
mod einsum;
mod einsum_refusals;
mod evaluate;
mod experiment;
mod figures;
mod files;
mod folders;
mod frontier;
mod full_disk;
mod interrupt;
mod labels;
mod memory;
mod networks;
mod numbers;
mod options;
mod ranks;
mod resume;
mod run;
mod schedule;
mod splits;
mod studies;
mod traces;
mod tt;
mod tucker;
mod tune;
mod unknown;
