//! What every app of the suite shares.
