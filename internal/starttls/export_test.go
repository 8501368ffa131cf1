package starttls

// Shared returns the number of results in memory.
func (r *Reader) Shared() int { return len(r.results) }
