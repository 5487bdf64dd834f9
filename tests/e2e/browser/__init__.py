"""The console in a real browser. A pytest process of its own: its event loop is the browser's."""
