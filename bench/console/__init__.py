"""What a verb is made of: its options, what it tells people and programs meanwhile, and how it ends."""
