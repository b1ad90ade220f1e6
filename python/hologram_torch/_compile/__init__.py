"""torch.compile(model, backend="hologram"): see backend.py. Importing this imports nothing of torch's compiler."""
