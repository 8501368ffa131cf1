package insight

import "slices"

// top returns the first n of all, sorted. Of many it does not sort the rest.
func top[T any](all []T, n int, compare func(a, b T) int) []T {
	if len(all) <= 2*n {
		slices.SortFunc(all, compare)
		return all[:min(n, len(all))]
	}
	first := all[:n:n]
	slices.SortFunc(first, compare)
	for _, one := range all[n:] {
		if compare(one, first[n-1]) < 0 {
			at, _ := slices.BinarySearchFunc(first, one, compare)
			copy(first[at+1:], first[at:n-1])
			first[at] = one
		}
	}
	return first
}
