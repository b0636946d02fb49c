"""Views: what an archive holds as JSON, made by functions that know nothing of HTTP."""
