package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// growthRecords are the records of the last 30 days, and all that the first step has.
	growthRecords = 1_000_000
	growthDomains = 1000
	growthDays    = 30
	perDay        = growthRecords / growthDays
)

// measureGrowth fills a database tenfold step by step with the mail of earlier years, and
// measures reads of the last 30 days, whose mail stays the same.
func measureGrowth(ctx context.Context, s settings, d *daemon) []figure {
	addDomains(ctx, d, growthDomains)
	today := dmarcd.DayOf(time.Now())
	period := fmt.Sprintf("from=%s&to=%s", today-growthDays, today-1)
	reads := []string{
		"/reports/" + domainName(5), "/domains?limit=100", "/insights/reports?limit=100",
		"/insights/sources?" + period + "&domain=" + domainName(5), "/insights/sources?" + period,
	}
	values := make([]string, len(reads))
	steps, number := "", 0
	for total, before := growthRecords, 0; total <= s.records; total, before = total*10, total {
		began := time.Now()
		// Every day has as much mail as the others, and the mail of a day arrives together, as
		// it does in life: a job that reads a day must not read the whole table.
		last, days, samples := before/perDay, (total-before)/perDay, (total-before)/sampleRecords
		receiveSamples(ctx, d, samples, func(i int) sample {
			number++
			return sample{
				number: number, domain: domainName(number % growthDomains), records: sampleRecords,
				day: int64(today) - int64(last+days) + int64(i*days/samples),
			}
		})
		fmt.Fprintf(os.Stderr, "%d records after %.0f s\n", total, time.Since(began).Seconds())
		buildRollups(ctx, d)
		steps += fmt.Sprintf(", %.0e", float64(total))
		for i, path := range reads {
			_, p50, _, _ := timeAnswers(ctx, "http://"+d.address+"/api"+path, &http.Cookie{}, d.token)
			median := fmt.Sprintf("%.1f ms", p50)
			fmt.Fprintf(os.Stderr, "GET %s: %s\n", path, median)
			values[i] += ", " + median
		}
	}
	var figures []figure
	for i, path := range reads {
		figures = append(figures, figure{"`GET " + path + "` with " + steps[2:] + " records: p50", values[i][2:], "flat"})
	}
	return figures
}
