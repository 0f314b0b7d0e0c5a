"""Pages, pictures, the demo and the peers: what shows a result. Serving imports none of it."""
