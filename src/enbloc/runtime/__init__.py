"""The loops that connect a cluster with the engine, the controllers and admission."""
