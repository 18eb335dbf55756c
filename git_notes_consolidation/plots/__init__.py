"""Frames in, figures out."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "figures": "TIERS COLOURS DASHES SYMBOLS TIER_COLOURS TIER_HATCHES add_levels figure lines decay_curves "
        "confusion_heatmap marked_text umap_layout "
        "cluster_map tier_bars tier_slider tier_flow score_parts tier_days cluster_heaps",
})
