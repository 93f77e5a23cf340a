"""What people see of a recording: report, tables, figures."""
