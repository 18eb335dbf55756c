"""What most notebooks import, a figure and a run: the first of each takes seconds. A process that is forked from here begins with them."""
from pathlib import Path
from tempfile import TemporaryDirectory

import fastcore.test  # noqa: F401
import ipykernel.jsonutil  # noqa: F401
import ipykernel.zmqshell  # noqa: F401
import ipywidgets  # noqa: F401
import pandas  # noqa: F401
import plotly.graph_objects
import plotly.io

import git_notes_consolidation.recall.service  # noqa: F401
from git_notes_consolidation.consolidation.service import ConsolidationService, run
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, sample_memories
from git_notes_consolidation.research.lab import scratch
from git_notes_consolidation.similarity.lexical import LexicalEmbedder

first = plotly.graph_objects.Figure({"data": [{"type": kind, "y": [1]} for kind in ("bar", "scatter")]})
plotly.io.renderers["plotly_mimetype"].to_mimebundle(first.to_dict())
with TemporaryDirectory() as d:
    repo = scratch(Path(d) / "sample", memories=sample_memories())
    run(ConsolidationService(repo, load_settings({"max_change": 0.25}, env={}), LexicalEmbedder(), clock=lambda: SAMPLE_NOW))
