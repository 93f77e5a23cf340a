"""The study of the paper's five interfaces."""
