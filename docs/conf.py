"""How the site is made of the pages: ``./invokew docs``.

The pages lie where they are on GitHub, too, and so do the files to which they link: the source is the whole
project, and a link that works on one works on the other.
"""

from __future__ import annotations

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME)]

project = "Concorde testbed"
html_title = project
extensions = ["myst_parser", "docs.parts.site"]
root_doc = "docs/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md"]
# What is not even looked into. What git ignores begins with a dot, or is one of these.
exclude_patterns = [".*", "build", "reports", "docs/examples", "docs/parts"]
suppress_warnings = ["misc.highlighting_failure"]  # a console shows what is in no language

# As GitHub makes them, of all headings: the links from page to page are the same there.
myst_heading_anchors = 6
myst_enable_extensions = ["deflist"]

smartquotes = False  # they would make dashes of options

html_theme = "furo"
html_static_path = ["style"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
# The site's first page, for who opens the directory.
html_additional_pages = {"index": "first.html"}
templates_path = ["style"]

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False
