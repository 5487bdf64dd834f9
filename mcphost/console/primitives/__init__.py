"""Pages for tools, prompts, resources and templates: lists, details, forms."""
