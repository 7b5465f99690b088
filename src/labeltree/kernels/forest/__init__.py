"""Trees over rows: how their nodes are split and grown, and what their leaves say."""
