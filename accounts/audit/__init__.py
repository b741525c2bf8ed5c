"""The audit trail: who changed what, and the models that it watches."""
