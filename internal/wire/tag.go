package wire

// Tags are the tags of a domain.
type Tags struct {
	Tags []string `json:"tags"`
}

// NewTags returns the shape of tags.
func NewTags(tags []string) Tags { return Tags{append([]string{}, tags...)} }

// Tag is a tag, and how many domains have it.
type Tag struct {
	Tag     string `json:"tag"`
	Domains int    `json:"domains"`
}
