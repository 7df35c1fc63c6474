"""Keep a copy of `outputs/` in an object store, so that another machine can go on: `outputs=s3://BUCKET/PREFIX`."""
