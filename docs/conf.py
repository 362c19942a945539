"""The documentation site: sphinx-build -W docs build/site"""

import logging
import os
import warnings

os.environ["MPLBACKEND"] = "Agg"
warnings.filterwarnings("ignore", category=DeprecationWarning)  # from libraries at import
for name in ("numexpr", "pint"):
    logging.getLogger(name).setLevel(logging.ERROR)

import wavefilt  # noqa: E402

project = "wavefilt"
author = "The wavefilt developers"
copyright = author
version = release = wavefilt.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
exclude_patterns = ["generated/gallery/*.ipynb", "generated/gallery/*.py", "generated/gallery/*.json"]
suppress_warnings = ["config.cache"]  # the gallery's functions cannot be pickled

myst_heading_anchors = 3
default_role = "py:obj"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"


def escape_magnitudes(app, what, name, obj, options, lines):
    """Escape |d| in docstrings, which reStructuredText takes for a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", escape_magnitudes)


sphinx_gallery_conf = {
    "examples_dirs": "../samples/gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "run_stale_examples": True,
    "abort_on_example_error": True,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
}

copybutton_prompt_text = "$ "  # nor is the output of commands copied
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"

html_theme = "furo"
html_title = "wavefilt"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_show_copyright = False
