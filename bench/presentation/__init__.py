"""What people see of a recording."""
