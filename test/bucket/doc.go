// Package bucket stores old records in a bucket of versitygw, an S3-compatible server that
// verifies signatures. The server is a tool of the module tools/s3, which make test-bucket builds.
package bucket
