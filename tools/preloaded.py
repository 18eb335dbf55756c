"""What most notebooks import, and a figure: plotly's first one takes seconds. A process that is forked from here begins with them."""
import fastcore.test  # noqa: F401
import ipykernel.jsonutil  # noqa: F401
import ipykernel.zmqshell  # noqa: F401
import ipywidgets  # noqa: F401
import pandas  # noqa: F401
import plotly.graph_objects
import plotly.io

import git_notes_consolidation.consolidation.service  # noqa: F401
import git_notes_consolidation.recall.service  # noqa: F401

first = plotly.graph_objects.Figure({"data": [{"type": kind, "y": [1]} for kind in ("bar", "scatter")]})
plotly.io.renderers["plotly_mimetype"].to_mimebundle(first.to_dict())
