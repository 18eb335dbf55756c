"""Vectors, neighbours and clusters."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "embedder": "Embedder EmbeddingError round_vectors",
    "lexical": "LexicalEmbedder similarity FUNCTION_WORDS",
    "calibration": "Thresholds calibrate thresholds_from CALIBRATION_PAIRS cosines minilm_cosines",
    "minilm": "MINILM MiniLMEmbedder WordPieces minilm_files packaged_minilm pull_minilm word_pieces",
    "plugin_vectors": "PluginVectors plugin_rows without_vector",
    "endpoint": "EndpointEmbedder get_embedder",
    "components": "reached first_seen",
    "linkage": "dendrogram flat_clusters",
    "updates": "KnownClusters near_clusters",
    "clusters": "Clusters MemoryCluster cluster_memories clusters_from dominant_namespace split",
    "neighbours": "Candidates SearchVectors fused_older shared_older",
    "static": "StaticEmbedder",
})
