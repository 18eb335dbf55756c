"""Frames in, figures out."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "style": "TIERS COLOURS DASHES SYMBOLS TIER_COLOURS TIER_HATCHES add_levels figure",
    "curves": "lines decay_curves clusters_by_threshold histogram_with_threshold "
        "confusion_heatmap",
    "maps": "umap_layout plane_layout cluster_map",
    "tiers": "tier_bars tier_slider tier_flow score_parts tier_days floors cluster_heaps",
})
