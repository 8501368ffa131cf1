package store

import (
	"context"

	"github.com/dmarcd/dmarcd/internal/store/db"
)

// SaveCertificateFile saves a file of certificates by ACME, or replaces it. content is encrypted.
func (s *Store) SaveCertificateFile(ctx context.Context, name string, content []byte) error {
	_, err := s.exec(ctx, `INSERT INTO certificate_files (name, content) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET content = excluded.content`, name, content)
	return err
}

// CertificateFile returns the content of such a file, or dmarcd.ErrNotFound.
func (s *Store) CertificateFile(ctx context.Context, name string) (content []byte, err error) {
	err = s.own().QueryRow(ctx, `SELECT content FROM certificate_files WHERE name = $1`, []any{name}, &content)
	return content, err
}

// CertificateFiles returns the names of all such files, which are a few, in order.
func (s *Store) CertificateFiles(ctx context.Context) ([]string, error) {
	return db.Collect(ctx, s.own(), `SELECT name FROM certificate_files ORDER BY name`, nil, db.Value[string])
}

// DeleteCertificateFile deletes such a file, if there is one.
func (s *Store) DeleteCertificateFile(ctx context.Context, name string) error {
	_, err := s.exec(ctx, `DELETE FROM certificate_files WHERE name = $1`, name)
	return err
}
