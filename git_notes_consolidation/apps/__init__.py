"""The doors: command line, MCP server, fleet."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "fleet": "Task Outcome find_repositories sweep",
    "mcp.tools": "Workspace",
    "mcp.server": "serve",
    "cli.program": "main",
    "testing": "MockLLM mock_consolidation_llm",
})
