"""What users have, each kind in a file: parts that can be read, and what is known of them without reading."""
