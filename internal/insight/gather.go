package insight

import (
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// gatherer adds up records.
type gatherer interface {
	// begin is called with each block, add with records of each of its shares.
	begin(*rollup.Block)
	add(share *rollup.Share, records []rollup.Record)
}

// gathering passes blocks to gatherers, one at a time.
type gathering struct {
	days      dmarcd.Days // of the shares that are passed on
	match     *grouping   // nil for all records
	gatherers []gatherer
	matching  []rollup.Record
}

func (g *gathering) gather(block *rollup.Block) {
	if g.match != nil {
		g.match.begin(block)
	}
	for _, to := range g.gatherers {
		to.begin(block)
	}
	for i := range block.Shares {
		share := &block.Shares[i]
		if !g.days.Has(share.Day) {
			continue
		}
		records := g.filter(share)
		if len(records) == 0 {
			continue
		}
		for _, to := range g.gatherers {
			to.add(share, records)
		}
	}
}

// filter returns the records of a share that match, which are valid until the next call.
func (g *gathering) filter(share *rollup.Share) []rollup.Record {
	if g.match == nil {
		return share.Records
	}
	g.matching = g.matching[:0]
	for i := range share.Records {
		if r := &share.Records[i]; g.match.matches(share, r) {
			g.matching = append(g.matching, *r)
		}
	}
	return g.matching
}

// errStopped ends a scan whose records cannot be gathered any more.
var errStopped = errors.New("the gathering of records stopped")

// gatherParts has the records of some days gathered that scan visits. Parts are read in the goroutine
// of scan and gathered in their order in another, so that an answer takes two processors
// and the memory of two blocks. A panic of a gatherer is raised here.
//
// Each block is a turn of its own, so that reads of many records do not keep all
// processors from short requests.
func gatherParts(days dmarcd.Days, match *grouping, gatherers []gatherer, turn func() (end func()), scan func(visit func(rollup.Part) error) error) error {
	var group recovered.Group
	filled, emptied, stopped := make(chan *rollup.Block), make(chan *rollup.Block, 2), make(chan struct{})
	emptied <- new(rollup.Block)
	emptied <- new(rollup.Block)
	group.Go(func() {
		defer close(stopped)
		g := gathering{days: days, match: match, gatherers: gatherers}
		for block := range filled {
			end := turn()
			g.gather(block)
			end()
			emptied <- block // there is room for both
		}
	})
	defer group.Wait()
	defer close(filled)
	return scan(func(part rollup.Part) error {
		select {
		case block := <-emptied:
			end := turn()
			err := block.Read(part)
			end()
			if err != nil {
				return err
			}
			select {
			case filled <- block:
				return nil
			case <-stopped:
			}
		case <-stopped:
		}
		return errStopped
	})
}
