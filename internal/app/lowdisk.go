package app

import "context"

// detectLowDisk warns operators before the intake stops for want of disk space: in the log
// when that changes, by a metric, and by an event of the team default.
func (a *App) detectLowDisk(ctx context.Context) (more bool, err error) {
	want := int64(a.config.Limit.FreeDisk)
	low := want > 0 && enoughDisk(a.config.Data, 2*want) != nil
	if a.lowDisk.Swap(low) != low {
		if low {
			a.log.WarnContext(ctx, "disk nearly full", "folder", a.config.Data, "minimum", want)
		} else {
			a.log.InfoContext(ctx, "disk no longer nearly full", "folder", a.config.Data)
		}
	}
	a.metrics.lowDisk.Set(map[bool]float64{true: 1}[low])
	if !low {
		return false, nil
	}
	return false, a.service.ReportLowDisk(ctx, want)
}
