"""The doors: command line, MCP server, fleet."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "fleet.workers": "Workers cluster local_processes",
    "fleet.sweep": "Task Outcome find_repositories sweep resume",
    "mcp.tools": "Workspace",
    "mcp.server": "Server serve",
    "cli.app": "Call app plain table main",
    "testing": "MockLLM mock_consolidation_llm",
})
