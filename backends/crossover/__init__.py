"""From what size a backend is the faster one; imports none of them."""
