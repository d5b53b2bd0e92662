"""spectrod: a streaming audio spectrum analyzer daemon."""
