package store

import "github.com/dmarcd/dmarcd"

// Team is one team's view of the database. Whatever it returns or changes is
// that team's; the rows of others are ErrNotFound, as if they were not there.
// It is safe for concurrent use and costs nothing to make.
type Team struct {
	store *Store
	id    dmarcd.TeamID
}

// Team returns the view of the team with that id. It does not look whether the
// team exists: one that does not owns nothing.
func (s *Store) Team(id dmarcd.TeamID) *Team {
	return &Team{store: s, id: id}
}

// ID returns the id of the team.
func (t *Team) ID() dmarcd.TeamID { return t.id }
