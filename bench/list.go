package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// measureList reads the whole list of a large team.
func measureList(ctx context.Context, s settings, d *daemon) []figure {
	addDomains(ctx, d, s.domains)
	// The first request warms up what the process needs for any request.
	load(ctx, d.address, 1, time.Millisecond, http.StatusOK, func(int) []byte {
		return request(http.MethodGet, "/api/domains?limit=10", d.token, "")
	})
	before, _ := d.memory()
	var first, whole []float64
	for range s.rounds {
		firstByte, end := readList(ctx, d)
		first, whole = append(first, firstByte.Seconds()*1000), append(whole, end.Seconds()*1000)
	}
	_, peak := d.memory()
	return []figure{
		{fmt.Sprintf("`GET /domains` of %d domains: first byte", s.domains), fmt.Sprintf("%.1f ms", median(first)), "under 50 ms"},
		{"the same: last byte", fmt.Sprintf("%.0f ms", median(whole)), ""},
		{"the same: growth of resident memory", fmt.Sprintf("%.1f MiB", float64(peak-before)/(1<<20)), "under 64 MiB"},
	}
}

func readList(ctx context.Context, d *daemon) (firstByte, end time.Duration) {
	r := get(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+"/api/domains", nil))
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Header.Set("Accept-Encoding", "identity")
	began := time.Now()
	response, err := http.DefaultClient.Do(r)
	must(err)
	defer func() { _ = response.Body.Close() }() // read to its end
	get(io.ReadFull(response.Body, make([]byte, 1)))
	firstByte = time.Since(began)
	get(io.Copy(io.Discard, response.Body))
	return firstByte, time.Since(began)
}
