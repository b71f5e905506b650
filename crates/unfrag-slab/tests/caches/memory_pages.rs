//! Pages of a memory: what each request may have of it, and misuse.
