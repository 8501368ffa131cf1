package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// factorSetting is the row of the installation that exists if all users need a second factor.
const factorSetting = "second_factor"

// RequireSecondFactor has all users need a second factor, or not.
func (s *Store) RequireSecondFactor(ctx context.Context, required bool, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		if required {
			_, err := t.Exec(ctx, `INSERT INTO installation (name, value) VALUES ('`+factorSetting+`', 'required') ON CONFLICT (name) DO NOTHING`)
			return err
		}
		_, err := t.Exec(ctx, `DELETE FROM installation WHERE name = '`+factorSetting+`'`)
		return err
	})
}

// SecondFactorRequired reports whether all users need a second factor.
func (s *Store) SecondFactorRequired(ctx context.Context) (required bool, err error) {
	err = s.own().QueryRow(ctx, `SELECT COUNT(*) > 0 FROM installation WHERE name = '`+factorSetting+`'`, nil, &required)
	return required, err
}

// RequireSecondFactor has all members need a second factor, or not.
func (t *Team) RequireSecondFactor(ctx context.Context, required bool, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE teams SET second_factor = $1 WHERE id = $2`, required, t.id)
}

// Factors returns what a user signs in with, or ErrNotFound.
func (s *Store) Factors(ctx context.Context, user dmarcd.UserID) (f dmarcd.Factors, err error) {
	f.User, err = scanUser(db.Row(ctx, s.own(), `SELECT `+userColumns+`, users.password_hash, users.totp,
			(SELECT COUNT(*) FROM recovery_codes WHERE recovery_codes.user_id = users.id)
		FROM users WHERE id = $1`, user).Before(&f.PasswordHash, &f.TOTP, &f.RecoveryCodes))
	if err == nil {
		f.Passkeys, err = db.Collect(ctx, s.own(), `SELECT id, credential_id, name, record, created_at, used_at
			FROM passkeys WHERE user_id = $1 ORDER BY name, id`, []any{user}, scanPasskey)
	}
	return f, err
}

func scanPasskey(scan db.Scanner) (p dmarcd.Passkey, err error) {
	var createdAt, usedAt int64
	err = scan(&p.ID, &p.Credential, &p.Name, &p.Record, &createdAt, &usedAt)
	p.CreatedAt, p.UsedAt = fromUnix(createdAt), fromUnix(usedAt)
	return p, err
}

// AddPasskey adds a passkey that answered the challenge made at a time, sets the recovery codes unless the
// user has a second factor, and ends all sessions except the one with the hash except. A passkey that is
// stored and a used challenge are ErrConflict, and more than MaxPasskeys an InvalidError. first reports whether the
// codes were set.
func (s *Store) AddPasskey(ctx context.Context, user dmarcd.UserID, p dmarcd.Passkey, challenge time.Time, codes [][32]byte, except [32]byte, audit ...dmarcd.AuditEntry) (first bool, err error) {
	err = s.audited(ctx, audit, "", func(t tx) error {
		if err := t.useChallenge(ctx, dmarcd.ErrConflict, user, challenge); err != nil {
			return err
		}
		var many bool
		err := t.QueryRow(ctx, `SELECT (SELECT COUNT(*) FROM passkeys WHERE user_id = $1) >= $2, NOT second_factor FROM users WHERE id = $1`,
			[]any{user, dmarcd.MaxPasskeys}, &many, &first)
		switch {
		case err != nil:
			return err
		case many:
			return &dmarcd.InvalidError{Message: "You have 20 passkeys, which is the limit. Remove one first."}
		case first:
			err = t.setRecoveryCodes(ctx, user, codes)
		}
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `INSERT INTO passkeys (id, user_id, credential_id, name, record, created_at, used_at)
			VALUES ($1, $2, $3, $4, $5, $6, 0)`, db.NewID(), user, p.Credential, p.Name, p.Record, unix(s.now())); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `UPDATE users SET second_factor = TRUE WHERE id = $1`, user); err != nil {
			return err
		}
		return t.endSessions(ctx, user, except)
	})
	return first, err
}

// UsePasskey notes that a passkey answered the challenge made at a time, with its new record. A used
// challenge and a removed passkey are ErrUnauthorized.
func (s *Store) UsePasskey(ctx context.Context, user dmarcd.UserID, p dmarcd.Passkey, challenge time.Time) error {
	return s.audited(ctx, nil, "", func(t tx) error {
		if err := t.useChallenge(ctx, dmarcd.ErrUnauthorized, user, challenge); err != nil {
			return err
		}
		return t.ExecOr(ctx, dmarcd.ErrUnauthorized, `UPDATE passkeys SET record = $1, used_at = $2 WHERE id = $3 AND user_id = $4`,
			p.Record, unix(s.now()), p.ID, user)
	})
}

// useChallenge uses the challenge made at a time. It is the error used if this one or a later one was used.
func (t tx) useChallenge(ctx context.Context, used error, user dmarcd.UserID, challenge time.Time) error {
	return t.ExecOr(ctx, used, `UPDATE users SET challenge = $1 WHERE id = $2 AND challenge < $1`, challenge.UnixNano(), user)
}

// RemovePasskey removes a passkey, and with the last factor the recovery codes. One of another user is
// ErrNotFound.
func (s *Store) RemovePasskey(ctx context.Context, user dmarcd.UserID, id dmarcd.PasskeyID, except [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		if err := t.ExecOr(ctx, dmarcd.ErrNotFound, `DELETE FROM passkeys WHERE id = $1 AND user_id = $2`, id, user); err != nil {
			return err
		}
		return t.removedFactor(ctx, user, except)
	})
}

// SetTOTP sets the sealed secret of the user's authenticator app, of which the code of a period was
// used, replaces the recovery codes, and ends all sessions except the one with the hash except: they
// began without it.
func (s *Store) SetTOTP(ctx context.Context, user dmarcd.UserID, sealed []byte, period int64, codes [][32]byte, except [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		if err := t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET totp = $1, totp_used = $2, second_factor = TRUE WHERE id = $3`, sealed, period, user); err != nil {
			return err
		}
		if err := t.setRecoveryCodes(ctx, user, codes); err != nil {
			return err
		}
		return t.endSessions(ctx, user, except)
	})
}

