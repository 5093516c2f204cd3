# The daily commands. Everything that a change must pass is in .ci/run.

.PHONY: test quick lint doc golden notebooks fuzz bench clean-cache

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

# Runs the notebooks anew, from their sources, by the package, the command and jupytext on the PATH: look at the pictures
# before you commit them.
notebooks:
	for source in notebooks/*.py; do \
		jupytext --quiet --to ipynb --execute "$$source" && notebooks/tidy "$${source%.py}.ipynb" || exit 1; \
	done

# Feeds the readers with random bytes, each for a minute; formats/fuzz/README.md says what to do with a find.
FUZZ_SECONDS ?= 60
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_TARGET_DIR := $(CURDIR)/target/fuzz
fuzz: export CARGO_TARGET_DIR := $(FUZZ_TARGET_DIR)
fuzz: export RUSTFLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1
fuzz:
	cargo build --release --manifest-path formats/fuzz/Cargo.toml --target $(HOST)
	set -e; for name in text dtb table; do \
		mkdir -p $(FUZZ_TARGET_DIR)/corpus/$$name formats/fuzz/seeds/$$name; \
		$(FUZZ_TARGET_DIR)/$(HOST)/release/$$name -max_total_time=$(FUZZ_SECONDS) -max_len=4096 \
			-artifact_prefix=$(FUZZ_TARGET_DIR)/$$name- -verbosity=0 -print_final_stats=1 \
			$(FUZZ_TARGET_DIR)/corpus/$$name formats/fuzz/seeds/$$name; \
	done

# Times of reading, kernels and iterations on a synthetic tensor.
bench:
	cargo run --release -- bench --like nips --scale 0.1 --rank 16 --rounds 5 --out target/bench --overwrite

# Removes compiled kernels.
clean-cache:
	cargo run --release -- cache clear
