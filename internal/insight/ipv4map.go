package insight

// ipv4Map is a map from numbers of which many are neighbours, as addresses of one network
// are: 16 neighbours are found together, and the last ones again without a lookup. A scan
// of a million records looks for an address nearly as often.
type ipv4Map[V any] struct {
	groups map[uint64]*[neighbours]entry[V]
	number uint64 // of the group last found
	group  *[neighbours]entry[V]
}

type entry[V any] struct {
	value V
	is    bool
}

const neighbours = 16

// of returns the place of a number, or nil if none of its neighbours is in the map.
func (n *ipv4Map[V]) of(number uint64) *entry[V] {
	if n.group == nil || n.number != number/neighbours {
		group := n.groups[number/neighbours]
		if group == nil {
			return nil
		}
		n.number, n.group = number/neighbours, group
	}
	return &n.group[number%neighbours]
}

func (n *ipv4Map[V]) get(number uint64) (value V, is bool) {
	if of := n.of(number); of != nil {
		return of.value, of.is
	}
	return value, false
}

func (n *ipv4Map[V]) set(number uint64, value V) {
	of := n.of(number)
	if of == nil {
		if n.groups == nil {
			n.groups = make(map[uint64]*[neighbours]entry[V])
		}
		n.groups[number/neighbours] = new([neighbours]entry[V])
		of = n.of(number)
	}
	*of = entry[V]{value, true}
}

// size is the count of groups.
func (n *ipv4Map[V]) size() int { return len(n.groups) }

func (n *ipv4Map[V]) clear() {
	clear(n.groups)
	n.group = nil
}
