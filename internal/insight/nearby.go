package insight

// nearby is a map from numbers of which many are neighbours, as addresses of one network
// are: 16 neighbours are found together, and the last ones again without a lookup. A scan
// of a million records looks for an address nearly as often.
type nearby[V any] struct {
	groups map[uint64]*[neighbours]known[V]
	number uint64 // of the group last found
	group  *[neighbours]known[V]
}

type known[V any] struct {
	value V
	is    bool
}

const neighbours = 16

// of returns the place of a number, or nil if none of its neighbours is in the map.
func (n *nearby[V]) of(number uint64) *known[V] {
	if n.group == nil || n.number != number/neighbours {
		group := n.groups[number/neighbours]
		if group == nil {
			return nil
		}
		n.number, n.group = number/neighbours, group
	}
	return &n.group[number%neighbours]
}

func (n *nearby[V]) get(number uint64) (value V, is bool) {
	if of := n.of(number); of != nil {
		return of.value, of.is
	}
	return value, false
}

func (n *nearby[V]) set(number uint64, value V) {
	of := n.of(number)
	if of == nil {
		if n.groups == nil {
			n.groups = make(map[uint64]*[neighbours]known[V])
		}
		n.groups[number/neighbours] = new([neighbours]known[V])
		of = n.of(number)
	}
	*of = known[V]{value, true}
}

// size is the count of groups.
func (n *nearby[V]) size() int { return len(n.groups) }

func (n *nearby[V]) clear() {
	clear(n.groups)
	n.group = nil
}
