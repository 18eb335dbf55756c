"""Vectors, neighbours and clusters."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "lexical": "Embedder EmbeddingError round_vectors LexicalEmbedder similarity FUNCTION_WORDS Thresholds "
        "calibrate thresholds_from CALIBRATION_PAIRS cosines minilm_cosines",
    "embedders": "MINILM MiniLMEmbedder WordPieces minilm_files packaged_minilm pull_minilm word_pieces "
        "StaticEmbedder PluginVectors plugin_rows without_vector EndpointEmbedder get_embedder",
    "neighbours": "reachable first_seen Candidates SearchVectors fused_older shared_older",
    "clusters": "dendrogram flat_clusters KnownClusters near_clusters Clusters MemoryCluster cluster_memories "
        "clusters_from dominant_namespace split",
})
