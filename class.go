package dmarcd

// Class is the relation of a sender to a domain.
type Class string

// The classes.
const (
	// ClassYours sends on behalf of the owner of the domain.
	ClassYours Class = "yours"
	// ClassService is a known service, which may send on behalf of the owner.
	ClassService Class = "service"
	// ClassForwarder forwards mail of the domain; it may be a mailing list.
	ClassForwarder Class = "forwarder"
	// ClassUnknown means that the reports do not say enough to classify the sender.
	ClassUnknown Class = "unknown"
	// ClassSpoofing uses the domain without any sign that the owner authorized it.
	ClassSpoofing Class = "spoofing"
)

// Legitimate reports whether mail of this class is sent on behalf of the owner.
func (c Class) Legitimate() bool { return c == ClassYours || c == ClassService }

// ParseSenderClass parses a class that a team can assign to a sender: yours, forwarder, unknown
// or spoofing. It returns an *InvalidError for anything else.
func ParseSenderClass(word string) (Class, error) {
	switch c := Class(word); c {
	case ClassYours, ClassForwarder, ClassUnknown, ClassSpoofing:
		return c, nil
	}
	return "", &InvalidError{Field: "class", Message: "The class must be yours, forwarder, unknown or spoofing."}
}
