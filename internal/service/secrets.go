package service

import "context"

// Rotation is the result of RotateSecrets.
type Rotation struct {
	// Sealed secrets were encrypted with the first key. Lost ones cannot be decrypted with any key.
	Sealed, Lost int
}

// RotateSecrets encrypts all secrets with the first key that are encrypted with another one.
func (s *System) RotateSecrets(ctx context.Context) (Rotation, error) {
	return operate(s, func() (result Rotation, err error) {
		keys := s.service.options.Secrets
		if _, err := keys.Current(nil); err != nil {
			return result, err
		}
		replace := func(sealed []byte, context string) []byte {
			if current, err := keys.Current(sealed); err != nil || current {
				return nil
			}
			plain, err := keys.Open(sealed, context)
			if err == nil {
				sealed, err = keys.Seal(plain, context)
			}
			if err != nil {
				result.Lost++
				return nil
			}
			return sealed
		}
		result.Sealed, err = s.store.ReplaceSecrets(ctx, replace, s.actor.to("secret.rotate", "", ""))
		return result, err
	})
}
