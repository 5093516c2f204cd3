//! How a list of entries is written as text: the options that commands share.

use std::path::Path;

use clap::{Args, ValueEnum};
use decompose_formats::io::{Base, Dialect, Format, Overwrite, WriteOptions};

use crate::input::parse_base;

/// The form of a list of entries in a text file.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ListArgs {
    /// The header of a .tns file.  Without one, the extents stand in a comment, which this program
    /// reads and others skip.
    #[arg(long, value_name = "DIALECT", default_value = "plain", help_heading = "Output")]
    header: Header,
    /// From where the indices of a text file that is written count: 0 or 1.  [default: as in the
    /// file that is read, else 1]
    #[arg(long, value_name = "0|1", value_parser = parse_base, help_heading = "Output")]
    out_base: Option<Base>,
}

/// The header of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Header {
    /// None but a comment with the extents.
    Plain,
    /// `sptensor` of the Tensor Toolbox.
    Toolbox,
    /// Order and extents, as ParTI.
    Parti,
    /// Order, entries and extents behind a comment.
    ExtendedFrostt,
}

impl Header {
    fn dialect(self) -> Dialect {
        match self {
            Header::Plain => Dialect::Plain,
            Header::Toolbox => Dialect::Toolbox,
            Header::Parti => Dialect::Parti,
            Header::ExtendedFrostt => Dialect::ExtendedFrostt,
        }
    }
}

impl ListArgs {
    /// Returns the options of a list in `out` whose indices counted from `read` where it comes from.
    ///
    /// What is not asked for gives way: a header that cannot tell a base has indices from 1.
    pub(crate) fn options(
        &self,
        out: &Path,
        read: Option<Base>,
        overwrite: Overwrite,
    ) -> WriteOptions {
        let dialect = self.header.dialect();
        let is_market = matches!(Format::of_path(out), Ok((Format::Mtx, _)));
        let tells_base = dialect.tells_base() && !is_market;
        let kept = read.filter(|_| tells_base).unwrap_or(Base::One);
        WriteOptions { overwrite, dialect, base: self.out_base.unwrap_or(kept) }
    }

    /// Returns from where indices count in a table, which has no header for it.
    pub(crate) fn table_base(&self, read: Option<Base>) -> Base {
        self.out_base.or(read).unwrap_or(Base::One)
    }
}
