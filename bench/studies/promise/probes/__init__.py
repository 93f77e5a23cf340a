"""What happens beside a promised flow, while what arrives of it is counted."""
