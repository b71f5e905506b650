//! Owners, who move what they have, or let go of it.
