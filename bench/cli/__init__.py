"""The command line: what people type, what they are told, and how it ends."""
