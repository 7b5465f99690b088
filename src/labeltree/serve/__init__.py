"""Models as a web service. Nothing imports this folder but the command line; it needs the extra `serve`."""
