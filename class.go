package dmarcd

// Class is what a sender is to a domain.
type Class string

// The classes.
const (
	// ClassYours sends for the owner of the domain.
	ClassYours Class = "yours"
	// ClassService is a known service, which may send for the owner.
	ClassService Class = "service"
	// ClassForwarder passes mail of the domain on: a forwarder or a mailing list.
	ClassForwarder Class = "forwarder"
	// ClassUnknown is a sender that the reports do not tell enough about.
	ClassUnknown Class = "unknown"
	// ClassSpoofing uses the domain without any sign that the owner knows.
	ClassSpoofing Class = "spoofing"
)

// Legitimate tells whether mail of the class should be delivered.
func (c Class) Legitimate() bool {
	return c == ClassYours || c == ClassService || c == ClassForwarder
}

// ParseSenderClass returns the class that a team gives a sender: yours, unknown or
// spoofing. Anything else is an *InvalidError.
func ParseSenderClass(word string) (Class, error) {
	switch c := Class(word); c {
	case ClassYours, ClassUnknown, ClassSpoofing:
		return c, nil
	}
	return "", &InvalidError{Field: "class", Message: "The class must be yours, unknown or spoofing."}
}