// RemoveTOTP removes the authenticator app, and with the last factor the recovery codes. Without an
// app it is ErrNotFound.
func (s *Store) RemoveTOTP(ctx context.Context, user dmarcd.UserID, except [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		if err := t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET totp = $1, totp_used = 0 WHERE id = $2 AND totp <> $1`, []byte{}, user); err != nil {
			return err
		}
		return t.removedFactor(ctx, user, except)
	})
}

// removedFactor updates the user after a factor was removed.
func (t tx) removedFactor(ctx context.Context, user dmarcd.UserID, except [32]byte) error {
	err := t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET second_factor = totp <> $1
		OR EXISTS (SELECT 1 FROM passkeys WHERE user_id = $2) WHERE id = $2`, []byte{}, user)
	if err == nil {
		_, err = t.Exec(ctx, `DELETE FROM recovery_codes WHERE user_id = $1 AND NOT (SELECT second_factor FROM users WHERE id = $1)`, user)
	}
	if err != nil {
		return err
	}
	return t.endSessions(ctx, user, except)
}

// ResetFactors removes all second factors of a user, and ends all sessions. A user without any is
// ErrNotFound.
func (s *Store) ResetFactors(ctx context.Context, user dmarcd.UserID, audit ...dmarcd.AuditEntry) error {
	return s.endSessions(ctx, audit, func(t tx) error { return t.removeFactors(ctx, user) })
}

// removeFactors is ResetFactors in a transaction.
func (t tx) removeFactors(ctx context.Context, user dmarcd.UserID) error {
	if err := t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET totp = $1, totp_used = 0 WHERE id = $2 AND second_factor`, []byte{}, user); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, `DELETE FROM passkeys WHERE user_id = $1`, user); err != nil {
		return err
	}
	return t.removedFactor(ctx, user, [32]byte{})
}

// SetRecoveryCodes replaces the recovery codes of a user with a second factor; others are ErrNotFound.
func (s *Store) SetRecoveryCodes(ctx context.Context, user dmarcd.UserID, codes [][32]byte, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		if err := t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET second_factor = TRUE WHERE id = $1 AND second_factor`, user); err != nil {
			return err
		}
		return t.setRecoveryCodes(ctx, user, codes)
	})
}

func (t tx) setRecoveryCodes(ctx context.Context, user dmarcd.UserID, codes [][32]byte) error {
	if _, err := t.Exec(ctx, `DELETE FROM recovery_codes WHERE user_id = $1`, user); err != nil {
		return err
	}
	for _, code := range codes {
		if _, err := t.Exec(ctx, `INSERT INTO recovery_codes (user_id, hash) VALUES ($1, $2)`, user, code[:]); err != nil {
			return err
		}
	}
	return nil
}

// UseTOTP uses the code of a period. It is ErrUnauthorized if this one or a later one was used.
func (s *Store) UseTOTP(ctx context.Context, user dmarcd.UserID, period int64) error {
	return s.audited(ctx, nil, "", func(t tx) error {
		return t.ExecOr(ctx, dmarcd.ErrUnauthorized, `UPDATE users SET totp_used = $1 WHERE id = $2 AND totp_used < $1`, period, user)
	})
}

// UseRecoveryCode uses a code up. An unknown one is ErrUnauthorized.
func (s *Store) UseRecoveryCode(ctx context.Context, user dmarcd.UserID, code [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		return t.ExecOr(ctx, dmarcd.ErrUnauthorized, `DELETE FROM recovery_codes WHERE user_id = $1 AND hash = $2`, user, code[:])
	})
}

// ProveSession notes that the user of a session has proved who they are.
func (s *Store) ProveSession(ctx context.Context, hash [32]byte, f dmarcd.SignIn, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		return t.ExecOr(ctx, dmarcd.ErrUnauthorized, `UPDATE sessions SET proved_at = $1 WHERE hash = $2 AND user_id = $3`, unix(f.ProvedAt), hash[:], f.ID)
	})
}
