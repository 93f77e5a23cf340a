"""Many runs that answer one question, and what their answer is."""
