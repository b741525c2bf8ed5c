"""The console's pages that know the catalog: overview, models and playground."""
