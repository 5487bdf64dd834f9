"""Forms: fields and their hints, rows, uploaded files, previews."""
