"""Pictures of the console for README and docs/tour.md: `make screenshots` takes them again."""
