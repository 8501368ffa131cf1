-- +goose Up

-- Only PostgreSQL partitions its records.
SELECT 1;
