# The daily commands. Everything that a change must pass is in .ci/run.

.PHONY: test quick lint doc golden bench clean-cache

# All tests.
test:
	cargo test --workspace

# Unit tests, and the kernels against their definition.
quick:
	cargo test --workspace --lib
	cargo test --workspace --test kernels --test schedules --test sweeps

# Formatting and lints.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

# The documentation, without broken links.
doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Writes the C of the golden kernels anew: look at the difference before you commit it.
golden:
	UPDATE_GOLDEN=1 cargo test --workspace --test golden

# Times of reading, kernels and iterations on a synthetic tensor.
bench:
	cargo run --release -- bench --like nips --scale 0.1 --rank 16 --rounds 5 --out target/bench --overwrite

# Removes compiled kernels.
clean-cache:
	cargo run --release -- cache clear
