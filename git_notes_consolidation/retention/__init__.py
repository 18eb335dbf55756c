"""How memories fade."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "score": "age_days recency power_law trace_strength retrievability activation importance factors_of "
        "compute_retention_score retention_scores score_decomposition SOONEST tier_by_score tier_of "
        "days_in_tiers floor_of retention_frame tier_counts counts_by_half_life weights",
    "forecast": "Touches touches_of BadTable read_touches Snapshots snapshots Model MODELS Fitted fit log_loss "
        "design_score reliability measures by_time left_out by_repository",
})
