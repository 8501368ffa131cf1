package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// measureList reads the whole list of a large team.
func measureList(ctx context.Context, s settings, d *daemon) ([]figure, error) {
	if err := addDomains(ctx, d, s.domains); err != nil {
		return nil, err
	}
	// The first request warms up what the process needs for any request.
	if err := exchangeOnce(ctx, d, "/api/domains?limit=10"); err != nil {
		return nil, err
	}
	before, _, err := d.memory()
	if err != nil {
		return nil, err
	}
	var first, whole []float64
	for range s.rounds {
		firstByte, end, err := readList(ctx, d)
		if err != nil {
			return nil, err
		}
		first, whole = append(first, firstByte.Seconds()*1000), append(whole, end.Seconds()*1000)
	}
	_, peak, err := d.memory()
	if err != nil {
		return nil, err
	}
	return []figure{
		{fmt.Sprintf("`GET /domains` of %d domains: first byte", s.domains), fmt.Sprintf("%.1f ms", median(first)), "under 50 ms"},
		{"the same: last byte", fmt.Sprintf("%.0f ms", median(whole)), ""},
		{"the same: growth of resident memory", fmt.Sprintf("%.1f MiB", float64(peak-before)/(1<<20)), "under 64 MiB"},
	}, nil
}

func exchangeOnce(ctx context.Context, d *daemon, path string) error {
	_, err := load(ctx, d.address, 1, time.Millisecond, http.StatusOK, func(int64) []byte { return request(http.MethodGet, path, d.token, "") })
	return err
}

func readList(ctx context.Context, d *daemon) (firstByte, end time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+"/api/domains", nil)
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Header.Set("Accept-Encoding", "identity")
	began := time.Now()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil {
		return 0, 0, err
	}
	firstByte = time.Since(began)
	_, err = io.Copy(io.Discard, response.Body)
	return firstByte, time.Since(began), err
}
