package adversary_test

import (
	"fmt"
	"testing"
)

// TestSourcesAddUp reads the sources of very many addresses. However many there
// are, the answer is bounded and adds up.
func TestSourcesAddUp(t *testing.T) {
	const uploads, records = 2, 150_000
	onEach(t, func(t *testing.T, a *arena) {
		for i := range uploads {
			a.mallory.upload(distinct(t, "mallory.test", fmt.Sprint("planted ", i), i*records, records))
		}
		for _, by := range []string{"network", "address", "reporter"} {
			sum := int64(0)
			for _, source := range list[counts](a.mallory, "/insights/sources?limit=1000&by="+by) {
				sum += source.Total
			}
			if sum != uploads*records {
				t.Errorf("sources by %s: got %d messages in all want %d", by, sum, uploads*records)
			}
		}
		a.d.Stop()
	})
}
